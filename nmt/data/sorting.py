"""Sort pairs by their groups, a block at a time, into memory or into a file.

This is a counting sort: where each group begins in the result is known before.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.data.lengths import Ints

Pairs = NDArray[np.signedinteger[Any]]
"""Numbers of pairs in the corpus."""


def order_type(pairs: int) -> np.dtype[Any]:
    """The type of `order`: signed integers that also hold the number of pairs."""
    return np.dtype(np.min_scalar_type(-pairs - 1))


def pairs_by_group(group_blocks: Iterable[NDArray[Any]], starts: Ints) -> Pairs:
    """The pairs of each group in turn, ascending: a counting sort.

    `group_blocks` contain the group of each pair, in the order of the corpus; `starts` is as in
    Groups. For example, the blocks [1, 0, 1] and [0] with the starts [0, 2, 4] give [1, 3, 0, 2].
    """
    pairs = int(starts[-1])
    order = np.empty(pairs, order_type(pairs))
    for place, stretch in stretches_by_group(group_blocks, starts):
        order[place : place + len(stretch)] = stretch
    return order


def stretches_by_group(
    group_blocks: Iterable[NDArray[Any]], starts: Ints
) -> Iterator[tuple[int, Pairs]]:
    """The pairs of each block in each group, and their place in `order`.

    The arguments are those of `pairs_by_group`. For its example, the stretches are [1] at 0, [0, 2]
    at 2 and [3] at 1.
    """
    next_places = starts[:-1].tolist()  # for each group, where its next pair goes
    item = order_type(int(starts[-1]))
    first_pair = 0
    for groups in group_blocks:
        # Stable, so that pairs of a group stay ascending.
        sorted_pairs = (first_pair + np.argsort(groups, kind="stable")).astype(item)
        counts = np.bincount(groups)
        # In `sorted_pairs`, the pairs of a group are neighbors.
        ends = counts.cumsum()
        begin = 0
        for group in np.flatnonzero(counts).tolist():
            end = int(ends[group])
            yield next_places[group], sorted_pairs[begin:end]
            next_places[group] += end - begin
            begin = end
        first_pair += len(groups)
