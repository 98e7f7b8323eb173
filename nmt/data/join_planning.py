"""Plan updates of joined pairs: consecutive pairs that form one training pair (data.join).

Each pass over the corpus uses a partition of the corpus into joined and single pairs, and batches
are planned from the lengths of its rows. There are a few partitions, because all of them must be
known to find where a pass begins without looking at the passes before it. Passes take them in turn.
"""

from fractions import Fraction
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from nmt.config import BatchingConfig, ExperimentConfig, SourceConfig
from nmt.data.consecutive import continues_text
from nmt.data.lengths import Ints
from nmt.data.mixing import Mixture
from nmt.data.partitions import JoinRule, Pairs, Partition, partition
from nmt.data.planning import BatchPlanner, MicroBatch, PlannedRows, whole_update
from nmt.data.prepared import PreparedCorpus
from nmt.data.shuffling import shuffle_key

MOST_PARTITIONS = 8

PARTITIONED_PAIRS = 1 << 24
"""All partitions together have about so many pairs, with 12 bytes each, or there is only one."""


def partitions_for(pairs: int) -> int:
    """How many partitions a corpus gets."""
    return min(max(PARTITIONED_PAIRS // pairs, 1), MOST_PARTITIONS)


class JoinPlanner:
    """Plans the micro-batches of any update; `planners` are those of the partitions."""

    def __init__(
        self,
        partitions: list[Partition],
        batching: BatchingConfig,
        seed: int,
        attention_window: int | None = None,
        copies: NDArray[np.float64] | None = None,
        growth: NDArray[np.float64] | None = None,
    ) -> None:
        """`copies` and `growth` are those of a Mixture; None without transforms and sources."""
        self.partitions = partitions
        self.copies = copies
        self.planners = []
        for number, rows in enumerate(partitions):
            mixture = None
            if copies is not None and growth is not None:
                mixture = Mixture(rows.bounds, copies, growth)
            planner = BatchPlanner(
                rows.source_lengths,
                rows.target_lengths,
                batching,
                # Otherwise, partitions with equal groups would shuffle them alike.
                int(shuffle_key(seed, number)[0]),
                attention_window,
                mixture,
            )
            self.planners.append(planner)
        self.micro_batches = batching.micro_batches
        self.unshared = max(planner.unshared for planner in self.planners)
        # Each partition's first micro-batch in a cycle of passes, then the end.
        sizes = [planner.micro_batches_per_pass for planner in self.planners]
        self.starts = np.cumsum([0, *sizes])

    @property
    def micro_batches_per_pass(self) -> float:
        return int(self.starts[-1]) / len(self.planners)

    @property
    def order_bytes(self) -> int:
        return sum(planner.order_bytes for planner in self.planners)

    @property
    def pairs_per_pass(self) -> int:
        """The number of pairs before they are joined."""
        rows = self.partitions[0]
        copies = np.ones(len(rows.bounds) - 1) if self.copies is None else self.copies
        firsts = rows.starts[rows.bounds].astype(np.int64)
        pairs = firsts[1:] - firsts[:-1]
        return int(np.rint(pairs @ copies))

    def updates_of(self, passes: float) -> int:
        """The smallest number of updates that contain this many passes, at least 1."""
        whole = floor(passes)
        cycles, rest = divmod(whole, len(self.planners))
        before = cycles * int(self.starts[-1]) + int(self.starts[rest])
        # As a fraction of the decimal number, as in BatchPlanner.
        part = Fraction(str(passes)) - whole
        micro_batches = before + part * self.planners[rest].micro_batches_per_pass
        return max(1, ceil(micro_batches / self.micro_batches))

    def update(self, number: int) -> list[MicroBatch]:
        """The micro-batches of an update, counted from 0."""
        micro_batches = number * self.micro_batches + np.arange(self.micro_batches)
        cycles, places = np.divmod(micro_batches, self.starts[-1])
        partitions = np.searchsorted(self.starts, places, side="right") - 1
        planned = []
        # Micro-batches of an update ascend, so those of a partition are neighbors.
        borders = np.flatnonzero(np.diff(partitions)) + 1
        for indices in np.split(np.arange(self.micro_batches), borders):
            partition = int(partitions[indices[0]])
            in_pass = places[indices] - self.starts[partition]
            planned += self.planned(partition, cycles[indices], in_pass)
        return whole_update(number, planned)

    def planned(self, partition: int, passes: Ints, indices: Ints) -> list[PlannedRows]:
        """Micro-batches at an index of a pass over a partition."""
        planned = []
        for rows in self.planners[partition].planned(passes, indices):
            firsts, joined = self.partitions[partition].pairs_of(rows.indices)
            planned.append(rows._replace(indices=firsts, joined=joined))
        return planned

    def largest_shapes(self) -> list[tuple[int, int, int]]:
        """As in BatchPlanner, for all partitions."""
        shapes = set[tuple[int, int, int]]()
        for planner in self.planners:
            shapes.update(planner.largest_shapes())
        ordered = sorted(shapes)
        most_positions = max(ordered, key=lambda shape: shape[0] * (shape[1] + shape[2]))
        most_pairs = max(ordered, key=lambda shape: shape[0] * max(shape[1:]) ** 2)
        return [*dict.fromkeys((most_positions, most_pairs))]


def rule_of(
    source: SourceConfig, config: ExperimentConfig, growth: float, tags: tuple[int, int]
) -> JoinRule:
    """The rule by which the pairs of a source are joined."""
    data = source.data
    # `max_tokens` excludes the end symbol.
    limit = data.filters.max_tokens + 1
    if config.model.positions == "learned":
        limit = min(limit, config.model.max_positions)
    budget = config.batching.tokens_per_update // config.batching.micro_batches
    # Planning refuses lengths above the budget after they have grown by transforms.
    while limit > 1 and ceil(limit * growth) > budget:
        limit -= 1
    return JoinRule(data.join, data.join_probability, (limit, limit), tags)


def join_planner(
    corpus: PreparedCorpus,
    config: ExperimentConfig,
    sources: list[SourceConfig],
    tags: list[tuple[int, int]],
    mixture: Mixture | None,
) -> JoinPlanner:
    """A planner for the training pairs of a corpus; `tags` are the tag tokens of each source."""
    split = corpus.split("train")
    continues = continues_text(corpus, [source.name for source in sources])
    bounds = corpus.bounds("train")
    pairs = Pairs(split.source_lengths, split.target_lengths, continues, bounds)
    growth = np.ones(len(sources)) if mixture is None else mixture.growth
    rules = []
    for source, factor, tags_of_source in zip(sources, growth.tolist(), tags, strict=True):
        rules.append(rule_of(source, config, factor, tags_of_source))
    partitions = []
    for number in range(partitions_for(len(split))):
        partitions.append(partition(pairs, rules, config.seed, number))
    return JoinPlanner(
        partitions,
        config.batching,
        config.seed,
        config.model.attention_window,
        None if mixture is None else mixture.copies,
        None if mixture is None else mixture.growth,
    )
