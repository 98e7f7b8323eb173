"""Embeddings and positions (sections 3.4 and 3.5).

Shapes: B batch, T positions, D d_model.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.config import BOS, ModelConfig
from nmt.errors import NMTError
from nmt.kernels import Dropout
from nmt.model.positions import sinusoid_table


def without_numbers() -> bool:
    """True within torch.device("meta"), for a model of shapes alone: arithmetic there loads torch's compiler."""
    return torch.get_default_device().type == "meta"


def random_matrix(rows: int, d_model: int) -> Tensor:
    """[rows, d_model] normal numbers with standard deviation d_model^-0.5."""
    return torch.empty(rows, d_model) if without_numbers() else torch.randn(rows, d_model) * d_model**-0.5


def sinusoids(length: int, d_model: int, start: int = 0, kind: str = "sinusoidal") -> Tensor:
    """`sinusoid_table` as a tensor, [length, d_model]."""
    return torch.from_numpy(sinusoid_table(length, d_model, start, kind))


class Positions(nn.Module):
    """The positional encoding added to embeddings: sinusoids (section 3.5) or learned (Table 3, row E)."""

    table: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.kind, self.learned = config.positions, config.positions == "learned"
        if self.learned:
            self.table = nn.Parameter(random_matrix(config.max_positions, config.d_model))
        else:
            shape = config.max_positions, config.d_model
            table = torch.empty(shape) if without_numbers() else sinusoids(*shape, 0, self.kind)
            self.register_buffer("table", table, persistent=False)

    def forward(self, start: int, length: int) -> Tensor:
        """Encodings of positions start .. start + length - 1: [length, D]. Sinusoids have no limit."""
        end = start + length
        if end > len(self.table):
            if self.learned:
                raise NMTError(
                    f"a sequence of {end} tokens is longer than model.max_positions={len(self.table)} learned positions"
                )
            # Only these positions: incremental decoding would otherwise recompute the whole table for each token.
            return sinusoids(length, self.table.shape[1], start, self.kind).to(self.table)
        return self.table[start:end]


class Embedding(nn.Module):
    """Embeddings times sqrt(d_model), plus positions, then dropout (sections 3.4, 3.5, 5.4).

    With `model.zero_start`, the start symbol is a zero vector, whatever its row of the matrix holds.
    """

    def __init__(self, config: ModelConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.scale, self.zero_start = math.sqrt(config.d_model), config.zero_start
        self.weight = nn.Parameter(random_matrix(vocabulary_size, config.d_model))
        self.positions = Positions(config)
        self.dropout = Dropout(config.dropout)

    def forward(self, tokens_BT: Tensor, start: int = 0) -> Tensor:
        """[B, T] token ids at positions from `start` on -> [B, T, D]."""
        x_BTD = F.embedding(tokens_BT, self.weight) * self.scale
        if self.zero_start:
            x_BTD = x_BTD.masked_fill((tokens_BT == BOS)[:, :, None], 0)
        x_BTD = x_BTD + self.positions(start, tokens_BT.shape[1])
        return self.dropout(x_BTD)  # type: ignore[no-any-return]
