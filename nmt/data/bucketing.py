"""Groups of interchangeable sentence pairs: alike enough in both lengths to be padded to the same widths.

Pairs are counted by source and target length, and the plane of these counts is cut in two, again and again, along
whichever length saves the most padding. A group ends up with little padding or few micro-batches, never too few to
be shuffled among: a large corpus gets fine groups, a small one coarse ones.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

MIN_MICRO_BATCHES = 3
"""A group is not cut where a part would fill less: its pairs would meet the same company in every pass."""
PADDING_SHARE = 0.02
"""A group with no more padding than this is not cut: finer groups would mix less and gain nothing."""
BLOCK_PAIRS = 1 << 20
"""Pairs looked at together, so that temporary arrays stay in the processor's cache and out of the memory's peak."""


def bucket_widths(lengths: NDArray[Any]) -> Ints:
    """Each length rounded up to its bucket's: steps of 1 up to 64, then 32 steps for each doubling."""
    lengths = np.asarray(lengths, dtype=np.int64)
    steps = 2 ** np.maximum(np.frexp(lengths - 1)[1].astype(np.int64) - 6, 0)
    widths: Ints = -(-lengths // steps) * steps
    return widths


@dataclass
class Cells:
    """Pairs counted by their widths."""

    widths: Ints
    """[2, cells]: source and target."""
    counts: Ints

    def __getitem__(self, chosen: Ints) -> "Cells":
        return Cells(self.widths[:, chosen], self.counts[chosen])

    @property
    def padding(self) -> float:
        """The share of padding where all pairs are as wide as the widest."""
        real = (self.counts * self.widths.sum(0)).sum()
        return float(1 - real / (self.counts.sum() * self.widths.max(1).sum()))


def count_cells(source_lengths: NDArray[Any], target_lengths: NDArray[Any]) -> tuple[Cells, NDArray[np.int32]]:
    """All pairs of a source and a target width, most of them with a count of 0, and the cell of each pair."""
    widths, indices = [], []
    for lengths in (source_lengths, target_lengths):
        longest = int(lengths.max())
        # No wider than the longest sentence, which may fill a micro-batch by itself.
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
    """Twice the positions that pairs need in micro-batches of these widths ([2, ...]), empty rows at half their size.

    An empty row takes no time, as padding does, but makes its update smaller.
    """
    rows = budget // widths.max(0)
    filled_up = -(-counts // rows) * rows
    positions: Ints = (counts + filled_up) * widths.sum(0)
    return positions


def best_cut(cells: Cells, side: int, budget: int) -> tuple[int, Ints, Ints] | None:
    """Cut along the lengths of one side: the cost of both parts, and the cells of each; None where it cannot be cut."""
    order = np.argsort(cells.widths[side], kind="stable")
    ordered = cells[order]
    # A cut may lie behind the last cell of each width. What a part holds and how wide it is, of all cuts at once:
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
    """The cells of each group."""
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
    """The pairs of a corpus, group by group."""

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
    # 16 bits suffice unless micro-batches are tiny, and these numpy sorts in linear time.
    group_of_cell = np.zeros(len(grid.counts), np.min_scalar_type(len(groups)))
    for group, members in enumerate(groups):
        group_of_cell[filled[members]] = group
    order = np.argsort(group_of_cell[cell_of_pair], kind="stable")
    return Groups(
        order=order.astype(np.min_scalar_type(-len(order))),
        starts=np.cumsum([0, *(cells.counts[members].sum() for members in groups)]),
        widths=np.stack([cells.widths[:, members].max(1) for members in groups], axis=1),
    )
