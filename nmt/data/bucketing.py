"""Groups of sentence pairs that are similar enough in both lengths to be padded to the same widths.

Pairs are counted by source and target length, and the table of these counts is cut in two, recursively, along
whichever length saves the most padding. Each group ends up with little padding or few micro-batches, but with enough
of them to shuffle: a large corpus gets fine groups, a small one coarse groups.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.data.shuffling import Ints

MIN_MICRO_BATCHES = 3
"""A group is not cut where a part would fill fewer: its pairs would be batched together again in every pass."""
PADDING_SHARE = 0.02
"""A group with no more padding than this is not cut: finer groups would be shuffled less and gain nothing."""
BLOCK_PAIRS = 1 << 20
"""Pairs processed at a time, so that temporary arrays stay in the processor's cache and do not add to peak memory."""


def bucket_widths(lengths: NDArray[Any]) -> Ints:
    """Each length rounded up to the width of its bucket: in steps of 1 up to 64, then 32 steps for each doubling."""
    lengths = np.asarray(lengths, dtype=np.int64)
    steps = 2 ** np.maximum(np.frexp(lengths - 1)[1].astype(np.int64) - 6, 0)
    widths: Ints = -(-lengths // steps) * steps
    return widths


@dataclass
class Cells:
    """Numbers of pairs by width."""

    widths: Ints
    """[2, cells]: source and target."""
    counts: Ints

    def __getitem__(self, chosen: Ints) -> "Cells":
        return Cells(self.widths[:, chosen], self.counts[chosen])

    @property
    def padding(self) -> float:
        """The share of padding when all pairs are padded to the widest."""
        real = (self.counts * self.widths.sum(0)).sum()
        return float(1 - real / (self.counts.sum() * self.widths.max(1).sum()))


def count_cells(source_lengths: NDArray[Any], target_lengths: NDArray[Any]) -> tuple[Cells, NDArray[np.int32]]:
    """A cell for every combination of widths, most of them with a count of 0, and the cell of each pair."""
    widths, indices = [], []
    for lengths in (source_lengths, target_lengths):
        longest = int(lengths.max())
        # Not wider than the longest sentence, which may fill a micro-batch by itself.
        of_length = np.minimum(bucket_widths(np.arange(longest + 1)), longest)
        side, index_of_length = np.unique(of_length, return_inverse=True)
        widths.append(side)
        indices.append(index_of_length)
    columns = len(widths[0])
    counts = np.zeros(columns * len(widths[1]), np.int64)
    cell_of_pair = np.empty(len(source_lengths), np.int32)
    for start in range(0, len(cell_of_pair), BLOCK_PAIRS):
        block = slice(start, start + BLOCK_PAIRS)
        cells = indices[1][target_lengths[block]] * columns + indices[0][source_lengths[block]]
        counts += np.bincount(cells, minlength=len(counts))
        cell_of_pair[block] = cells
    grid = np.stack([np.tile(widths[0], len(widths[1])), np.repeat(widths[1], columns)])
    return Cells(grid, counts), cell_of_pair


def cost(counts: Ints, widths: Ints, budget: int) -> Ints:
    """Twice the positions of pairs in micro-batches of these widths ([2, ...]), with empty rows counted half.

    Unlike padding, an empty row takes no time, but it makes its update smaller.
    """
    rows = budget // widths.max(0)
    filled_up = -(-counts // rows) * rows
    positions: Ints = (counts + filled_up) * widths.sum(0)
    return positions


def best_cut(cells: Cells, side: int, budget: int) -> tuple[int, Ints, Ints] | None:
    """The best cut along one side's lengths: its cost, and the cells of both parts; None where there is no cut."""
    order = np.argsort(cells.widths[side], kind="stable")
    ordered = cells[order]
    # A cut may follow the last cell of each width. The counts and widths of both parts, for all cuts at once:
    last = np.flatnonzero(np.diff(ordered.widths[side]))
    below = ordered.counts.cumsum()[last]
    above = ordered.counts.sum() - below
    widths_below = np.maximum.accumulate(ordered.widths, axis=1)[:, last]
    widths_above = np.maximum.accumulate(ordered.widths[:, ::-1], axis=1)[:, ::-1][:, last + 1]
    enough = [
        counts >= MIN_MICRO_BATCHES * (budget // widths.max(0))
        for counts, widths in ((below, widths_below), (above, widths_above))
    ]
    allowed = np.flatnonzero(enough[0] & enough[1])
    if not len(allowed):
        return None
    costs = cost(below, widths_below, budget) + cost(above, widths_above, budget)
    best = allowed[costs[allowed].argmin()]
    return int(costs[best]), order[: last[best] + 1], order[last[best] + 1 :]


def partition(cells: Cells, budget: int) -> list[Ints]:
    """Cut the cells into groups, as long as that saves padding; the cells of each group."""
    groups, uncut = [], [np.arange(len(cells.counts))]
    while uncut:
        members = uncut.pop()
        part = cells[members]
        cuts = []
        if part.padding > PADDING_SHARE:
            cuts = [cut for side in (0, 1) if (cut := best_cut(part, side, budget))]
        best = min(cuts, key=lambda cut: cut[0], default=None)
        uncut_cost = cost(part.counts.sum(keepdims=True), part.widths.max(1, keepdims=True), budget)
        if best and best[0] < int(uncut_cost[0]):
            uncut += [members[best[2]], members[best[1]]]
        else:
            groups.append(members)
    return groups


@dataclass
class Groups:
    """The pairs of a corpus in groups."""

    order: NDArray[np.signedinteger[Any]]
    """[pairs]: the pairs of the first group, of the second, ..."""
    starts: Ints
    """[groups + 1]: where in `order` each group begins, and its end."""
    widths: Ints
    """[2, groups]: the widest source and target."""


def group_by_lengths(source_lengths: NDArray[Any], target_lengths: NDArray[Any], budget: int) -> Groups:
    """Group pairs for micro-batches of at most `budget` padded tokens on either side."""
    grid, cell_of_pair = count_cells(source_lengths, target_lengths)
    filled = np.flatnonzero(grid.counts)
    cells = grid[filled]
    groups = partition(cells, budget)
    # numpy sorts integers of up to 16 bits in linear time, and these suffice unless micro-batches are tiny.
    group_of_cell = np.zeros(len(grid.counts), np.min_scalar_type(len(groups)))
    for group, members in enumerate(groups):
        group_of_cell[filled[members]] = group
    order = np.argsort(group_of_cell[cell_of_pair], kind="stable")
    return Groups(
        order=order.astype(np.min_scalar_type(-len(order))),
        starts=np.cumsum([0, *(cells.counts[members].sum() for members in groups)]),
        widths=np.stack([cells.widths[:, members].max(1) for members in groups], axis=1),
    )
