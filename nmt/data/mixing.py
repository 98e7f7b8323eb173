"""How the sources of a corpus share the sentences of a pass.

Rows are ordered by source. In each group, a source's pairs form an endless stream of shuffled
rounds. Each pass takes `copies` times the source's number of pairs from this stream; `copies` need
not be an integer.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.config import NMTError, SourceConfig
from nmt.data.grouping import Groups
from nmt.data.lengths import Ints
from nmt.data.shuffling import shuffle_key, shuffled

MOST_COPIES = 64
"""The maximum length of a pass, as a multiple of the corpus size.

A large source with a tiny share could otherwise make a pass almost endless.
"""


class Mixture(NamedTuple):
    """The sources of a corpus."""

    bounds: Ints
    """Each source's first row, then the end of the last source, [sources + 1]."""
    copies: NDArray[np.float64]
    """How often each pair occurs in a pass, usually 1 or more, [sources]."""
    growth: NDArray[np.float64]
    """The factor by which planning expects transforms to lengthen sentences, [sources]."""


def added_up(numbers: Iterable[float]) -> float:
    """The sum, rounded after each addition.

    Since Python 3.12, `sum` rounds less often, so passes would depend on the Python version.
    """
    total = 0.0
    for number in numbers:
        total += number
    return total


def source_copies(
    sources: Sequence[SourceConfig], sizes: Sequence[int], temperature: float
) -> NDArray[np.float64]:
    """How many times each pair of a source is used per pass.

    Each source with a `share` gets that part of an update; the others divide up the rest in
    proportion to (weight x pairs)^(1 / temperature). Raises NMTError if a source would get less
    than one sentence.
    """
    weights = []  # of the sources without a share
    for source, size in zip(sources, sizes, strict=True):
        weight = 0.0
        if not source.share:
            # A temperature above 1 raises the share of small sources.
            weight = (source.weight * size) ** (1 / temperature)
        weights.append(weight)
    total = added_up(weights)
    rest = 1 - added_up(source.share or 0 for source in sources)
    parts = []
    for source, weight in zip(sources, weights, strict=True):
        parts.append(source.share or rest * weight / total)
    shares = np.array(parts) / added_up(parts)
    pairs = np.array(sizes)
    # A pass contains each pair at least once, unless that would make it too long.
    # A low temperature can round a share to 0.
    needed = np.max(pairs / np.maximum(shares, 1e-12))
    taken = shares * min(needed, MOST_COPIES * pairs.sum())
    if taken.min() < 1:
        name = sources[int(taken.argmin())].name
        raise NMTError(
            f"data.sources: the shares give {name} less than one sentence in {taken.sum():,.0f}"
        )
    return np.asarray(taken / pairs)


class Streams:
    """The streams of shuffled rounds from which passes take the pairs of a mixture.

    There is a stream for each source in each group. Each of its rounds contains all pairs of the
    source in the group once. A pass takes the next pairs of each stream, so each pair is used once
    before any is used twice. Arrays are [sources, groups].
    """

    def __init__(self, groups: Groups, mixture: Mixture, seed: int) -> None:
        self.seed = seed
        # How many pairs a round has, and where they begin in the group, whose pairs are ordered by
        # source.
        self.sizes = groups.pairs_between(mixture.bounds)
        self.begins = self.sizes.cumsum(0) - self.sizes
        # The number of pairs that a pass takes, rounded so that each source's total is right.
        exact = self.sizes.cumsum(1) * mixture.copies[:, None]
        upto = np.rint(exact).astype(np.int64)
        self.taken = np.diff(upto, axis=1, prepend=0)
        # What a pass takes from a group is ordered by source, too.
        self.taken_ends = self.taken.cumsum(0)
        # The number of pairs that a pass takes from each group, [groups].
        self.pairs_per_pass: Ints = self.taken_ends[-1]

    def places(self, passes: Ints, groups: Ints, indices: Ints) -> Ints:
        """Where pairs that passes take are in their groups.

        The arguments have an element for each pair: the pass, the group, and the pair's index in
        what the pass takes from the group. For example, a group contains three pairs of source 0
        and two of source 1, at places 0 to 4, and a pass takes three and four pairs. Then index 5
        of pass 1 is the third pair that this pass takes from source 1, after four by pass 0: pair 6
        of the stream, counted from 0. Rounds have two pairs, so it begins round 3, and its place is
        3 or 4.
        """
        # The pairs of a source follow those of all sources whose ends are not above the index.
        sources = (indices >= self.taken_ends[:, groups]).sum(0)
        taken = self.taken[sources, groups]
        sizes = self.sizes[sources, groups]
        begins = self.begins[sources, groups]
        index_in_source = indices - (self.taken_ends[sources, groups] - taken)
        index_in_stream = passes * taken + index_in_source
        rounds, index_in_round = np.divmod(index_in_stream, sizes)
        # The 0 once was the number of a stage of training. Without it, runs on mixtures could not
        # resume.
        keys = shuffle_key(self.seed, 0, rounds, groups, sources)
        return np.asarray(begins + shuffled(index_in_round, sizes, keys))
