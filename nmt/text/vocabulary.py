"""Learning a subword vocabulary from text (section 5.1), and encoding a corpus with it, which remembers words."""

import io
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from nmt.config import BOS, EOS, PAD, UNK, TokenizerConfig
from nmt.errors import NMTError
from nmt.text.tokenizers import (
    CONTINUES,
    META,
    SYMBOLS,
    SentencePieceTokenizer,
    Tokenizer,
    WordPieceTokenizer,
    escaped,
    wordpiece_of,
)

KEPT_LETTERS = 40
"""Longer words are sentences without blanks, and seldom come again."""
KEPT_WORDS = 2**16
"""At most 20 MB. Frequent words come early: when so many are kept, no other one takes the place of any."""
Encode = Callable[[Sequence[str], int], list[list[int]]]


def train_sentencepiece(
    lines: Iterable[str], config: TokenizerConfig, words: Sequence[str], tags: Sequence[str]
) -> SentencePieceTokenizer:
    import sentencepiece

    model, counts = io.BytesIO(), Counter[str]()
    if config.kind == "bpe":
        # BPE needs only counts of words, which take less memory; unigram finds its first candidates in sentences.
        for line in lines:
            counts.update(line.split(" "))
        lines = (f"{word}\t{count}" for word, count in counts.items() if word and "\t" not in word)
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            input_format="tsv" if config.kind == "bpe" else "text",
            model_writer=model,
            model_type=config.kind,
            vocab_size=config.vocabulary_size,
            hard_vocab_limit=False,
            byte_fallback=True,
            character_coverage=0.9999,
            # Lines are in NFKC already; sentencepiece's own table is of another Unicode version, and it trims blanks.
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            pad_id=PAD,
            bos_id=BOS,
            eos_id=EOS,
            unk_id=UNK,
            max_sentence_length=1_000_000,
            user_defined_symbols=[META + word for word in words],
            control_symbols=list(tags),
            num_threads=2,
            minloglevel=2,
        )
    except RuntimeError as error:
        if "required_chars" not in str(error):
            raise
        problem = "is less than the different characters of the corpus: raise it"
        raise NMTError(f"tokenizer.vocabulary_size={config.vocabulary_size} {problem}") from error
    return SentencePieceTokenizer(model.getvalue())


def train_wordpiece(lines: Iterable[str], vocabulary_size: int) -> WordPieceTokenizer:
    import tokenizers
    from tokenizers import models, pre_tokenizers, trainers

    # Every byte, at the beginning of a word and inside, as a special symbol so that its id is fixed.
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    symbols = [*SYMBOLS, *alphabet, *(CONTINUES + byte for byte in alphabet)]
    learner = tokenizers.Tokenizer(models.WordPiece(unk_token=SYMBOLS[UNK]))
    learner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary_size, special_tokens=symbols, continuing_subword_prefix=CONTINUES, show_progress=False
    )
    learner.train_from_iterator(lines, trainer)
    return WordPieceTokenizer(wordpiece_of(learner.get_vocab()).to_str().encode())


def train_tokenizer(
    lines: Iterable[str], config: TokenizerConfig, words: Sequence[str] = (), tags: Sequence[str] = ()
) -> Tokenizer:
    """Learn a vocabulary of at most `config.vocabulary_size` entries from clean lines of both languages (section 5.1).

    Each of `words` is an entry of its own, and each of `tags` one that no text is encoded to.
    """
    if config.kind != "wordpiece":
        return train_sentencepiece(lines, config, words, tags)
    assert not words
    if tags:
        raise NMTError(f"data.tag={tags[0]}: tokenizer.kind=wordpiece has no tags; use bpe or unigram")
    return train_wordpiece(lines, config.vocabulary_size)


def parsed(tokenizer: SentencePieceTokenizer) -> Any:
    """The vocabulary as sentencepiece stores it, with the types and scores of its entries."""
    from sentencepiece import sentencepiece_model_pb2

    return sentencepiece_model_pb2.ModelProto.FromString(tokenizer.content)  # type: ignore[attr-defined]


def vocabulary_kind(tokenizer: Tokenizer) -> str:
    """As in TokenizerConfig."""
    if not isinstance(tokenizer, SentencePieceTokenizer):
        return tokenizer.kind
    trainer = parsed(tokenizer).trainer_spec
    return "unigram" if trainer.model_type == trainer.UNIGRAM else "bpe"


class RememberedWords(dict[str, list[int]]):
    """The ids of words; BPE segments each by itself, as no subword of ours reaches over the beginning of a word."""

    def __init__(self, tokenizer: SentencePieceTokenizer) -> None:
        self.tokenizer, self.processor, self.tags = tokenizer, tokenizer.processor, tuple(tokenizer.tags)
        two_blanks = self.processor.encode(" ")  # one of them stands before each line
        self[""] = two_blanks[: len(two_blanks) // 2]

    def __missing__(self, word: str) -> list[int]:
        ids: list[int] = self.processor.encode(word)
        if len(self) < KEPT_WORDS and len(word) <= KEPT_LETTERS:
            self[word] = ids
        return ids

    def encode(self, lines: Sequence[str], side: int) -> list[list[int]]:
        return [
            list(chain.from_iterable(map(self.__getitem__, escaped(line).split(" "))))
            if line and not line.startswith(self.tags)
            else self.tokenizer.encode([line], side)[0]
            for line in lines
        ]


def fast_encode(tokenizer: Tokenizer) -> Encode:
    """A function that gives the same ids as `tokenizer.encode`; it is faster for BPE.

    Unigram is left to sentencepiece: among segmentations of equal probability, rounding over the whole line decides.
    """
    if not isinstance(tokenizer, SentencePieceTokenizer) or vocabulary_kind(tokenizer) != "bpe":
        return tokenizer.encode
    normalizer = parsed(tokenizer).normalizer_spec
    ours = not (normalizer.precompiled_charsmap or normalizer.remove_extra_whitespaces) and normalizer.add_dummy_prefix
    within_words = not any(META in subword[1:] for subword in tokenizer.vocabulary())
    return RememberedWords(tokenizer).encode if ours and within_words else tokenizer.encode
