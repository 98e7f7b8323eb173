"""Group pairs of similar lengths, so that micro-batches have little padding.

A table counts the pairs by source and target length. It is recursively cut in two, along whichever
length saves the most padding. All pairs in a resulting group are padded to the same widths. Two
arrays describe the table's cells: `widths` [2, cells] holds source and target widths, and `counts`
[cells] holds the numbers of pairs.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.data.lengths import GrownLengths, Ints, Lengths
from nmt.data.shuffling import integers

MIN_MICRO_BATCHES = 3
"""Minimum per group; in a smaller group, every pass would batch the same pairs together."""

PADDING_SHARE = 0.02
"""A group with less padding is not cut, because pairs are shuffled less in smaller groups."""

BLOCK_PAIRS = 1 << 20
"""Pairs processed at a time, so that temporary arrays stay in cache and need little memory."""


def bucket_widths(lengths: NDArray[Any]) -> Ints:
    """Round lengths above 64 up to multiples of 2, above 128 up to multiples of 4, and so on."""
    # A step is at most 1/32 of the length, which adds little padding but keeps the table small.
    _, exponents = np.frexp(lengths - 1)  # the number of bits
    steps = 2 ** np.maximum(exponents.astype(np.int64) - 6, 0)
    return np.asarray(-(-lengths // steps) * steps)


def cost(widths: Ints, counts: Ints, budget: int) -> Ints:
    """The cost of micro-batches of these widths.

    A position costs 2 in the row of a pair, and 1 in an unused row.
    """
    rows = budget // widths.max(0)
    # An unused row takes no time, unlike padding, but it makes its update smaller.
    used_and_unused = -(-counts // rows) * rows
    return np.asarray((counts + used_and_unused) * widths.sum(0))


@dataclass
class Cut:
    """A division of cells in two."""

    cost: int
    """The cost of the micro-batches of both parts."""
    below: Ints
    """The cells of the part with the smaller widths."""
    above: Ints
    """The cells of the part with the larger widths."""


def is_large_enough(widths: Ints, counts: Ints, budget: int) -> NDArray[np.bool_]:
    """Whether parts of these widths fill enough micro-batches."""
    rows = budget // widths.max(0)
    return np.asarray(counts >= MIN_MICRO_BATCHES * rows)


def best_cut(widths: Ints, counts: Ints, side: int, budget: int) -> Cut | None:
    """The best cut along one side's lengths; None if no cut is allowed."""
    # Stable, because the cells' order decides the pairs' order, on which all updates depend.
    order = np.argsort(widths[side], kind="stable")
    widths = widths[:, order]
    counts = counts[order]
    # A cut may follow the last cell of each width. Compute both parts' widths and counts for all
    # cuts at once.
    last = np.flatnonzero(np.diff(widths[side]))
    # A part is padded to its widest cell on either side, hence running maxima from both ends.
    widths_below = np.maximum.accumulate(widths, axis=1)[:, last]
    reversed_widths = np.maximum.accumulate(widths[:, ::-1], axis=1)
    widths_above = reversed_widths[:, ::-1][:, last + 1]
    counts_below = counts.cumsum()[last]
    counts_above = counts.sum() - counts_below
    allowed = np.flatnonzero(
        is_large_enough(widths_below, counts_below, budget)
        & is_large_enough(widths_above, counts_above, budget)
    )
    if not len(allowed):
        return None
    costs = cost(widths_below, counts_below, budget) + cost(widths_above, counts_above, budget)
    # Costs are integers, and the first of equal ones wins: every machine makes the same cut.
    best = allowed[costs[allowed].argmin()]
    end = last[best] + 1
    return Cut(int(costs[best]), below=order[:end], above=order[end:])


def cut_that_saves(widths: Ints, counts: Ints, budget: int) -> Cut | None:
    """The best cut along either side's lengths; None if no cut saves padding."""
    total = counts.sum(keepdims=True)
    widest = widths.max(1, keepdims=True)
    tokens = (counts * widths.sum(0)).sum()
    padding = 1 - tokens / (total[0] * widest.sum())
    if padding <= PADDING_SHARE:
        return None
    cuts = []
    for side in (0, 1):
        cut = best_cut(widths, counts, side, budget)
        if cut:
            cuts.append(cut)
    best = min(cuts, key=lambda cut: cut.cost, default=None)
    if best and best.cost < int(cost(widest, total, budget)[0]):
        return best
    return None


def partition(widths: Ints, counts: Ints, budget: int) -> list[Ints]:
    """Split cells into groups as long as that saves padding; return each group's cells."""
    groups = []
    uncut = [np.arange(len(counts))]
    while uncut:
        cells = uncut.pop()
        cut = cut_that_saves(widths[:, cells], counts[cells], budget)
        if cut:
            # The order of this stack decides the order of the groups, on which all updates depend.
            uncut += [cells[cut.above], cells[cut.below]]
        else:
            groups.append(cells)
    return groups


class Groups(NamedTuple):
    """Pairs of similar lengths. The updates of all runs depend on their order."""

    order: NDArray[np.signedinteger[Any]]
    """The pairs of the first group, then of the second, and so on, [pairs]."""
    starts: Ints
    """Each group's start in `order`, then the end of the last group, [groups + 1]."""
    widths: Ints
    """Each group's maximum source and target width, [2, groups]."""

    def pairs_between(self, bounds: Ints) -> Ints:
        """The number of pairs of each group between neighboring bounds, [bounds - 1, groups]."""
        # NumPy would copy `order` if the types differed.
        bounds_of_order = bounds.astype(self.order.dtype)
        places = []  # of each bound in each group
        for begin, end in pairwise(self.starts.tolist()):
            rows = self.order[begin:end]  # ascending
            places.append(np.searchsorted(rows, bounds_of_order))
        places_BG = np.stack(places, axis=1)
        return integers(places_BG[1:] - places_BG[:-1])


def widths_by_length(lengths: Lengths | GrownLengths) -> tuple[Ints, Ints]:
    """The distinct widths, ascending, and for each length the index of its width."""
    longest = int(lengths.max())
    # Cap widths at the longest sentence, which may fill a micro-batch by itself.
    widths = np.minimum(bucket_widths(np.arange(longest + 1)), longest)
    distinct, index = np.unique(widths, return_inverse=True)
    return distinct, index


def group_by_lengths(
    source_lengths: Lengths | GrownLengths, target_lengths: Lengths | GrownLengths, budget: int
) -> Groups:
    """Group pairs for micro-batches of at most `budget` padded tokens per side."""
    source_widths, source_index = widths_by_length(source_lengths)
    target_widths, target_index = widths_by_length(target_lengths)
    columns = len(source_widths)
    table = np.stack(
        [np.tile(source_widths, len(target_widths)), np.repeat(target_widths, columns)]
    )
    starts_of_blocks = range(0, len(source_lengths), BLOCK_PAIRS)
    blocks = [slice(start, start + BLOCK_PAIRS) for start in starts_of_blocks]

    def cells_of(block: slice) -> Ints:
        rows = target_index[target_lengths[block]]
        return np.asarray(rows * columns + source_index[source_lengths[block]])

    counts = np.zeros(table.shape[1], np.int64)
    for block in blocks:
        counts += np.bincount(cells_of(block), minlength=len(counts))
    # Most combinations of lengths occur in no pair.
    filled = np.flatnonzero(counts)
    parts = partition(table[:, filled], counts[filled], budget)
    groups = [filled[part] for part in parts]
    # NumPy sorts integers of up to 16 bits in linear time, and 16 bits suffice unless micro-batches
    # are tiny.
    group_of_cell = np.zeros(len(counts), np.min_scalar_type(len(groups)))
    sizes = []
    widths = []
    for group, cells in enumerate(groups):
        group_of_cell[cells] = group
        sizes.append(counts[cells].sum())
        widths.append(table[:, cells].max(1))
    starts = np.cumsum([0, *sizes])
    # Cells are computed again instead of stored, so that only `order` needs memory for each pair.
    group_blocks = (group_of_cell[cells_of(block)] for block in blocks)
    order = rows_by_group(group_blocks, starts)
    return Groups(order, starts, np.stack(widths, axis=1))


def rows_by_group(
    group_blocks: Iterable[NDArray[Any]], starts: Ints
) -> NDArray[np.signedinteger[Any]]:
    """The rows of each group in turn, ascending: a counting sort.

    `group_blocks` contain the group of every row, in row order; `starts` is as in Groups.
    """
    rows = int(starts[-1])
    order = np.empty(rows, np.min_scalar_type(-rows - 1))  # a type that also holds `rows`
    free = starts[:-1].copy()  # for each group, where its next row goes
    first_row = 0
    for groups in group_blocks:
        # Stable, so that rows of a group stay ascending.
        sorted_rows = np.argsort(groups, kind="stable")
        counts = np.bincount(groups, minlength=len(free))
        offsets = free - (np.cumsum(counts) - counts)
        places = np.arange(len(groups)) + np.repeat(offsets, counts)
        order[places] = first_row + sorted_rows
        free += counts
        first_row += len(groups)
    return order
