"""Choose the sentences of update n from sentence lengths, seed and n alone.

That way, training can start at any update. Each group of pairs of similar lengths, as grouping.py
makes them, is cut into micro-batches of at most `budget` padded tokens per side. The cuts depend
only on lengths, so each pass over the corpus has the same number of micro-batches, M. The seed and
the pass determine the order of the pairs in each group and the order of the micro-batches.
Micro-batch g belongs to pass g // M. With m micro-batches per update, update n starts at
micro-batch n * m.
"""

from fractions import Fraction
from math import ceil
from typing import NamedTuple, Protocol

import numpy as np

from nmt.config import BatchingConfig, NMTError
from nmt.data.lengths import GrownLengths, Ints, Lengths
from nmt.data.mixing import Mixture, Streams
from nmt.data.sharing import shared_groups
from nmt.data.shuffling import shuffle_key, shuffled
from nmt.data.sizes import UpdateSize, micro_batch_size


class MicroBatch(NamedTuple):
    """A planned micro-batch."""

    indices: Ints
    """Corpus rows."""
    update: int
    micro_batch: int
    size: UpdateSize
    """The size of the whole update."""
    widths: tuple[int, int]
    """The maximum source and target length, including the end symbol."""
    joined: Ints | None = None
    """How many consecutive rows, from each of `indices` on, are joined; None: all are single."""

    def rows(self) -> Ints:
        """All corpus rows, those of a joined pair in order."""
        if self.joined is None:
            return self.indices
        # The number of rows before those of each pair.
        before = self.joined.cumsum() - self.joined
        return np.arange(self.joined.sum()) + np.repeat(self.indices - before, self.joined)


class PlannedRows(NamedTuple):
    """The rows of a micro-batch, whichever update it is in."""

    indices: Ints
    size: UpdateSize
    widths: tuple[int, int]
    joined: Ints | None = None


class Planner(Protocol):
    """Plans the micro-batches of any update."""

    micro_batches: int
    unshared: str
    """Why processes do not share the order of a large corpus; empty if they do."""

    @property
    def micro_batches_per_pass(self) -> float:
        """On average, if passes differ."""

    @property
    def pairs_per_pass(self) -> int: ...

    @property
    def order_bytes(self) -> int:
        """The size of the order of the corpus's pairs."""

    def updates_of(self, passes: float) -> int: ...

    def update(self, number: int) -> list[MicroBatch]: ...

    def largest_shapes(self) -> list[tuple[int, int, int]]: ...


def whole_update(number: int, parts: list[PlannedRows]) -> list[MicroBatch]:
    """The micro-batches of update `number`, which has these rows."""
    # The loss of a micro-batch is divided by the tokens of the whole update, so that devices need
    # not exchange them. `sum` would otherwise start at 0, which is no UpdateSize.
    sizes = [part.size for part in parts]
    size = sum(sizes[1:], start=sizes[0])
    plan = []
    for micro_batch, part in enumerate(parts):
        plan.append(
            MicroBatch(
                indices=part.indices,
                update=number,
                micro_batch=micro_batch,
                size=size,
                widths=part.widths,
                joined=part.joined,
            )
        )
    return plan


class BatchPlanner:
    """Plans the micro-batches of any update (section 5.1) from lengths that include the end symbol.

    Each group is cut into equal parts, and each pass makes one micro-batch of each part. All parts
    have numbers from 0, those of the first group, then those of the second, and so on.
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
        self.micro_batches = batching.micro_batches
        self.seed = seed % 2**64
        self.attention_window = attention_window
        self.lengths = [source_lengths, target_lengths]
        # Groups leave room for tokens that transforms add. Sizes of updates do not count them.
        planned: list[Lengths | GrownLengths] = [*self.lengths]
        # Most mixtures have no transforms, and reading lengths unchanged is faster.
        if mixture and (mixture.growth != 1).any():
            planned = [GrownLengths(side, mixture.bounds, mixture.growth) for side in self.lengths]
        longest = int(max(side.max() for side in planned))
        budget = batching.tokens_per_update // self.micro_batches
        if longest > budget:
            raise NMTError(
                f"batching.tokens_per_update={batching.tokens_per_update} and "
                f"batching.micro_batches={self.micro_batches} leave {budget} tokens per "
                f"micro-batch, but the longest sentence has {longest}: "
                "raise batching.tokens_per_update or lower batching.micro_batches"
            )
        # Why processes do not share the order of a large corpus; empty if they do.
        self.groups, self.unshared = shared_groups(planned[0], planned[1], budget)
        self.streams: Streams | None = None
        # The number of pairs that a pass takes from each group, [groups].
        self.sizes = np.diff(self.groups.starts)
        if mixture:
            self.streams = Streams(self.groups, mixture, self.seed)
            self.sizes = self.streams.pairs_per_pass
        # Parts are equal, so that none of a group's micro-batches is nearly empty.
        # Each side has this budget, so the wider one decides.
        rows = budget // self.groups.widths.max(0)
        # How many parts each group has, and the number of its first one, [groups].
        self.parts = -(-self.sizes // rows)
        self.first_parts = np.cumsum(self.parts) - self.parts
        self.group_of_part = np.repeat(np.arange(len(self.parts)), self.parts)
        self.micro_batches_per_pass = len(self.group_of_part)

    @property
    def pairs_per_pass(self) -> int:
        return int(self.sizes.sum())

    @property
    def order_bytes(self) -> int:
        return self.groups.order.nbytes

    def updates_of(self, passes: float) -> int:
        """The smallest number of updates that contain this many passes, at least 1."""
        # As a fraction of the decimal number: in floating point, 0.1 is a little more than 1 / 10,
        # and rounding up would add an update.
        micro_batches = Fraction(str(passes)) * self.micro_batches_per_pass
        return max(1, ceil(micro_batches / self.micro_batches))

    def update(self, number: int) -> list[MicroBatch]:
        """The micro-batches of an update, counted from 0."""
        micro_batches = number * self.micro_batches + np.arange(self.micro_batches)
        passes, indices = np.divmod(micro_batches, self.micro_batches_per_pass)
        return whole_update(number, self.planned(passes, indices))

    def planned(self, passes: Ints, indices: Ints) -> list[PlannedRows]:
        """Micro-batches, each at an index of a pass; both are counted from 0."""
        # Shuffle the micro-batches as if they were the pairs of one more group, whose number no
        # real group has.
        order_key = shuffle_key(self.seed, passes, len(self.groups.starts) - 1)
        parts = shuffled(indices, self.micro_batches_per_pass, order_key)
        rows = self.rows_of_parts(passes, parts)
        sizes = self.sizes_of(rows)
        widths = self.groups.widths[:, self.group_of_part[parts]].T.tolist()
        planned = []
        for indices_of_part, size, widths_of_part in zip(rows, sizes, widths, strict=True):
            source_width, target_width = widths_of_part
            planned.append(PlannedRows(indices_of_part, size, (source_width, target_width)))
        return planned

    def sizes_of(self, rows: list[Ints]) -> list[UpdateSize]:
        """The sizes of micro-batches of these corpus rows."""
        ends = np.cumsum([len(indices) for indices in rows])[:-1]
        # All at once, because rows in many files are slow to look up for one batch at a time.
        all_rows = np.concatenate(rows)
        source_lengths, target_lengths = self.lengths
        # Sums of products of lengths may exceed 32 bits.
        sources = source_lengths[all_rows].astype(np.int64)
        targets = target_lengths[all_rows].astype(np.int64)
        sizes = []
        for source, target in zip(np.split(sources, ends), np.split(targets, ends), strict=True):
            sizes.append(micro_batch_size(source, target, self.attention_window))
        return sizes

    def rows_of_parts(self, passes: Ints, parts: Ints) -> list[Ints]:
        """The corpus rows of each part in `parts`, in the pass at the same index of `passes`.

        A pass takes the pairs of a group in a shuffled order, which its parts cut into stretches.
        """
        groups = self.group_of_part[parts]
        sizes = self.sizes[groups]
        # Part `number` of the `count` parts of its group. Integer arithmetic: parts differ by at
        # most one pair and leave none out.
        count = self.parts[groups]
        number = parts - self.first_parts[groups]
        begins = number * sizes // count
        ends = (number + 1) * sizes // count
        stretches = [np.arange(begin, end) for begin, end in zip(begins, ends, strict=True)]
        # From here on, arrays have an element for each pair of all parts, because shuffling each
        # part by itself would take longer.
        indices = np.concatenate(stretches)  # in the shuffled order of the group
        part_of_pair = np.repeat(np.arange(len(parts)), ends - begins)
        keys = shuffle_key(self.seed, passes, groups)
        places = shuffled(indices, sizes[part_of_pair], keys[part_of_pair])  # in the group
        if self.streams:
            # With a mixture, these are places in what the pass takes from the group.
            places = self.streams.places(passes[part_of_pair], groups[part_of_pair], places)
        starts = self.groups.starts[groups]
        rows = self.groups.order[starts[part_of_pair] + places].astype(np.int64)
        return np.split(rows, np.cumsum(ends - begins)[:-1])

    def largest_shapes(self) -> list[tuple[int, int, int]]:
        """Rows, source width and target width of the largest micro-batches.

        These are the micro-batches with the most positions or the most pairs of positions.
        """
        # A pass over a mixture may take no pair from a group, which then has no part.
        rows = -(-self.sizes // np.maximum(self.parts, 1))
        source_widths, target_widths = self.groups.widths
        positions = rows * (source_widths + target_widths)
        pairs = rows * self.groups.widths.max(0) ** 2
        shapes = np.stack([rows, source_widths, target_widths], axis=1)
        largest = []
        for group in sorted({int(positions.argmax()), int(pairs.argmax())}):
            group_rows, source_width, target_width = shapes[group].tolist()
            largest.append((group_rows, source_width, target_width))
        return largest
