"""Groups of sentence pairs that are similar enough in both lengths to be padded to the same widths.

Pairs are counted by source and target length, and the table of these counts is cut in two, recursively, along
whichever length saves the most padding. Each group ends up with little padding or few micro-batches, but with enough
of them to shuffle: a large corpus gets fine groups, a small one coarse groups. The cells of the table are arrays:
`widths` [2, cells] of source and target, and `counts` [cells] of pairs.
"""

from typing import Any, NamedTuple

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
    steps = 2 ** np.maximum(np.frexp(lengths - 1)[1].astype(np.int64) - 6, 0)
    widths: Ints = -(-lengths // steps) * steps
    return widths


def cost(widths: Ints, counts: Ints, budget: int) -> Ints:
    """Twice the positions of pairs in micro-batches of these widths ([2, ...]), with empty rows counted half.

    Unlike padding, an empty row takes no time, but it makes its update smaller.
    """
    rows = budget // widths.max(0)
    positions: Ints = (counts + -(-counts // rows) * rows) * widths.sum(0)
    return positions


def best_cut(widths: Ints, counts: Ints, side: int, budget: int) -> tuple[int, Ints, Ints] | None:
    """The best cut along one side's lengths: its cost, and the cells of both parts; None where there is no cut."""
    order = np.argsort(widths[side], kind="stable")
    widths, counts = widths[:, order], counts[order]
    # A cut may follow the last cell of each width. The widths and counts of both parts, for all cuts at once:
    last = np.flatnonzero(np.diff(widths[side]))
    below = np.maximum.accumulate(widths, axis=1)[:, last], counts.cumsum()[last]
    above = np.maximum.accumulate(widths[:, ::-1], axis=1)[:, ::-1][:, last + 1], counts.sum() - below[1]
    enough = [part[1] >= MIN_MICRO_BATCHES * (budget // part[0].max(0)) for part in (below, above)]
    allowed = np.flatnonzero(enough[0] & enough[1])
    if not len(allowed):
        return None
    costs = cost(*below, budget) + cost(*above, budget)
    best = allowed[costs[allowed].argmin()]
    return int(costs[best]), order[: last[best] + 1], order[last[best] + 1 :]


def partition(widths: Ints, counts: Ints, budget: int) -> list[Ints]:
    """Cut the cells into groups, as long as that saves padding; the cells of each group."""
    groups, uncut = [], [np.arange(len(counts))]
    while uncut:
        members = uncut.pop()
        part = widths[:, members], counts[members]
        total, widest = part[1].sum(keepdims=True), part[0].max(1, keepdims=True)
        padding = 1 - (part[1] * part[0].sum(0)).sum() / (total[0] * widest.sum())
        cuts = [best_cut(*part, side, budget) for side in (0, 1)] if padding > PADDING_SHARE else []
        best = min(filter(None, cuts), key=lambda cut: cut[0], default=None)
        if best and best[0] < int(cost(widest, total, budget)[0]):
            uncut += [members[best[2]], members[best[1]]]
        else:
            groups.append(members)
    return groups


class Groups(NamedTuple):
    """The pairs of a corpus in groups."""

    order: NDArray[np.signedinteger[Any]]  # [pairs], the pairs of the first group, of the second, ...
    starts: Ints  # [groups + 1], where in `order` each group begins, and its end
    widths: Ints  # [2, groups], the widest source and target


def group_by_lengths(source_lengths: NDArray[Any], target_lengths: NDArray[Any], budget: int) -> Groups:
    """Group pairs for micro-batches of at most `budget` padded tokens on either side."""
    # Not wider than the longest sentence, which may fill a micro-batch by itself.
    (source_widths, source_index), (target_widths, target_index) = (
        np.unique(np.minimum(bucket_widths(np.arange(longest + 1)), longest), return_inverse=True)
        for longest in (int(source_lengths.max()), int(target_lengths.max()))
    )
    grid = np.stack([np.tile(source_widths, len(target_widths)), np.repeat(target_widths, len(source_widths))])
    counts, cell_of_pair = np.zeros(grid.shape[1], np.int64), np.empty(len(source_lengths), np.int32)
    for start in range(0, len(cell_of_pair), BLOCK_PAIRS):
        block = slice(start, start + BLOCK_PAIRS)
        cells = target_index[target_lengths[block]] * len(source_widths) + source_index[source_lengths[block]]
        counts += np.bincount(cells, minlength=len(counts))
        cell_of_pair[block] = cells
    filled = np.flatnonzero(counts)
    groups = [filled[members] for members in partition(grid[:, filled], counts[filled], budget)]
    # numpy sorts integers of up to 16 bits in linear time, and these suffice unless micro-batches are tiny.
    group_of_cell = np.zeros(len(counts), np.min_scalar_type(len(groups)))
    for group, members in enumerate(groups):
        group_of_cell[members] = group
    order = np.argsort(group_of_cell[cell_of_pair], kind="stable").astype(np.min_scalar_type(-len(cell_of_pair)))
    starts = np.cumsum([0, *(counts[members].sum() for members in groups)])
    return Groups(order, starts, np.stack([grid[:, members].max(1) for members in groups], axis=1))
