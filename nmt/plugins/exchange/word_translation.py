"""IBM model 1 (Brown et al. 1993): how likely a token of the target is, given one of the source. Vectorised EM."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
OCCURRENCES = 4_000_000
"""Co-occurrences in memory at once."""


@dataclass
class Tokens:
    """Sentences, one after another."""

    ids: Ids
    lengths: Ids

    def __getitem__(self, part: slice) -> "Tokens":
        ends = np.cumsum(np.concatenate([[0], self.lengths]))
        return Tokens(self.ids[ends[part.start] : ends[part.stop]], self.lengths[part])


@dataclass
class Translations:
    """t(f|e) for the tokens that occur together, ordered by e and f: `source`, `target` and `probability`."""

    source: Ids
    target: Ids
    probability: NDArray[np.float64]


def occurrences(sources: Tokens, targets: Tokens, size: int) -> tuple[Ids, Ids]:
    """For each position of the targets and each token of its source: the key, source x size + target; the position."""
    of_position = np.repeat(np.arange(len(targets.lengths)), targets.lengths)
    counts = sources.lengths[of_position]
    positions = np.repeat(np.arange(len(of_position)), counts)
    starts = (np.cumsum(sources.lengths) - sources.lengths)[of_position]
    offsets = np.arange(len(positions)) - np.repeat(np.cumsum(counts) - counts, counts)
    return sources.ids[np.repeat(starts, counts) + offsets] * size + targets.ids[positions], positions


def chunks(sources: Tokens, targets: Tokens) -> Iterator[tuple[Tokens, Tokens]]:
    """Parts of a corpus with so many co-occurrences at most, or a pair each."""
    before = np.cumsum(sources.lengths * targets.lengths) // OCCURRENCES
    cuts = [0, *(np.flatnonzero(np.diff(before)) + 1).tolist(), len(before)]
    for start, stop in pairwise(cuts):
        yield sources[start:stop], targets[start:stop]


def word_translations(sources: Tokens, targets: Tokens, size: int, iterations: int = 5) -> Translations:
    """The probabilities after some iterations from the uniform ones; ids of the target are below `size`.

    Each source should begin with a token of its own for what has no counterpart there (NULL).
    """
    keys = np.zeros(0, np.int64)
    for part in chunks(sources, targets):
        keys = np.union1d(keys, occurrences(*part, size)[0])
    source, probability = keys // size, np.ones(len(keys))
    for _ in range(iterations):
        expected = np.zeros(len(keys))
        for part in chunks(sources, targets):
            found, positions = occurrences(*part, size)
            indices = np.searchsorted(keys, found)
            weights = probability[indices]
            shares = weights / np.bincount(positions, weights)[positions]
            expected += np.bincount(indices, shares, len(keys))
        probability = expected / np.bincount(source, expected)[source]
    return Translations(source, keys % size, probability)
