"""How well the sides of pairs fit each other in meaning."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nmt.preparation.arrow_files import Numbered
from nmt.text import WITHOUT_BLANKS, Pair, sentence_vectors, words

Values = NDArray[np.float32]
WEIGHT = 2.0
"""How much an advantage of another text lowers the similarity of a pair."""
FARTHEST = 3
"""The most lines, up or down, by which a neighbor's side is compared."""
WHOLE = 0.8
"""Pairs that are more similar are not compared in halves: hardly any of them is cut."""
LEAST_WORDS = 4
"""Lines with fewer words are not compared in halves: a word says too little."""
BORDER = re.compile("\\s+|(?<=[\u3001\u3002\uff0c\uff0e\uff01\uff1f\uff1b\uff1a])")
"""Where a text can be divided: at blanks, and after punctuation that no blank follows."""
LEAST_CAPITALS = 0.9
"""The share of capitals among the letters of a text that is written in capitals."""
LEAST_CAPITAL_WORDS = 3
"""Texts with fewer words may be names and abbreviations, which the encoder knows in capitals."""
NOT_COMPARED = -2.0
"""An advantage that no comparison can have: cosines are between -1 and 1."""


@dataclass
class Fits:
    """How well the sides of some pairs fit; each array has one value per pair."""

    cosines: Values
    """The similarity of the sides."""
    neighbors: Values
    """By how much both sides are more similar to sides a few lines further, in one direction."""
    halves: Values
    """By how much half of a side is more similar to the other side."""
    is_long: NDArray[np.bool_]
    """Whether both sides are long enough to be compared in halves."""
    shuffled: Values
    """The similarity of sources and targets of different pairs, far from each other."""

    @cached_property
    def values(self) -> Values:
        """The similarity of each pair, lowered if a neighbor or half of a side fits better."""
        advantages = np.maximum(self.neighbors, self.halves)
        return np.asarray(self.cosines - WEIGHT * np.maximum(advantages, 0), np.float32)


def fits_of(pairs: Numbered, least: float = -1.0) -> Fits:
    """Compare the sides of consecutive pairs, each with its line number.

    Pairs whose similarity is below `least` are not compared in halves. The last bits depend on all
    pairs that are compared together. Raises NMTError if the encoder is not installed.
    """
    pairs = [(line, (as_compared(pair[0]), as_compared(pair[1]))) for line, pair in pairs]
    sources = sentence_vectors([source for _, (source, _) in pairs])
    targets = sentence_vectors([target for _, (_, target) in pairs])
    cosines = np.asarray((sources * targets).sum(axis=1), np.float32)
    lines = np.array([line for line, _ in pairs])
    is_long = np.array([min(map(words, pair)) >= LEAST_WORDS for _, pair in pairs], np.bool_)
    rows = np.flatnonzero(is_long & (cosines >= least) & (cosines < WHOLE))
    halves = np.full(len(pairs), NOT_COMPARED, np.float32)
    if len(rows):
        best = best_halves([pairs[row][1] for row in rows], sources[rows], targets[rows])
        halves[rows] = best - cosines[rows]
    return Fits(
        cosines=cosines,
        neighbors=best_neighbors(lines, sources, targets) - cosines,
        halves=halves,
        is_long=is_long,
        shuffled=shuffled_cosines([pair for _, pair in pairs], sources, targets),
    )


def as_compared(text: str) -> str:
    """A text as the encoder reads it: one that is written in capitals becomes a sentence."""
    # The encoder hardly knows words in capitals: all such texts are similar to it.
    if text.islower() or words(text) < LEAST_CAPITAL_WORDS:
        return text
    capitals = sum(map(str.isupper, text))
    is_in_capitals = capitals >= LEAST_CAPITALS * (capitals + sum(map(str.islower, text)))
    return text.capitalize() if capitals and is_in_capitals else text


def shuffled_cosines(pairs: Sequence[Pair], sources: Values, targets: Values) -> Values:
    """The similarity of each source with the target half of all pairs away."""
    distance = len(pairs) // 2
    others = [*pairs[distance:], *pairs[:distance]]
    # Repeated lines are translations of each other, however far apart they are.
    rows = [
        row
        for row, (pair, other) in enumerate(zip(pairs, others, strict=True))
        if pair[0] != other[0] and pair[1] != other[1]
    ]
    moved = np.roll(targets, -distance, axis=0)
    return np.asarray((sources[rows] * moved[rows]).sum(axis=1), np.float32)


def best_neighbors(lines: NDArray[np.int64], sources: Values, targets: Values) -> Values:
    """For each pair, the similarity of the neighbors' sides that fit it best.

    Both sides must fit sides as many lines away, in opposite directions, as in a shifted part of a
    corpus. Otherwise, a sentence that is much like the one before would count.
    """
    best = np.full(len(lines), NOT_COMPARED, np.float32)
    last = len(lines)
    for shift in range(1, FARTHEST + 1):
        rows = np.arange(last - shift)
        # Lines between two pairs may have been dropped.
        rows = rows[lines[shift:] - lines[:-shift] == shift]
        later = rows + shift
        for one, other in ((sources, targets), (targets, sources)):
            products = (one[rows] * other[later]).sum(axis=1)
            # A side has a partner further down if the other side has one as far up.
            down = np.full(last, NOT_COMPARED, np.float32)
            up = np.full(last, NOT_COMPARED, np.float32)
            down[rows] = products
            up[later] = products
            best = np.maximum(best, np.minimum(down, up))
    return best


def best_halves(pairs: Sequence[Pair], sources: Values, targets: Values) -> Values:
    """For each pair, how similar the best half of a side is to the whole other side."""
    best = np.full(len(pairs), NOT_COMPARED, np.float32)
    for side, others in ((0, targets), (1, sources)):
        divided = [halves(pair[side]) for pair in pairs]
        for part in (0, 1):
            vectors = sentence_vectors([texts[part] for texts in divided])
            best = np.maximum(best, (vectors * others).sum(axis=1))
    return best


def halves(text: str) -> tuple[str, str]:
    """Divide a text at the border that is nearest to its middle."""
    middle = len(text) / 2
    borders = [match.span() for match in BORDER.finditer(text, 1, len(text) - 1)]
    # Only these scripts may be cut within a word: in Chinese, a word is one or two characters.
    if WITHOUT_BLANKS.search(text):
        borders = [border for border in borders if abs(sum(border) / 2 - middle) < middle / 2]
    if not borders:
        return text[: len(text) // 2], text[len(text) // 2 :]
    begin, end = min(borders, key=lambda border: abs(sum(border) / 2 - middle))
    return text[:begin], text[end:]
