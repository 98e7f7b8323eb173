"""Choose the sentences of update n from sentence lengths, seed and n alone, so that training can start at any update.

Grouping: a table counts the pairs by source and target length. It is recursively cut in two, along whichever
length saves the most padding. All pairs in a resulting group are padded to the same widths. Two arrays describe the
table's cells: `widths` [2, cells] holds source and target widths, and `counts` [cells] holds the numbers of pairs.

Batching: each group is cut into micro-batches of at most `budget` padded tokens per side. The cuts depend only on
lengths, so each pass over the corpus has the same number of micro-batches, M. The seed and the pass determine the
order of the pairs in each group and the order of the micro-batches. Micro-batch g belongs to pass g // M. With m
micro-batches per update, update n starts at micro-batch n * m.

Mixtures: rows are ordered by source. In each group, a source's pairs form an endless stream of shuffled rounds. Each
pass takes `copies` times the source's number of pairs from this stream; `copies` need not be an integer.

Shuffling: a keyed cipher permutes the numbers below n, so no list has to be stored and shuffled. This cipher is
a Feistel network on the numbers below a square, applied until the result is below n (method 3 of Black and
Rogaway 2002, "Ciphers with arbitrary finite domains").
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nmt.config import BatchingConfig, SourceConfig, require
from nmt.data.lengths import GrownLengths, Lengths

if TYPE_CHECKING:
    from torch import Tensor

Ints = NDArray[np.int64]
Integers = TypeVar("Integers", Ints, "Tensor")
MOST_COPIES = 64  # maximum length of a pass, as a multiple of the corpus size
MIN_MICRO_BATCHES = (
    3  # per group; in a smaller group, the same pairs would be batched together in every pass
)
PADDING_SHARE = (
    0.02  # a group with less padding is not cut, because pairs are shuffled less in smaller groups
)
BLOCK_PAIRS = (
    1 << 20
)  # pairs processed at a time, so that temporary arrays stay in cache and do not add to peak memory
ROUNDS = (
    8  # rounds of the cipher; with only six, some permutations of a few dozen items occur too often
)
# Signed, because PyTorch lacks unsigned arithmetic. The increment is 2^64 divided by the golden ratio.
INCREMENT = 0x9E3779B97F4A7C15 - 2**64
MIXERS = ((30, 0xBF58476D1CE4E5B9 - 2**64), (27, 0x94D049BB133111EB - 2**64))


def shifted(values: Integers, bits: int) -> Integers:
    """Shift 64-bit integers right, filling with zeros."""
    return (values >> bits) & ((1 << (64 - bits)) - 1)


def splitmix(states: Integers) -> Integers:
    """Replace these states with their SplitMix64 outputs, in place (Steele, Lea and Flood 2014, figure 17)."""
    for bits, factor in MIXERS:
        states ^= shifted(states, bits)
        states *= factor
    states ^= shifted(states, 31)
    return states


def integers(numbers: ArrayLike) -> Ints:
    # Return at least one dimension, because NumPy warns if a product of 64-bit scalars overflows.
    return np.atleast_1d(np.asarray(numbers)).astype(np.int64)


def shuffle_key(*numbers: ArrayLike) -> Ints:
    """A key that depends on all `numbers`; an array of keys if some of them are arrays."""
    key = integers(0)
    for number in numbers:
        key = splitmix((key ^ integers(number)) + INCREMENT)
    return key


def shuffled(indices: NDArray[Any], size: ArrayLike, key: Ints) -> Ints:
    """The items at `indices` after shuffling range(size) with `key`; each index may have its own size and key."""
    sizes, keys = (np.broadcast_to(integers(values), indices.shape) for values in (size, key))
    # The square is only slightly larger than the range. For sizes below 2**52, the root is exact enough.
    sides = np.ceil(np.sqrt(sizes)).astype(np.int64)
    items, outside = integers(indices), np.arange(len(indices))
    while len(outside):
        side, round_key = sides[outside], keys[outside]
        left, right = np.divmod(items[outside], side)
        for _ in range(ROUNDS):
            round_key = round_key + INCREMENT
            left, right = (
                right,
                (left + (shifted(splitmix((right ^ round_key) + INCREMENT), 32) * side >> 32))
                % side,
            )
        items[outside] = left * side + right
        outside = outside[items[outside] >= sizes[outside]]
    return items


def bucket_widths(lengths: NDArray[Any]) -> Ints:
    """Round lengths above 64 up to multiples of 2, lengths above 128 up to multiples of 4, and so on."""
    steps = 2 ** np.maximum(np.frexp(lengths - 1)[1].astype(np.int64) - 6, 0)
    return np.asarray(-(-lengths // steps) * steps)


def cost(widths: Ints, counts: Ints, budget: int) -> Ints:
    """The cost of micro-batches of these widths: 2 for each position in a pair's row, 1 for each in an unused row."""
    rows = budget // widths.max(0)
    return np.asarray((counts + -(-counts // rows) * rows) * widths.sum(0))


def best_cut(widths: Ints, counts: Ints, side: int, budget: int) -> tuple[int, Ints, Ints] | None:
    """The best cut along one side's lengths: its cost and the cells of both parts; None if no cut is allowed."""
    order = np.argsort(widths[side], kind="stable")
    widths, counts = widths[:, order], counts[order]
    # A cut may follow the last cell of each width. Compute both parts' widths and counts for all cuts at once.
    last = np.flatnonzero(np.diff(widths[side]))
    below = np.maximum.accumulate(widths, axis=1)[:, last], counts.cumsum()[last]
    above = (
        np.maximum.accumulate(widths[:, ::-1], axis=1)[:, ::-1][:, last + 1],
        counts.sum() - below[1],
    )
    enough = [part[1] >= MIN_MICRO_BATCHES * (budget // part[0].max(0)) for part in (below, above)]
    allowed = np.flatnonzero(enough[0] & enough[1])
    if not len(allowed):
        return None
    costs = cost(*below, budget) + cost(*above, budget)
    best = allowed[costs[allowed].argmin()]
    return int(costs[best]), order[: last[best] + 1], order[last[best] + 1 :]


def partition(widths: Ints, counts: Ints, budget: int) -> list[Ints]:
    """Split cells into groups as long as that saves padding; return each group's cells."""
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
    order: NDArray[
        np.signedinteger[Any]
    ]  # [pairs], the pairs of the first group, then of the second, and so on
    starts: Ints  # [groups + 1], each group's start in `order`, then the end of the last group
    widths: Ints  # [2, groups], each group's maximum source and target width

    def pairs_between(self, bounds: Ints) -> Ints:
        """How many pairs of each group lie between two bounds, [bounds - 1, groups]."""
        # Groups list their pairs in row order. NumPy would copy `order` if the types differed.
        bounds_of_order = bounds.astype(self.order.dtype)
        places = [
            np.searchsorted(self.order[begin:end], bounds_of_order)
            for begin, end in pairwise(self.starts.tolist())
        ]
        places_BG = np.stack(places, axis=1)  # of each bound in each group
        return integers(places_BG[1:] - places_BG[:-1])


def group_by_lengths(
    source_lengths: Lengths | GrownLengths, target_lengths: Lengths | GrownLengths, budget: int
) -> Groups:
    """Group pairs for micro-batches of at most `budget` padded tokens per side."""
    # Cap widths at the longest sentence, which may fill a micro-batch by itself.
    (source_widths, source_index), (target_widths, target_index) = (
        np.unique(np.minimum(bucket_widths(np.arange(longest + 1)), longest), return_inverse=True)
        for longest in (int(source_lengths.max()), int(target_lengths.max()))
    )
    grid = np.stack(
        [np.tile(source_widths, len(target_widths)), np.repeat(target_widths, len(source_widths))]
    )
    blocks = [
        slice(start, start + BLOCK_PAIRS) for start in range(0, len(source_lengths), BLOCK_PAIRS)
    ]

    def cells_of(block: slice) -> Ints:
        row = target_index[target_lengths[block]]
        return np.asarray(row * len(source_widths) + source_index[source_lengths[block]])

    counts = np.zeros(grid.shape[1], np.int64)
    for block in blocks:
        counts += np.bincount(cells_of(block), minlength=len(counts))
    filled = np.flatnonzero(counts)
    groups = [filled[members] for members in partition(grid[:, filled], counts[filled], budget)]
    # NumPy sorts integers of up to 16 bits in linear time, and 16 bits suffice unless micro-batches are tiny.
    group_of_cell = np.zeros(len(counts), np.min_scalar_type(len(groups)))
    for group, members in enumerate(groups):
        group_of_cell[members] = group
    starts = np.cumsum([0, *(counts[members].sum() for members in groups)])
    # Cells are computed again instead of stored, so that only `order` needs memory for each pair.
    group_blocks = (group_of_cell[cells_of(block)] for block in blocks)
    order = rows_by_group(group_blocks, starts)
    return Groups(order, starts, np.stack([grid[:, members].max(1) for members in groups], axis=1))


def rows_by_group(
    group_blocks: Iterable[NDArray[Any]], starts: Ints
) -> NDArray[np.signedinteger[Any]]:
    """The rows of each group in turn, ascending; `group_blocks` contain the group of every row, in row order."""
    rows = int(starts[-1])
    order = np.empty(rows, np.min_scalar_type(-rows - 1))  # a type that also holds `rows`
    free = starts[:-1].copy()  # for each group, where its next row goes
    first_row = 0
    for groups in group_blocks:
        sorted_rows = np.argsort(groups, kind="stable")
        counts = np.bincount(groups, minlength=len(free))
        offsets = free - (np.cumsum(counts) - counts)
        order[np.arange(len(groups)) + np.repeat(offsets, counts)] = first_row + sorted_rows
        free += counts
        first_row += len(groups)
    return order


class Mixture(NamedTuple):
    """For each source of a corpus: its rows, how often its pairs occur in a pass, and how much they may grow."""

    bounds: Ints  # [sources + 1], each source's first row, then the end of the last source
    copies: NDArray[
        np.float64
    ]  # [sources], how often each pair occurs in a pass, usually 1 or more
    growth: NDArray[
        np.float64
    ]  # [sources], the factor by which planning expects transforms to lengthen sentences


def added_up(numbers: Iterable[float]) -> float:
    """The sum, rounded after each addition.

    Since Python 3.12, `sum` rounds less often. Passes would differ from those of earlier versions.
    """
    total = 0.0
    for number in numbers:
        total += number
    return total


def source_copies(
    sources: Sequence[SourceConfig], sizes: Sequence[int], temperature: float
) -> NDArray[np.float64]:
    """How many times each pair of a source is used per pass; NMTError if a source would get less than one sentence.

    Each source with a `share` gets that part of an update; the others divide up the rest in proportion to
    (weight x pairs)^(1 / temperature).
    """
    weights = [
        (source.weight * size) ** (1 / temperature)
        for source, size in zip(sources, sizes, strict=True)
    ]
    parts = [
        0.0 if source.share else weight for source, weight in zip(sources, weights, strict=True)
    ]
    rest = 1 - added_up(source.share or 0 for source in sources)
    total = added_up(parts)
    result = [
        source.share or rest * part / total for source, part in zip(sources, parts, strict=True)
    ]
    pairs, shares = np.array(sizes), np.array(result) / added_up(result)
    # A pass contains each pair at least once, unless that would make it too long.
    taken = shares * min(np.max(pairs / np.maximum(shares, 1e-12)), MOST_COPIES * pairs.sum())
    name = sources[int(taken.argmin())].name
    require(
        taken.min() >= 1,
        f"data.sources: the shares give {name} less than one sentence in {taken.sum():,.0f}",
    )
    return np.asarray(taken / pairs)


class UpdateSize(NamedTuple):
    """An update's size: tokens including end symbols, positions including padding, and query-key pairs."""

    source_tokens: int = 1
    target_tokens: int = 1
    positions: int = 2
    encoder_pairs: int = 1
    decoder_pairs: int = 1  # in self-attention
    cross_pairs: int = 1  # in cross-attention

    def __add__(self, other: Any) -> "UpdateSize":
        return UpdateSize(*map(sum, zip(self, other, strict=True)))

    @property
    def padding(self) -> float:
        return 1 - (self.source_tokens + self.target_tokens) / self.positions


def pairs_before(lengths: Ints, reach: int) -> int:
    """Count pairs of a position and one of the `reach` positions before it, over all sentences of these lengths."""
    seen = np.minimum(reach, lengths - 1)
    return int(seen @ (2 * lengths - seen - 1)) // 2


def micro_batch_size(source: Ints, target: Ints, attention_window: int | None = None) -> UpdateSize:
    """The size of a micro-batch whose sentences have these lengths; `attention_window` restricts self-attention."""
    r = attention_window or 2 * int(max(source.max(), target.max()))
    return UpdateSize(
        source_tokens=int(source.sum()),
        target_tokens=int(target.sum()),
        positions=len(source) * int(source.max() + target.max()),
        encoder_pairs=int(source.sum())
        + pairs_before(source, r // 2)
        + pairs_before(source, r - r // 2 - 1),
        decoder_pairs=int(target.sum()) + pairs_before(target, r - 1),
        cross_pairs=int(source @ target),
    )


class MicroBatch(NamedTuple):
    indices: Ints  # corpus rows
    update: int
    micro_batch: int
    size: UpdateSize  # of the whole update
    widths: tuple[int, int]  # maximum source and target length, including the end symbol


class BatchPlanner:
    """Plans the micro-batches of any update (section 5.1) from lengths that include the end symbol.

    Each pass makes one micro-batch of each part of a group. Arrays are [groups] or, in a mixture, [sources, groups].
    """

    def __init__(
        self,
        source_lengths: Lengths,
        target_lengths: Lengths,
        batching: BatchingConfig,
        seed: int,
        attention_window: int | None = None,
        mixture: Mixture | None = None,
    ) -> None:
        self.micro_batches, self.seed, self.attention_window = (
            batching.micro_batches,
            seed % 2**64,
            attention_window,
        )
        self.lengths = [source_lengths, target_lengths]
        planned: list[Lengths | GrownLengths] = [*self.lengths]
        if mixture:
            planned = [GrownLengths(side, mixture.bounds, mixture.growth) for side in self.lengths]
        longest = int(max(side.max() for side in planned))
        budget = batching.tokens_per_update // self.micro_batches
        require(
            longest <= budget,
            f"batching.tokens_per_update={batching.tokens_per_update} and batching.micro_batches={self.micro_batches} "
            f"leave {budget} tokens per micro-batch, but the longest sentence has {longest}: "
            "raise batching.tokens_per_update or lower batching.micro_batches",
        )
        self.groups = group_by_lengths(planned[0], planned[1], budget)
        self.is_mixed = mixture is not None
        self.sizes = np.diff(self.groups.starts)
        if mixture:
            self.source_sizes = self.groups.pairs_between(mixture.bounds)
            self.source_begins = self.source_sizes.cumsum(0) - self.source_sizes
            # How many pairs a pass takes from each source and group, rounded so that each source's total is right.
            upto = np.rint(self.source_sizes.cumsum(1) * mixture.copies[:, None]).astype(np.int64)
            self.taken = np.diff(upto, axis=1, prepend=0)
            self.taken_ends = self.taken.cumsum(0)
            self.sizes = self.taken_ends[-1]
        # Each group is cut into equal parts, so that none of its micro-batches is nearly empty.
        self.parts = -(-self.sizes // (budget // self.groups.widths.max(0)))
        self.first_parts = np.cumsum(self.parts) - self.parts
        self.group_of_part = np.repeat(np.arange(len(self.parts)), self.parts)
        self.micro_batches_per_pass = len(self.group_of_part)

    def update(self, number: int) -> list[MicroBatch]:
        micro_batches = number * self.micro_batches + np.arange(self.micro_batches)
        passes, indices = np.divmod(micro_batches, self.micro_batches_per_pass)
        # Shuffle the micro-batches as if they were the pairs of one more group, whose number no real group has.
        order_key = shuffle_key(self.seed, passes, len(self.groups.starts) - 1)
        parts = shuffled(indices, self.micro_batches_per_pass, order_key)
        members = self.pairs(passes, parts)
        lengths = [[side[pairs].astype(np.int64) for side in self.lengths] for pairs in members]
        sizes = [
            micro_batch_size(source, target, self.attention_window) for source, target in lengths
        ]
        size = sum(sizes[1:], start=sizes[0])
        widths = self.groups.widths[:, self.group_of_part[parts]].T.tolist()
        return [
            MicroBatch(pairs, number, micro_batch, size, (source, target))
            for micro_batch, (pairs, (source, target)) in enumerate(
                zip(members, widths, strict=True)
            )
        ]

    def pairs(self, passes: Ints, parts: Ints) -> list[Ints]:
        """The corpus rows in each part, for the pass that the part belongs to."""
        groups = self.group_of_part[parts]
        sizes, count, number = (
            self.sizes[groups],
            self.parts[groups],
            parts - self.first_parts[groups],
        )
        begins, ends = number * sizes // count, (number + 1) * sizes // count
        rows = ends - begins
        # For all parts at once: each row's index within its group, which the cipher then shuffles.
        indices = np.arange(rows.sum()) - np.repeat(np.cumsum(rows) - rows - begins, rows)
        within = shuffled(
            indices, np.repeat(sizes, rows), np.repeat(shuffle_key(self.seed, passes, groups), rows)
        )
        if self.is_mixed:
            within = self.of_streams(np.repeat(passes, rows), np.repeat(groups, rows), within)
        pairs = self.groups.order[np.repeat(self.groups.starts[groups], rows) + within].astype(
            np.int64
        )
        return np.split(pairs, np.cumsum(rows)[:-1])

    def of_streams(self, passes: Ints, groups: Ints, indices: Ints) -> Ints:
        """Map each index into the pairs that a pass takes from a group to the index of a pair in the group."""
        sources = (indices >= self.taken_ends[:, groups]).sum(0)
        taken, sizes = self.taken[sources, groups], self.source_sizes[sources, groups]
        rounds, within = np.divmod(
            passes * taken + indices - (self.taken_ends[sources, groups] - taken), sizes
        )
        keys = shuffle_key(self.seed, 0, rounds, groups, sources)
        return np.asarray(self.source_begins[sources, groups] + shuffled(within, sizes, keys))

    def largest_shapes(self) -> list[tuple[int, int, int]]:
        """Rows, source width and target width of the micro-batches with the most positions or position pairs."""
        rows, (source, target) = -(-self.sizes // np.maximum(self.parts, 1)), self.groups.widths
        heaviest = {
            int((rows * (source + target)).argmax()),
            int((rows * self.groups.widths.max(0) ** 2).argmax()),
        }
        return [
            (int(rows[group]), int(source[group]), int(target[group])) for group in sorted(heaviest)
        ]
