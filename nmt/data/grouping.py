"""Group pairs of similar lengths, so that micro-batches have little padding.

A table counts the pairs by source and target length. It is recursively cut in two, along whichever
length saves the most padding. All pairs in a resulting group are padded to the same widths. Two
arrays describe the table's cells: `widths` [2, cells] holds source and target widths, and `counts`
[cells] holds the numbers of pairs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.data.lengths import GrownLengths, Ints, Lengths
from nmt.data.shuffling import integers
from nmt.data.sorting import pairs_by_group

if TYPE_CHECKING:
    from nmt.data.sharing import MappedOrder

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
    """The cost of batching each of some groups of pairs, [groups].

    `widths` [2, groups] are what a group's pairs are padded to, `counts` [groups] how many pairs it
    has. A row of a micro-batch costs its padded positions: twice if it holds a pair, once if it is
    unused.
    """
    rows_per_batch = budget // widths.max(0)
    rows = -(-counts // rows_per_batch) * rows_per_batch  # used and unused
    # An unused row takes no time, unlike padding, but it makes its update smaller.
    return np.asarray((counts + rows) * widths.sum(0))


def is_large_enough(widths: Ints, counts: Ints, budget: int) -> NDArray[np.bool_]:
    """Whether each of some groups of pairs, as in `cost`, fills enough micro-batches, [groups]."""
    rows_per_batch = budget // widths.max(0)
    return np.asarray(counts >= MIN_MICRO_BATCHES * rows_per_batch)


@dataclass
class Cut:
    """A division of cells in two."""

    cost: int
    """The cost of the micro-batches of both parts."""
    below: Ints
    """The indices of the cells in the part with the smaller widths."""
    above: Ints
    """The cells of the part with the larger widths."""


def best_cut(widths: Ints, counts: Ints, side: int, budget: int) -> Cut | None:
    """The cheapest cut along the widths of one side: 0, the source, or 1, the target.

    For example, if the cells have the source widths 4, 2, 6 and 2, there are two cuts along side 0:
    after width 2, into the cells (1, 3) and (0, 2), and after width 4, into (1, 3, 0) and (2). None
    if each cut would leave a part that is too small.
    """
    # Sorted by width, the cells below a cut are the first ones, and those above are the rest.
    # Stable, because the cells' order decides the pairs' order, on which all updates depend.
    order = np.argsort(widths[side], kind="stable")
    widths = widths[:, order]
    counts = counts[order]
    # For each cut, the index of the last cell below it. Cells of the same width stay together.
    last = np.flatnonzero(np.diff(widths[side]))
    # A part is padded to its widest cell on either side.
    widest_so_far = np.maximum.accumulate(widths, axis=1)
    widest_from_here = np.maximum.accumulate(widths[:, ::-1], axis=1)[:, ::-1]
    # From here on, arrays describe all cuts at once: [2, cuts] for widths, [cuts] for counts.
    widths_below = widest_so_far[:, last]
    widths_above = widest_from_here[:, last + 1]
    counts_below = counts.cumsum()[last]
    counts_above = counts.sum() - counts_below
    below_is_large = is_large_enough(widths_below, counts_below, budget)
    above_is_large = is_large_enough(widths_above, counts_above, budget)
    allowed = np.flatnonzero(below_is_large & above_is_large)
    if not len(allowed):
        return None
    costs = cost(widths_below, counts_below, budget) + cost(widths_above, counts_above, budget)
    # Costs are integers, and the first of equal ones wins: every machine makes the same cut.
    cheapest = allowed[costs[allowed].argmin()]
    end = last[cheapest] + 1
    return Cut(int(costs[cheapest]), below=order[:end], above=order[end:])


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

    order: "NDArray[np.signedinteger[Any]] | MappedOrder"
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


class Cells:
    """The cells of the table that counts pairs by source and target width."""

    def __init__(
        self, source_lengths: Lengths | GrownLengths, target_lengths: Lengths | GrownLengths
    ) -> None:
        source_widths, self.columns = widths_by_length(source_lengths)
        target_widths, rows = widths_by_length(target_lengths)
        self.source_lengths = source_lengths
        self.target_lengths = target_lengths
        # A column per source width and a row per target width, row by row.
        self.widths = np.stack(
            [
                np.tile(source_widths, len(target_widths)),
                np.repeat(target_widths, len(source_widths)),
            ]
        )
        # The first cell of the row of each target length.
        self.starts_of_rows = rows * len(source_widths)

    def of_blocks(self) -> Iterator[Ints]:
        """The cell of each pair, for one block of pairs after another."""
        for start in range(0, len(self.source_lengths), BLOCK_PAIRS):
            block = slice(start, start + BLOCK_PAIRS)
            # `clip` changes no index, because no length exceeds the longest. It is faster than the
            # default, which checks each index before it reads.
            cells = self.starts_of_rows.take(self.target_lengths[block], mode="clip")
            cells += self.columns.take(self.source_lengths[block], mode="clip")
            yield cells


@dataclass
class Division:
    """Groups without the list of their pairs. `starts` and `widths` are as in Groups."""

    cells: Cells
    group_of_cell: NDArray[Any]
    starts: Ints
    widths: Ints

    @property
    def pairs(self) -> int:
        return int(self.starts[-1])

    def group_blocks(self) -> Iterator[NDArray[Any]]:
        """The group of each pair, in the order of the corpus, in blocks."""
        # Cells are computed again instead of stored, so that only `order` has an item per pair.
        for cells in self.cells.of_blocks():
            yield self.group_of_cell.take(cells)


def divide(
    source_lengths: Lengths | GrownLengths, target_lengths: Lengths | GrownLengths, budget: int
) -> Division:
    """Choose groups for micro-batches of at most `budget` padded tokens per side."""
    cells = Cells(source_lengths, target_lengths)
    counts = np.zeros(cells.widths.shape[1], np.int64)
    for block in cells.of_blocks():
        counts += np.bincount(block, minlength=len(counts))
    # Most combinations of lengths occur in no pair.
    filled = np.flatnonzero(counts)
    parts = partition(cells.widths[:, filled], counts[filled], budget)
    # NumPy sorts integers of up to 16 bits in linear time, and 16 bits suffice unless micro-batches
    # are tiny.
    group_of_cell = np.zeros(len(counts), np.min_scalar_type(len(parts)))
    sizes = []
    widths = []
    for group, part in enumerate(parts):
        cells_of_group = filled[part]
        group_of_cell[cells_of_group] = group
        sizes.append(counts[cells_of_group].sum())
        widths.append(cells.widths[:, cells_of_group].max(1))
    return Division(cells, group_of_cell, np.cumsum([0, *sizes]), np.stack(widths, axis=1))


def group_by_lengths(
    source_lengths: Lengths | GrownLengths, target_lengths: Lengths | GrownLengths, budget: int
) -> Groups:
    """Group pairs for micro-batches of at most `budget` padded tokens per side, in memory."""
    return groups_in_memory(divide(source_lengths, target_lengths, budget))


def groups_in_memory(division: Division) -> Groups:
    order = pairs_by_group(division.group_blocks(), division.starts)
    return Groups(order, division.starts, division.widths)
