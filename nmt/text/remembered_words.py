"""Encoding many lines of a corpus: what BPE makes of frequent words is remembered.

A subword of our own vocabularies never reaches over the beginning of a word, so BPE segments each word by itself.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from nmt.text.tokenizers import META, MarianTokenizer, SentencePieceTokenizer, Tokenizer, escaped

KEPT_LETTERS = 40
"""Longer words are sentences without blanks, and seldom come again."""
KEPT_WORDS = 2**16
"""At most 20 MB. Frequent words come early: when so many are kept, no other one takes the place of any."""

Encode = Callable[[Sequence[str], int], list[list[int]]]


def parsed(tokenizer: SentencePieceTokenizer) -> Any:
    """The vocabulary as sentencepiece stores it, with the types and scores of its entries."""
    from sentencepiece import sentencepiece_model_pb2

    return sentencepiece_model_pb2.ModelProto.FromString(tokenizer.content)  # type: ignore[attr-defined]


def vocabulary_kind(tokenizer: Tokenizer) -> str:
    """bpe, unigram, wordpiece or marian."""
    if not isinstance(tokenizer, SentencePieceTokenizer):
        return "marian" if isinstance(tokenizer, MarianTokenizer) else "wordpiece"
    trainer = parsed(tokenizer).trainer_spec
    return "unigram" if trainer.model_type == trainer.UNIGRAM else "bpe"


class RememberedWords(dict[str, list[int]]):
    """The ids of words; those of a new word are asked for."""

    def __init__(self, tokenizer: SentencePieceTokenizer) -> None:
        self.tokenizer, self.processor = tokenizer, tokenizer.processor
        self.tags = tuple(tokenizer.tags)
        two_blanks = self.processor.encode(" ")  # one of them stands before each line
        self[""] = two_blanks[: len(two_blanks) // 2]

    def __missing__(self, word: str) -> list[int]:
        ids: list[int] = self.processor.encode(word)
        if len(self) < KEPT_WORDS and len(word) <= KEPT_LETTERS:
            self[word] = ids
        return ids

    def encode(self, lines: Sequence[str], side: int) -> list[list[int]]:
        """As `Tokenizer.encode`."""
        ids_of = self.__getitem__
        return [
            list(chain.from_iterable(map(ids_of, escaped(line).split(" "))))
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
