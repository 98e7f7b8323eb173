"""Padding of sentences of different lengths into one tensor."""

from collections.abc import Sequence

import torch
from torch import Tensor

from nmt.config import EOS, PAD


def pad(rows: Sequence[list[int]], device: torch.device) -> Tensor:
    """Rows padded to the length of the longest one: [B, longest]."""
    longest = max(map(len, rows))
    padded = []
    for ids in rows:
        missing = longest - len(ids)
        padded.append(ids + [PAD] * missing)
    tensor = torch.tensor(padded, dtype=torch.long, device=device)
    return tensor.view(len(rows), longest)  # also if all rows are empty


def pad_source(sentences: Sequence[list[int]], device: torch.device) -> Tensor:
    """Token ids -> [B, S], each sentence followed by the end symbol, then padding."""
    # Every sentence is followed by the end symbol in training (nmt/data/batches.py), so also here.
    return pad([[*ids, EOS] for ids in sentences], device)
