"""The sentences of update n: a pure function of the corpus lengths, the seed and n.

Pairs of similar lengths form groups, and each group is cut into micro-batches of at most `budget` padded tokens on
either side. The cuts depend only on lengths, so every pass over the corpus has the same number of micro-batches, M. The
seed and the pass decide the order of the pairs in each group, and the order of the micro-batches. So micro-batch g
is in pass g // M, and update n, of m micro-batches, consists of those from n * m to (n + 1) * m - 1.
A run can therefore start at any update without replaying those before it. Orders are shuffled by ciphers
(shuffling.py), which compute the positions of the few hundred pairs of an update without shuffling the whole corpus.

A mixture has several sources, whose rows follow one another. A stage is a stretch of updates in which the same sources
are used, and a pair may have several copies in a pass. Within a group, the pairs of each source form an endless stream
of shuffled rounds, and pass after pass takes as many of them as there are copies. So these pairs occur equally often,
whatever the number of copies, which need not be a whole number.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.config import BatchingConfig, SourceConfig
from nmt.data.bucketing import Groups, group_by_lengths
from nmt.data.shuffling import Ints, shuffle_key, shuffled
from nmt.errors import NMTError

MOST_COPIES = 64
"""The most sentences in a pass, for each pair of the corpus."""
STAGE_PASSES = 2**32
"""Passes are numbered from a multiple of this on in each stage of a training, so that none has the order of another."""


class Stage(NamedTuple):
    """A stretch of updates with the same sources."""

    start: int
    """Its first update, counted from 0."""
    copies: NDArray[np.float64]
    """For each source, the occurrences of each of its pairs in a pass, mostly 1 or more; 0 for one that is not used."""


class Mixture(NamedTuple):
    """The sources of a corpus, the stages of a training on them, and the lengths that transforms may give to pairs."""

    bounds: Ints
    """[sources + 1]: the first row of each source, and the end of the last one."""
    stages: list[Stage]
    growth: NDArray[np.float64]
    """[sources]: sentences may get this many times longer."""


def shares(sources: Sequence[SourceConfig], sizes: Sequence[int], temperature: float) -> list[float]:
    """The share of each source in the sentences of an update: as configured, or by its size (Arivazhagan et al. 2019).

    What the sources with a `share` leave is divided in proportion to (weight x pairs)^(1 / temperature).
    """
    parts = [
        0.0 if source.share is not None else (source.weight * size) ** (1 / temperature)
        for source, size in zip(sources, sizes, strict=True)
    ]
    rest = 1 - sum(source.share or 0 for source in sources) if any(parts) else 0.0
    result = [source.share or rest * part / sum(parts) for source, part in zip(sources, parts, strict=True)]
    return [share / sum(result) for share in result]


def last_stage(sources: Sequence[SourceConfig]) -> int:
    """The first update of the last stage, counted from 0."""
    return max(bound for source in sources for bound in (source.start, source.stop or 0))


def stages(sources: Sequence[SourceConfig], sizes: Sequence[int], temperature: float) -> list[Stage]:
    """The stages of a training, first to last."""
    result = []
    for start in sorted({0, *(source.start for source in sources), *(source.stop or 0 for source in sources)}):
        used = [n for n, source in enumerate(sources) if source.start <= start and (source.stop or start + 1) > start]
        if not used:
            raise NMTError(f"data.sources: none of them is used from update {start:,} on; raise stop of one")
        pairs = np.array([sizes[number] for number in used])
        chosen = np.array(shares([sources[number] for number in used], pairs.tolist(), temperature))
        # Every pair occurs once in a pass, or more often, unless that would make passes too long.
        taken = chosen * min(np.max(pairs / np.maximum(chosen, 1e-12)), MOST_COPIES * pairs.sum())
        if taken.min() < 1:
            name = sources[used[int(taken.argmin())]].name
            raise NMTError(
                f"data.sources: the shares and weights leave {name} less than a sentence in {taken.sum():,.0f}"
            )
        copies = np.zeros(len(sources))
        copies[used] = taken / pairs
        result.append(Stage(start, copies))
    return result


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


class MicroBatch(NamedTuple):
    """Sentences that go through the model together, and the size of the whole update they belong to."""

    indices: Ints
    update: int
    micro_batch: int
    size: UpdateSize
    widths: tuple[int, int]
    """The longest source and target, end symbols included, that there is room for."""


class StagePlan:
    """The parts that groups are cut into in a stage, each a micro-batch in every pass.

    Arrays are [groups], and in a mixture, [sources, groups].
    """

    def __init__(self, groups: Groups, rows: Ints, stage: Stage | None = None, bounds: Ints | None = None) -> None:
        """`rows`: the most pairs in a micro-batch of each group; the last two for a mixture."""
        self.groups, self.start, self.sizes = groups, stage.start if stage else 0, np.diff(groups.starts)
        self.is_mixed = stage is not None
        if stage is not None and bounds is not None:
            sources, count = len(bounds) - 1, len(self.sizes)
            # Groups list their pairs in the order of rows, so the pairs of a source are together.
            source_of_pair = np.searchsorted(bounds, groups.order, side="right") - 1
            cells = source_of_pair * count + np.repeat(np.arange(count), self.sizes)
            self.source_sizes = np.bincount(cells, minlength=sources * count).reshape(sources, count)
            self.begins = self.source_sizes.cumsum(0) - self.source_sizes
            # The pairs that a pass takes, rounded such that the sum over the groups is right.
            upto = np.rint(self.source_sizes.cumsum(1) * stage.copies[:, None]).astype(np.int64)
            self.taken = np.diff(upto, axis=1, prepend=0)
            self.ends = self.taken.cumsum(0)
            self.sizes = self.ends[-1]
        # Each group is cut into equal parts, so that none of its micro-batches is nearly empty.
        self.parts = -(-self.sizes // rows)
        self.first_parts = np.cumsum(self.parts) - self.parts
        self.group_of_part = np.repeat(np.arange(len(self.parts)), self.parts)

    def __len__(self) -> int:
        return len(self.group_of_part)

    def pairs(self, seed: int, passes: Ints, parts: Ints) -> list[Ints]:
        """The rows of the corpus in each of these parts, in these passes."""
        groups = self.group_of_part[parts]
        sizes, count, number = self.sizes[groups], self.parts[groups], parts - self.first_parts[groups]
        begins, ends = number * sizes // count, (number + 1) * sizes // count
        rows = ends - begins
        # For all parts at once: the index of each row within its group, which the cipher shuffles.
        indices = np.arange(rows.sum()) - np.repeat(np.cumsum(rows) - rows - begins, rows)
        within = shuffled(indices, np.repeat(sizes, rows), np.repeat(shuffle_key(seed, passes, groups), rows))
        if self.is_mixed:
            within = self.of_streams(seed, np.repeat(passes, rows), np.repeat(groups, rows), within)
        pairs = self.groups.order[np.repeat(self.groups.starts[groups], rows) + within].astype(np.int64)
        return np.split(pairs, np.cumsum(rows)[:-1])

    def of_streams(self, seed: int, passes: Ints, groups: Ints, indices: Ints) -> Ints:
        """The pairs, numbered within their groups, at these indices of what passes take of all sources."""
        sources = (indices >= self.ends[:, groups]).sum(0)
        taken, sizes = self.taken[sources, groups], self.source_sizes[sources, groups]
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
            growth = np.repeat(mixture.growth, np.diff(mixture.bounds))
            source_lengths = np.ceil(source_lengths * growth).astype(np.int32)
            target_lengths = np.ceil(target_lengths * growth).astype(np.int32)
        longest = int(max(source_lengths.max(), target_lengths.max()))
        if longest > budget:
            raise NMTError(
                f"batching.tokens_per_update={batching.tokens_per_update} in "
                f"batching.micro_batches={batching.micro_batches} leaves {budget} tokens a micro-batch, but the "
                f"longest sentence has {longest}: raise batching.tokens_per_update, or lower batching.micro_batches"
            )
        self.groups = group_by_lengths(source_lengths, target_lengths, budget)
        rows = budget // self.groups.widths.max(0)
        stages = [(stage, mixture.bounds) for stage in mixture.stages] if mixture else [(None, None)]
        self.stages = [StagePlan(self.groups, rows, stage, bounds) for stage, bounds in stages]
        self.micro_batches_per_pass = len(self.stages[0])

    def stage_of(self, update: int) -> int:
        """The index of the stage that an update is in."""
        return max(index for index, stage in enumerate(self.stages) if stage.start <= update)

    def update(self, number: int) -> list[MicroBatch]:
        """The micro-batches of update `number`, counted from 0."""
        index = self.stage_of(number)
        stage = self.stages[index]
        micro_batches = (number - stage.start) * self.micro_batches + np.arange(self.micro_batches)
        passes, indices = np.divmod(micro_batches, len(stage))
        passes += index * STAGE_PASSES
        # The order of the micro-batches is shuffled like a group, with a number that no group has.
        order_key = shuffle_key(self.seed, passes, len(self.groups.starts) - 1)
        parts = shuffled(indices, len(stage), order_key)
        members = stage.pairs(self.seed, passes, parts)
        sizes = [
            micro_batch_size(
                self.source_lengths[pairs].astype(np.int64),
                self.target_lengths[pairs].astype(np.int64),
                self.attention_window,
            )
            for pairs in members
        ]
        size = sum(sizes[1:], start=sizes[0])
        widths = self.groups.widths[:, stage.group_of_part[parts]].T.tolist()
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
