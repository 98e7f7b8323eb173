"""Padded micro-batches.

Shapes: B sentences, S source positions, T target positions, M real target tokens.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from nmt.config import BOS, EOS, PAD, UNK
from nmt.data.sizes import UpdateSize


class Batch(NamedTuple):
    """A padded micro-batch.

    It is a tuple because Lightning copies the tensors of a tuple asynchronously.
    """

    source: Tensor
    """Each sentence followed by the end symbol, [B, S]."""
    target_in: Tensor
    """Each sentence preceded by the start symbol, [B, T]."""
    target_out: Tensor
    """Each sentence followed by the end symbol: the token to predict at each position, [B, T]."""
    target_indices: Tensor
    """The positions of the M real tokens in target_out.flatten(), [M]."""
    padded: bool = True
    """Whether `source` has padding; stored, because a check would wait for the device."""
    update: int = 0
    micro_batch: int = 0
    size: UpdateSize = UpdateSize()
    """The size of the whole update."""


def pad(sentences: pa.ListArray) -> Tensor:
    """Pad to [B, longest + 1], with an end symbol after each sentence."""
    lengths = sentences.value_lengths().to_numpy().astype(np.int64)
    width = int(lengths.max(initial=0)) + 1
    padded = np.full((len(lengths), width), PAD, dtype=np.int64)
    is_token = np.arange(width) < lengths[:, None]
    padded[is_token] = sentences.flatten().to_numpy()
    padded[np.arange(len(lengths)), lengths] = EOS
    return torch.from_numpy(padded)


def padded_batch(sources: pa.ListArray, targets: pa.ListArray) -> Batch:
    """Build a batch from sentences that have no end symbols yet."""
    source = pad(sources)
    target_out = pad(targets)
    # Shift right: drop the end symbol and prepend the start symbol.
    target_in = target_out.masked_fill(target_out == EOS, PAD).roll(1, dims=1)
    target_in[:, 0] = BOS
    is_real = target_out.flatten() != PAD
    # Computed here, on the CPU: on a GPU, `nonzero` would wait for all queued work.
    target_indices = is_real.nonzero()[:, 0]
    has_padding = bool((source == PAD).any())
    return Batch(source, target_in, target_out, target_indices, padded=has_padding)


def dummy_batch(rows: int, source_width: int, target_width: int) -> Batch:
    """A batch of <unk> tokens that needs as much memory as a full batch of this shape.

    It counts as padded, because a padding mask also takes memory.
    """
    source = torch.full((rows, source_width), UNK)
    target = torch.full((rows, target_width), UNK)
    # One token fewer than positions, as if the last position were padding.
    target_indices = torch.arange(max(target.numel() - 1, 1))
    return Batch(source, target, target, target_indices)
