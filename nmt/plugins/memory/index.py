"""Find texts that share most of their words with a query, without a comparison with every text.

The similarity of two texts is 1 - d / n: d is the Levenshtein distance between their sequences of
words, and n is the number of words of the longer one. Case and punctuation do not count.

A text that is similar enough shares at least `minimum` * n words with the query. So the rarest
words of both, all but that number and one more, have a word in common. This is the prefix filter of
Chaudhuri, Ganti and Kaushik (2006), "A Primitive Operator for Similarity Joins in Data Cleaning".
The index has only these words, and finds the same texts as a comparison with all of them.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from math import ceil, floor
from typing import NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from nmt.text import SYLLABLE, WITHOUT_BLANKS, WORD_CHARACTER

WORD = regex.compile(
    rf"{SYLLABLE}|(?:(?!{WITHOUT_BLANKS.pattern}){WORD_CHARACTER.pattern})++", regex.V1
)
"""A word, or a syllable in a script without blanks between words."""
ASCII_WORD = regex.compile(r"[0-9A-Za-z_]+")
UNKNOWN = 2**31 - 1
"""The number of a word that no text of the index has."""
FEW = 50
"""Fewer texts are compared at once, because calls of NumPy cost more than a comparison."""
ROUNDING = 1e-9
"""More than the rounding errors of a product such as 0.7 * 10, which is less than 7."""
Numbers = NDArray[np.int32]


class Similar(NamedTuple):
    """A text that is similar to a query."""

    number: int
    """The text's place in the index, from 0."""
    score: float


def words_of(text: str) -> list[str]:
    """The words of a text in lowercase, without punctuation."""
    pattern = ASCII_WORD if text.isascii() else WORD
    words: list[str] = pattern.findall(text.casefold())
    return words


def similarity(first: Sequence[object], second: Sequence[object], minimum: float = 0.0) -> float:
    """The similarity of two sequences of words, 0 to 1; 0 if it is less than `minimum`."""
    words = max(len(first), len(second))
    # Not `normalized_similarity`, which rounds: with a cutoff of 0.6, 2 edits in 5 words are too
    # many for it (rapidfuzz 3.14.6).
    most_edits = floor((1 - minimum) * words + ROUNDING)
    edits = Levenshtein.distance(first, second, score_cutoff=most_edits)
    return 1 - edits / words if words and edits <= most_edits else 0.0


def prefix_length(words: int, minimum: float) -> int:
    """How many of a text's rarest words must be looked up."""
    shared = ceil(minimum * words - ROUNDING)
    return min(words, words - shared + 1)


class WordIndex:
    """Texts by their rare words; `minimum` is the least similarity that can be found."""

    def __init__(self, texts: Iterable[str], minimum: float) -> None:
        self.minimum = minimum
        self.numbers: dict[str, int] = {}
        """Word -> its number, in the order of first use."""
        self.words = array("i")
        """The words of all texts, one after another."""
        ends = array("q", [0])
        for text in texts:
            for word in words_of(text):
                number = self.numbers.setdefault(word, len(self.numbers))
                self.words.append(number)
            ends.append(len(self.words))
        self.all_words = np.frombuffer(self.words, np.int32)
        self.ends = np.frombuffer(ends, np.int64)
        self.lengths = np.diff(self.ends).astype(np.int32)
        counts = np.bincount(self.all_words, minlength=len(self.numbers))
        self.counts = counts.astype(np.int32)
        self.build_postings()

    def build_postings(self) -> None:
        """List the texts by each word of their prefixes."""
        words = array("i")
        texts = array("i")
        for number in range(len(self.lengths)):
            for word in self.prefix(self.words_at(number).tolist()):
                words.append(word)
                texts.append(number)
        words_of_postings = np.frombuffer(words, np.int32)
        # Stable: the texts of a word stay in ascending order.
        order = np.argsort(words_of_postings, kind="stable")
        self.postings = np.frombuffer(texts, np.int32)[order]
        postings_per_word = np.bincount(words_of_postings, minlength=len(self.numbers))
        self.posting_ends = np.concatenate([[0], np.cumsum(postings_per_word)])

    def words_at(self, number: int) -> "array[int]":
        return self.words[self.ends[number] : self.ends[number + 1]]

    def prefix(self, words: Sequence[int]) -> set[int]:
        """The rarest words of a text, without those that no text of the index has."""
        length = prefix_length(len(words), self.minimum)
        in_order = sorted(words, key=self.rarity)
        return {word for word in in_order[:length] if word != UNKNOWN}

    def rarity(self, word: int) -> tuple[int, int]:
        """A key that sorts the rarest word first; ties have the same order in all texts."""
        count = 0 if word == UNKNOWN else int(self.counts[word])
        return count, word

    def candidates(self, words: Sequence[int]) -> Numbers:
        """The texts that may be similar enough, in ascending order."""
        lists = list[Numbers]()
        for word in self.prefix(words):
            begin, end = self.posting_ends[word : word + 2]
            lists.append(self.postings[begin:end])
        if not lists:
            return np.empty(0, np.int32)
        numbers = np.unique(np.concatenate(lists))
        lengths = self.lengths[numbers]
        longer = np.maximum(lengths, len(words))
        shorter = np.minimum(lengths, len(words))
        # Each word that only the longer text has is an edit.
        needed = self.minimum * longer - ROUNDING
        is_near = shorter >= needed
        return self.sharing(numbers[is_near], words, needed[is_near])

    def sharing(
        self, numbers: Numbers, words: Sequence[int], needed: NDArray[np.float64]
    ) -> Numbers:
        """Those of the texts that share as many words with a query as are `needed`.

        Counts a word as often as the text has it, so more texts than necessary may be left.
        """
        if len(numbers) < FEW:
            return numbers
        lengths = self.lengths[numbers]
        ends = np.cumsum(lengths)
        begins = ends - lengths
        # The places of all words of these texts in `all_words`, one text after another.
        shifts = np.repeat(self.ends[numbers] - begins, lengths)
        places = shifts + np.arange(ends[-1])
        is_shared = np.isin(self.all_words[places], np.unique(np.asarray(words, np.int32)))
        shared = np.add.reduceat(is_shared.astype(np.int32), begins)
        return numbers[shared >= needed]

    def similar(self, text: str) -> Iterator[Similar]:
        """The texts that are similar enough to a query, in ascending order."""
        words = array("i", [self.numbers.get(word, UNKNOWN) for word in words_of(text)])
        for candidate in self.candidates(words).tolist():
            score = similarity(words, self.words_at(candidate), self.minimum)
            if score:
                yield Similar(candidate, score)
