"""The sentences of update n: a pure function of the corpus lengths, the seed and n.

Pairs of similar lengths form groups, and each group is cut into micro-batches of at most `budget` padded tokens on
either side. The cuts depend only on lengths, so every pass over the corpus has the same number of micro-batches, M. The
seed and the pass decide the order of the pairs in each group, and the order of the micro-batches. So micro-batch g
is in pass g // M, and update n, of m micro-batches, consists of those from n * m to (n + 1) * m - 1.
A run can therefore start at any update without replaying those before it. Orders are shuffled by ciphers
(shuffling.py), which compute the positions of the few hundred pairs of an update without shuffling the whole corpus.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.config import BatchingConfig
from nmt.data.bucketing import group_by_lengths
from nmt.data.shuffling import Ints, shuffle_key, shuffled
from nmt.errors import NMTError


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


class BatchPlanner:
    """Computes the sentences of each micro-batch of any update (section 5.1), from lengths with the end symbol."""

    def __init__(
        self,
        source_lengths: NDArray[Any],
        target_lengths: NDArray[Any],
        batching: BatchingConfig,
        seed: int,
        attention_window: int | None = None,
    ) -> None:
        self.micro_batches, self.seed, self.attention_window = batching.micro_batches, seed % 2**64, attention_window
        self.source_lengths, self.target_lengths = source_lengths, target_lengths
        budget = batching.tokens_per_update // batching.micro_batches
        longest = int(max(source_lengths.max(), target_lengths.max()))
        if longest > budget:
            raise NMTError(
                f"batching.tokens_per_update={batching.tokens_per_update} in "
                f"batching.micro_batches={batching.micro_batches} leaves {budget} tokens a micro-batch, but the "
                f"longest sentence has {longest}: raise batching.tokens_per_update, or lower batching.micro_batches"
            )
        self.groups = group_by_lengths(source_lengths, target_lengths, budget)
        self.sizes = np.diff(self.groups.starts)
        # Each group is cut into equal parts, so that none of its micro-batches is nearly empty.
        self.parts = -(-self.sizes // (budget // self.groups.widths.max(0)))
        self.first_parts = np.cumsum(self.parts) - self.parts
        self.group_of_part = np.repeat(np.arange(len(self.parts)), self.parts)
        self.micro_batches_per_pass = len(self.group_of_part)

    def members(self, passes: Ints, parts: Ints) -> list[Ints]:
        """The pairs of each of these parts, numbered over all groups, in these passes."""
        groups = self.group_of_part[parts]
        sizes, count, number = self.sizes[groups], self.parts[groups], parts - self.first_parts[groups]
        begins, ends = number * sizes // count, (number + 1) * sizes // count
        rows = ends - begins
        # For all parts at once: the index of each row within its group, which the cipher shuffles.
        indices = np.arange(rows.sum()) - np.repeat(np.cumsum(rows) - rows - begins, rows)
        keys = np.repeat(shuffle_key(self.seed, passes, groups), rows)
        within = shuffled(indices, np.repeat(sizes, rows), keys)
        pairs = self.groups.order[np.repeat(self.groups.starts[groups], rows) + within].astype(np.int64)
        return np.split(pairs, np.cumsum(rows)[:-1])

    def update(self, number: int) -> list[MicroBatch]:
        """The micro-batches of update `number`, counted from 0."""
        passes, indices = np.divmod(
            number * self.micro_batches + np.arange(self.micro_batches), self.micro_batches_per_pass
        )
        # The order of the micro-batches is shuffled like a group, with a number that no group has.
        order_key = shuffle_key(self.seed, passes, len(self.parts))
        members = self.members(passes, shuffled(indices, self.micro_batches_per_pass, order_key))
        sizes = [
            micro_batch_size(
                self.source_lengths[pairs].astype(np.int64),
                self.target_lengths[pairs].astype(np.int64),
                self.attention_window,
            )
            for pairs in members
        ]
        size = sum(sizes[1:], start=sizes[0])
        return [MicroBatch(pairs, number, micro_batch, size) for micro_batch, pairs in enumerate(members)]

    def largest_shapes(self) -> list[tuple[int, int, int]]:
        """Rows, source width and target width of the one or two micro-batches that need the most memory.

        The activations of most layers grow with the positions, those of attention with the square of a width.
        """
        rows, (source, target) = -(-self.sizes // self.parts), self.groups.widths
        heaviest = {int((rows * (source + target)).argmax()), int((rows * self.groups.widths.max(0) ** 2).argmax())}
        return [(int(rows[group]), int(source[group]), int(target[group])) for group in sorted(heaviest)]
