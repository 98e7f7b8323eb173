"""Which sentences make up update n: a pure function of the corpus lengths, the seed and n.

Pairs are sorted into buckets of similar target and source length and cut into micro-batches of at most
`budget` padded tokens on either side. The cuts depend on lengths alone, so every pass over the corpus has
the same number of micro-batches; the seed and the pass decide which pair takes which place in its bucket,
and in what order the micro-batches come. So micro-batch g lies in pass g // M, and update n consists of
micro-batches n * shards ... (n + 1) * shards - 1.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.config import BatchingConfig
from nmt.errors import NMTError

Ints = NDArray[np.int64]


def bucket_widths(lengths: NDArray[Any]) -> Ints:
    """Each length rounded up to its bucket's: steps of 1 up to 16, then 8 steps for each doubling."""
    lengths = np.asarray(lengths, dtype=np.int64)
    steps = 2 ** np.maximum(np.frexp(lengths - 1)[1].astype(np.int64) - 4, 0)
    widths: Ints = -(-lengths // steps) * steps
    return widths


@dataclass
class MicroBatch:
    """Sentences that go through the model together, and the target tokens of the whole update they belong to."""

    indices: Ints
    update: int
    shard: int
    update_tokens: int


class UpdatePlanner:
    """Names the sentences of every micro-batch of every update.

    `source_lengths` and `target_lengths` count the end symbol.
    """

    def __init__(
        self, source_lengths: NDArray[Any], target_lengths: NDArray[Any], batching: BatchingConfig, seed: int
    ) -> None:
        self.shards, self.seed = batching.shards, seed
        self.target_lengths = target_lengths
        budget = batching.tokens // batching.shards
        longest = int(max(source_lengths.max(), target_lengths.max()))
        if longest > budget:
            raise NMTError(
                f"batching.tokens={batching.tokens} in batching.shards={batching.shards} leaves {budget} tokens a "
                f"micro-batch, but the longest sentence has {longest}: raise batching.tokens, or lower batching.shards"
            )
        self.sorted, self.groups = self._sort(source_lengths, target_lengths)
        self.cuts = self._cut(source_lengths, target_lengths, budget)

    @staticmethod
    def _sort(source_lengths: NDArray[Any], target_lengths: NDArray[Any]) -> tuple[Ints, Ints]:
        """Pairs by bucket, and where in that order each group of interchangeable pairs begins.

        Source widths rise in every other target bucket and fall in between, so that neighbours stay similar.
        """
        source, target = bucket_widths(source_lengths), bucket_widths(target_lengths)
        _, target_rank = np.unique(target, return_inverse=True)
        key = target * (2 * source.max() + 1) + np.where(target_rank % 2, -source, source)
        order = np.argsort(key, kind="stable")
        starts = np.flatnonzero(np.diff(key[order], prepend=key[order[0]] - 1))
        return order, starts

    def _cut(self, source_lengths: NDArray[Any], target_lengths: NDArray[Any], budget: int) -> Ints:
        """Where each micro-batch begins in the sorted order, and its end: rows x widest side stays in the budget."""
        ends = [*self.groups[1:].tolist(), len(self.sorted)]
        maxima = np.maximum(
            np.maximum.reduceat(source_lengths[self.sorted], self.groups),
            np.maximum.reduceat(target_lengths[self.sorted], self.groups),
        )
        cuts, start, width = [0], 0, 0
        for end, group_width in zip(ends, maxima.tolist(), strict=True):
            widened = max(width, group_width)
            position = max(start, cuts[-1])
            if (position - cuts[-1] + 1) * widened > budget:
                cuts.append(position)
                widened = group_width
            while end - cuts[-1] > budget // widened:
                cuts.append(cuts[-1] + budget // widened)
                widened = group_width
            start, width = end, widened
        return np.array([*cuts, len(self.sorted)], dtype=np.int64)

    @property
    def micro_batches(self) -> int:
        """Micro-batches in a pass over the corpus."""
        return len(self.cuts) - 1

    @lru_cache(maxsize=2)  # noqa: B019 - a planner lives as long as the run; two passes are in use where they meet
    def _pass(self, number: int) -> tuple[Ints, Ints]:
        """Pass `number`: the pairs in their places, and the order of the micro-batches."""
        random = np.random.default_rng([self.seed, number])
        shuffled = random.permutation(len(self.sorted))
        group_of_place = np.repeat(np.arange(len(self.groups)), np.diff([*self.groups, len(self.sorted)]))
        # A stable sort of shuffled places by group shuffles the pairs within each group.
        places = shuffled[np.argsort(group_of_place[shuffled], kind="stable")]
        return self.sorted[places], random.permutation(self.micro_batches)

    def _members(self, micro_batch: int) -> Ints:
        number, position = divmod(micro_batch, self.micro_batches)
        pairs, order = self._pass(number)
        chosen = order[position]
        return pairs[self.cuts[chosen] : self.cuts[chosen + 1]]

    def update(self, number: int) -> list[MicroBatch]:
        """The micro-batches of update `number`, counted from 0."""
        members = [self._members(number * self.shards + shard) for shard in range(self.shards)]
        tokens = sum(int(self.target_lengths[indices].sum()) for indices in members)
        return [MicroBatch(indices, number, shard, tokens) for shard, indices in enumerate(members)]
