"""Train vocabularies (section 5.1)."""

import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from nmt.config import BOS, EOS, PAD, UNK, NMTError, TokenizerConfig
from nmt.files import parse_json
from nmt.text.sentencepieces import (
    OF_SENTENCEPIECE,
    SentencePieceTokenizer,
    parse_sentencepiece,
)
from nmt.text.tokenizers import META, SYMBOLS, Tokenizer
from nmt.text.wordpieces import CONTINUES, OF_WORDPIECE, WordPieceTokenizer, wordpiece_of


def train_tokenizer(
    lines: Iterable[str],
    config: TokenizerConfig,
    words: Sequence[str] = (),
    tags: Sequence[str] = (),
) -> Tokenizer:
    """Train a vocabulary on clean lines (section 5.1).

    `words` and `tags` become entries. No other text is encoded as a tag.
    """
    if config.kind != "wordpiece":
        return train_sentencepiece(lines, config, words, tags)
    # Only structures, such as trees, have words. Preparation refuses word-pieces for them.
    assert not words
    if tags:
        raise NMTError(
            f"data.tag={tags[0]}: tokenizer.kind=wordpiece does not support tags; use bpe or "
            "unigram"
        )
    return train_wordpiece(lines, config.vocabulary_size, config.normalization)


def train_sentencepiece(
    lines: Iterable[str],
    config: TokenizerConfig,
    words: Sequence[str],
    tags: Sequence[str],
) -> SentencePieceTokenizer:
    import sentencepiece

    input_format = "text"
    if config.kind == "bpe":
        # BPE needs only word counts, which take less memory than sentences.
        input_format = "tsv"
        counts = count_words(lines)
        lines = table_of(counts)
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            model_type=config.kind,
            input_format=input_format,
            vocab_size=config.vocabulary_size,
            hard_vocab_limit=False,  # a small corpus may not have enough subwords
            max_sentence_length=1_000_000,
            # Characters too rare for the vocabulary are spelled as bytes.
            byte_fallback=True,
            character_coverage=0.9999,
            num_threads=2,
            minloglevel=2,  # only errors
            # Lines are already normalized; sentencepiece's table is for another Unicode version.
            normalization_rule_name="identity",
            # Trimming would lose spaces.
            remove_extra_whitespaces=False,
            pad_id=PAD,
            bos_id=BOS,
            eos_id=EOS,
            unk_id=UNK,
            control_symbols=list(tags),
            user_defined_symbols=[META + word for word in words],
        )
    except RuntimeError as error:
        if "required_chars" not in str(error):
            raise
        raise NMTError(
            f"tokenizer.vocabulary_size={config.vocabulary_size}: the corpus has more distinct "
            "characters than this; increase it"
        ) from error
    content = with_normalization(model.getvalue(), config.normalization)
    return SentencePieceTokenizer(content)


def count_words(lines: Iterable[str]) -> Counter[str]:
    counts = Counter[str]()
    for line in lines:
        # Lines are clean, so words are separated by single spaces.
        counts.update(line.split(" "))
    return counts


def table_of(counts: Counter[str]) -> Iterator[str]:
    """Words and their counts, as sentencepiece reads them."""
    for word, count in counts.items():
        # A tab would end the word in sentencepiece's table.
        if word and "\t" not in word:
            yield f"{word}\t{count}"


def with_normalization(content: bytes, name: str) -> bytes:
    """A sentencepiece model that records how its lines were normalized."""
    # In the model's own file, because a model directory
    # must be complete without nmt's configuration.
    model = parse_sentencepiece(content)
    model.normalizer_spec.name = OF_SENTENCEPIECE + name
    return bytes(model.SerializeToString())


def train_wordpiece(
    lines: Iterable[str],
    vocabulary_size: int,
    normalization: str,
) -> WordPieceTokenizer:
    import tokenizers

    # Each byte, at the start of a word and inside one, is a special symbol: its id is fixed.
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    # Then every text can be spelled, whatever the corpus contained.
    continuing = [CONTINUES + byte for byte in alphabet]
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=vocabulary_size,
        special_tokens=[*SYMBOLS, *alphabet, *continuing],
        continuing_subword_prefix=CONTINUES,
        show_progress=False,
    )
    learner = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token=SYMBOLS[UNK]))
    learner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    learner.train_from_iterator(lines, trainer)
    tokenizer = wordpiece_of(learner.get_vocab())
    tree: dict[str, Any] = parse_json(tokenizer.to_str().encode())
    tree[OF_WORDPIECE] = normalization
    return WordPieceTokenizer(json.dumps(tree, ensure_ascii=False).encode())
