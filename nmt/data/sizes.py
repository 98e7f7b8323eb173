"""The size of an update: what its time and cost depend on."""

from typing import Any, NamedTuple

import numpy as np

from nmt.data.lengths import Ints


class UpdateSize(NamedTuple):
    """Tokens including end symbols, positions including padding, and query-key pairs."""

    # Not 0, because the loss is divided by target tokens and `padding` by positions.
    source_tokens: int = 1
    target_tokens: int = 1
    positions: int = 2
    encoder_pairs: int = 1
    decoder_pairs: int = 1
    """Query-key pairs in the decoder's self-attention."""
    cross_pairs: int = 1
    """Query-key pairs in cross-attention."""

    def __add__(self, other: Any) -> "UpdateSize":
        return UpdateSize(*map(sum, zip(self, other, strict=True)))

    @property
    def padding(self) -> float:
        """The share of positions that are padding."""
        return 1 - (self.source_tokens + self.target_tokens) / self.positions


def pairs_before(lengths: Ints, reach: int) -> int:
    """Count pairs of a position and one of the `reach` positions before it, over all sentences."""
    # 0 + 1 + 2 + ... + seen for the first positions, then `seen` for each of the rest.
    seen = np.minimum(reach, lengths - 1)
    return int(seen @ (2 * lengths - seen - 1)) // 2


def micro_batch_size(source: Ints, target: Ints, attention_window: int | None = None) -> UpdateSize:
    """The size of a micro-batch whose sentences have these lengths.

    `attention_window` restricts self-attention (section 4): a position attends to itself and, in
    the encoder, to r // 2 positions before it and r - r // 2 - 1 after it.
    """
    longest = int(max(source.max(), target.max()))
    # Without a window, half of r covers every sentence.
    r = attention_window or 2 * longest
    source_tokens = int(source.sum())
    target_tokens = int(target.sum())
    keys_before = pairs_before(source, r // 2)
    keys_after = pairs_before(source, r - r // 2 - 1)
    return UpdateSize(
        source_tokens=source_tokens,
        target_tokens=target_tokens,
        positions=len(source) * int(source.max() + target.max()),
        encoder_pairs=source_tokens + keys_before + keys_after,
        decoder_pairs=target_tokens + pairs_before(target, r - 1),
        cross_pairs=int(source @ target),
    )
