"""Learning a subword vocabulary from text (section 5.1): BPE and unigram by sentencepiece, word-piece by tokenizers."""

import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from nmt.config import BOS, EOS, PAD, UNK, TokenizerConfig
from nmt.errors import NMTError
from nmt.text.tokenizers import (
    CONTINUES,
    META,
    SYMBOLS,
    SentencePieceTokenizer,
    Tokenizer,
    WordPieceTokenizer,
    wordpiece_of,
)


def counted_words(lines: Iterable[str]) -> Iterator[str]:
    """The words of clean lines, each followed by a tab and its count."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line.split(" "))
    return (f"{word}\t{count}" for word, count in counts.items() if word and "\t" not in word)


def train_sentencepiece(
    lines: Iterable[str], config: TokenizerConfig, words: Sequence[str], tags: Sequence[str]
) -> SentencePieceTokenizer:
    """Learn a BPE or unigram vocabulary of at most `config.vocabulary_size` entries, `words` and `tags` among them."""
    import sentencepiece

    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            # BPE only needs the counts of words, which take a fraction of the memory of millions of sentences. Unigram
            # takes its first candidates from the sentences.
            sentence_iterator=counted_words(lines) if config.kind == "bpe" else iter(lines),
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
        raise NMTError(
            f"tokenizer.vocabulary_size={config.vocabulary_size} is less than the different characters of the corpus: "
            "raise it"
        ) from error
    return SentencePieceTokenizer(model.getvalue())


def train_wordpiece(lines: Iterable[str], vocabulary_size: int) -> WordPieceTokenizer:
    """Learn a word-piece vocabulary of at most `vocabulary_size` entries."""
    import tokenizers
    from tokenizers import models, pre_tokenizers, trainers

    split = pre_tokenizers.ByteLevel(add_prefix_space=False)
    # Every byte, at the beginning of a word and inside, as a special symbol so that its id is fixed.
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    symbols = [*SYMBOLS, *alphabet, *(CONTINUES + byte for byte in alphabet)]
    learner = tokenizers.Tokenizer(models.WordPiece(unk_token=SYMBOLS[UNK]))
    learner.pre_tokenizer = split
    learner.train_from_iterator(
        lines,
        trainers.WordPieceTrainer(
            vocab_size=vocabulary_size,
            special_tokens=symbols,
            continuing_subword_prefix=CONTINUES,
            show_progress=False,
        ),
    )
    return WordPieceTokenizer(wordpiece_of(learner.get_vocab()).to_str().encode())


def train_tokenizer(
    lines: Iterable[str], config: TokenizerConfig, words: Sequence[str] = (), tags: Sequence[str] = ()
) -> Tokenizer:
    """Learn a vocabulary from clean lines of both languages (section 5.1).

    Each of `words` is an entry of its own, and each of `tags` one that no text is encoded to. The vocabulary is smaller
    than `config.vocabulary_size` if the lines cannot fill it.
    """
    if config.kind == "wordpiece":
        assert not words
        if tags:
            raise NMTError(f"data.tag={tags[0]}: tokenizer.kind=wordpiece has no tags; use bpe or unigram")
        return train_wordpiece(lines, config.vocabulary_size)
    return train_sentencepiece(lines, config, words, tags)
