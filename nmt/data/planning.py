"""The sentences of update n: a pure function of the corpus lengths, the seed and n.

Pairs of similar lengths form groups, and each group is cut into micro-batches of at most `budget` padded tokens on
either side. The cuts depend only on lengths, so every pass over the corpus has the same number of micro-batches, M. The
seed and the pass decide the order of the pairs in each group, and the order of the micro-batches. So micro-batch g
is in pass g // M, and update n, of m micro-batches, consists of those from n * m to (n + 1) * m - 1.
A run can therefore start at any update without replaying those before it. Orders are shuffled by ciphers
(shuffling.py), which compute the positions of the few hundred pairs of an update without shuffling the whole corpus.

Of a mixture (mixture.py), a pair may have several copies in a pass. Within a group, the pairs of each source form an
endless stream of shuffled rounds, and pass after pass takes as many of them as there are copies. So these pairs occur
equally often, whatever the number of copies, which need not be a whole number.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.config import BatchingConfig
from nmt.data.bucketing import Groups, group_by_lengths
from nmt.data.mixture import Stage
from nmt.data.shuffling import Ints, shuffle_key, shuffled
from nmt.errors import NMTError

STAGE_PASSES = 2**32
"""Passes are numbered from a multiple of this on in each stage of a training, so that none has the order of another."""


class UpdateSize(NamedTuple):
    """The size of an update, over all its micro-batches; tokens count end symbols."""

    source_tokens: int = 1
    target_tokens: int = 1
    positions: int = 2
    """Source and target positions, padding included."""
    encoder_pairs: int = 1
    """Pairs of a query and a key that it attends to, padding not counted: in the encoder,"""
    decoder_pairs: int = 1
    """in the decoder's self-attention,"""
    cross_pairs: int = 1
    """and from the decoder to the encoder."""

    def __add__(self, other: Any) -> "UpdateSize":
        return UpdateSize(*map(sum, zip(self, other, strict=True)))

    @property
    def padding(self) -> float:
        """The share of positions that hold no token."""
        return 1 - (self.source_tokens + self.target_tokens) / self.positions


def pairs_before(lengths: Ints, reach: int) -> int:
    """Number of pairs of a position and one of the `reach` positions before it, in sentences of these lengths."""
    seen = np.minimum(reach, lengths - 1)
    return int(seen @ (2 * lengths - seen - 1)) // 2


def micro_batch_size(source: Ints, target: Ints, attention_window: int | None = None) -> UpdateSize:
    """The size of a micro-batch of sentences of these lengths; `attention_window` restricts self-attention."""
    r = attention_window or 2 * int(max(source.max(), target.max()))
    return UpdateSize(
        source_tokens=int(source.sum()),
        target_tokens=int(target.sum()),
        positions=len(source) * int(source.max() + target.max()),
        encoder_pairs=int(source.sum()) + pairs_before(source, r // 2) + pairs_before(source, r - r // 2 - 1),
        decoder_pairs=int(target.sum()) + pairs_before(target, r - 1),
        cross_pairs=int(source @ target),
    )


@dataclass
class MicroBatch:
    """Sentences that go through the model together, and the size of the whole update they belong to."""

    indices: Ints
    update: int
    micro_batch: int
    size: UpdateSize
    widths: tuple[int, int]
    """The longest source and target, end symbols included, that there is room for."""


@dataclass
class Mixture:
    """The sources of a corpus, whose rows follow one another, and the stages of a training on them."""

    bounds: Ints
    """[sources + 1]: the first row of each source, and the end of the last one."""
    stages: list[Stage]
    growth: NDArray[np.float64]
    """[sources]: sentences may get this many times longer by noise."""
    hints: Ints
    """[sources]: tokens that hints may add to a source."""

    def grown(self, source: NDArray[Any], target: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The lengths of all pairs with noise."""
        growth, hints = (np.repeat(each, np.diff(self.bounds)) for each in (self.growth, self.hints))
        return np.ceil(source * growth + hints).astype(np.int32), np.ceil(target * growth).astype(np.int32)


class Parts:
    """The parts that groups are cut into, each a micro-batch in every pass of a stage."""

    def __init__(self, start: int, sizes: Ints, rows: Ints) -> None:
        """`sizes`: pairs of each group in a pass, copies included; `rows`: the most pairs in a micro-batch of it."""
        self.start, self.sizes = start, sizes
        # Each group is cut into equal parts, so that none of its micro-batches is nearly empty.
        self.parts = -(-sizes // rows)
        self.first_parts = np.cumsum(self.parts) - self.parts
        self.group_of_part = np.repeat(np.arange(len(self.parts)), self.parts)

    def __len__(self) -> int:
        return len(self.group_of_part)


class Streams:
    """In each group of a stage, the endless stream of each source's pairs, and how many of it a pass takes.

    Arrays are [sources, groups].
    """

    def __init__(self, groups: Groups, bounds: Ints, stage: Stage) -> None:
        self.start = stage.start
        sources, count = len(bounds) - 1, len(groups.starts) - 1
        # Groups list their pairs in the order of rows, so the pairs of a source are together.
        source_of_pair = np.searchsorted(bounds, groups.order, side="right") - 1
        group_of_pair = np.repeat(np.arange(count), np.diff(groups.starts))
        self.sizes = np.bincount(source_of_pair * count + group_of_pair, minlength=sources * count)
        self.sizes = self.sizes.reshape(sources, count)
        self.begins = self.sizes.cumsum(0) - self.sizes
        # Rounded such that the sum over the groups is right.
        upto = np.rint(self.sizes.cumsum(1) * stage.copies[:, None]).astype(np.int64)
        self.taken = np.diff(upto, axis=1, prepend=0)
        self.ends = self.taken.cumsum(0)

    def pairs(self, seed: int, passes: Ints, groups: Ints, indices: Ints) -> Ints:
        """The pairs, numbered within their groups, at these indices of what passes take of all sources."""
        sources = (indices >= self.ends[:, groups]).sum(0)
        taken, sizes = self.taken[sources, groups], self.sizes[sources, groups]
        places = passes % STAGE_PASSES * taken + indices - (self.ends[sources, groups] - taken)
        rounds, within = np.divmod(places, sizes)
        keys = shuffle_key(seed, passes // STAGE_PASSES, rounds, groups, sources)
        pairs: Ints = self.begins[sources, groups] + shuffled(within, sizes, keys)
        return pairs


class BatchPlanner:
    """Computes the sentences of each micro-batch of any update (section 5.1), from lengths with the end symbol."""

    def __init__(
        self,
        source_lengths: NDArray[Any],
        target_lengths: NDArray[Any],
        batching: BatchingConfig,
        seed: int,
        attention_window: int | None = None,
        mixture: Mixture | None = None,
    ) -> None:
        self.micro_batches, self.seed, self.attention_window = batching.micro_batches, seed % 2**64, attention_window
        self.source_lengths, self.target_lengths = source_lengths, target_lengths
        budget = batching.tokens_per_update // batching.micro_batches
        if mixture:
            source_lengths, target_lengths = mixture.grown(source_lengths, target_lengths)
        longest = int(max(source_lengths.max(), target_lengths.max()))
        if longest > budget:
            raise NMTError(
                f"batching.tokens_per_update={batching.tokens_per_update} in "
                f"batching.micro_batches={batching.micro_batches} leaves {budget} tokens a micro-batch, but the "
                f"longest sentence has {longest}: raise batching.tokens_per_update, or lower batching.micro_batches"
            )
        self.groups = group_by_lengths(source_lengths, target_lengths, budget)
        rows = budget // self.groups.widths.max(0)
        self.streams = [Streams(self.groups, mixture.bounds, stage) for stage in mixture.stages] if mixture else []
        self.stages = [Parts(each.start, each.ends[-1], rows) for each in self.streams]
        self.stages = self.stages or [Parts(0, np.diff(self.groups.starts), rows)]
        self.micro_batches_per_pass = len(self.stages[0])

    def members(self, stage: int, passes: Ints, parts: Ints) -> list[Ints]:
        """The pairs of each of these parts, numbered over all groups, in these passes of a stage."""
        cut = self.stages[stage]
        groups = cut.group_of_part[parts]
        sizes, count, number = cut.sizes[groups], cut.parts[groups], parts - cut.first_parts[groups]
        begins, ends = number * sizes // count, (number + 1) * sizes // count
        rows = ends - begins
        # For all parts at once: the index of each row within its group, which the cipher shuffles.
        indices = np.arange(rows.sum()) - np.repeat(np.cumsum(rows) - rows - begins, rows)
        keys = np.repeat(shuffle_key(self.seed, passes, groups), rows)
        within = shuffled(indices, np.repeat(sizes, rows), keys)
        if self.streams:
            within = self.streams[stage].pairs(self.seed, np.repeat(passes, rows), np.repeat(groups, rows), within)
        pairs = self.groups.order[np.repeat(self.groups.starts[groups], rows) + within].astype(np.int64)
        return np.split(pairs, np.cumsum(rows)[:-1])

    def stage_of(self, update: int) -> int:
        """The index of the stage that an update is in."""
        return max(index for index, each in enumerate(self.stages) if each.start <= update)

    def update(self, number: int) -> list[MicroBatch]:
        """The micro-batches of update `number`, counted from 0."""
        stage = self.stage_of(number)
        begin, per_pass = self.stages[stage].start, len(self.stages[stage])
        passes, indices = np.divmod((number - begin) * self.micro_batches + np.arange(self.micro_batches), per_pass)
        passes += stage * STAGE_PASSES
        # The order of the micro-batches is shuffled like a group, with a number that no group has.
        order_key = shuffle_key(self.seed, passes, len(self.groups.starts) - 1)
        parts = shuffled(indices, per_pass, order_key)
        members = self.members(stage, passes, parts)
        sizes = [
            micro_batch_size(
                self.source_lengths[pairs].astype(np.int64),
                self.target_lengths[pairs].astype(np.int64),
                self.attention_window,
            )
            for pairs in members
        ]
        size = sum(sizes[1:], start=sizes[0])
        widths = self.groups.widths[:, self.stages[stage].group_of_part[parts]].T.tolist()
        return [
            MicroBatch(pairs, number, micro_batch, size, (source, target))
            for micro_batch, (pairs, (source, target)) in enumerate(zip(members, widths, strict=True))
        ]

    def largest_shapes(self) -> list[tuple[int, int, int]]:
        """Rows, source width and target width of the one or two micro-batches that need the most memory.

        The activations of most layers grow with the positions, those of attention with the square of a width.
        """
        rows = np.max([-(-stage.sizes // np.maximum(stage.parts, 1)) for stage in self.stages], axis=0)
        source, target = self.groups.widths
        heaviest = {int((rows * (source + target)).argmax()), int((rows * self.groups.widths.max(0) ** 2).argmax())}
        return [(int(rows[group]), int(source[group]), int(target[group])) for group in sorted(heaviest)]
