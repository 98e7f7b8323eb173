"""Embeddings (section 3.4) with positional encodings (section 3.5).

Shapes: B batch, T positions, D d_model.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.config import BOS, EOS, ModelConfig, require
from nmt.kernels import Dropout


def sinusoids(length: int, d_model: int, start: int = 0, kind: str = "sinusoidal") -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos(...) (section 3.5).

    Returns [length, d_model], for the positions from `start`. With `kind` "tensor2tensor", the
    exponents are 2i / (d_model - 2), as in the authors' code, so the last one is 1.
    """
    denominator = d_model - 2 if kind == "tensor2tensor" else d_model
    exponents = np.arange(0, d_model, 2) / denominator
    positions = np.arange(start, start + length)[:, None]
    angles = positions / 10000**exponents
    # In float64, because the error of an angle grows with the position.
    # Sines and cosines alternate, as in section 3.5. CTranslate2's own table has all sines first.
    pairs = np.stack((np.sin(angles), np.cos(angles)), axis=-1)
    return torch.from_numpy(pairs.reshape(length, -1).astype(np.float32))


def random_matrix(rows: int, d_model: int) -> nn.Parameter:
    """A [rows, d_model] matrix of normally distributed numbers, standard deviation d_model^-0.5.

    Multiplied by sqrt(d_model) (section 3.4), such embeddings have a standard deviation of 1.
    """
    if torch.get_default_device().type == "meta":
        # Only the shape matters. Arithmetic on this device would load torch's compiler.
        return nn.Parameter(torch.empty(rows, d_model))
    return nn.Parameter(torch.randn(rows, d_model) * d_model**-0.5)


class Positions(nn.Module):
    """Positional encoding: sinusoidal (section 3.5) or learned (Table 3, row E)."""

    table: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.kind = config.positions
        self.first = config.first_position
        if self.kind == "learned":
            self.table = random_matrix(config.max_positions, config.d_model)
        else:
            table = sinusoids(config.max_positions, config.d_model, self.first, self.kind)
            # Not stored with the weights: the table follows from the configuration.
            self.register_buffer("table", table, persistent=False)

    def forward(self, start: int, length: int) -> Tensor:
        """Encodings of the positions start .. start + length - 1 of a sequence: [length, D].

        They have these numbers plus `model.first_position`.
        """
        end = start + length
        if end <= len(self.table):
            return self.table[start:end]
        # The paper chose sinusoids because they continue beyond the lengths seen in training
        # (section 3.5).
        limit = f"the model.max_positions={len(self.table)} learned positions"
        require(self.kind != "learned", f"a sequence of {end} tokens is longer than {limit}")
        # Only these positions: otherwise, incremental decoding would compute a whole table for each
        # token.
        number = self.first + start
        return sinusoids(length, self.table.shape[1], number, self.kind).to(self.table)


class Embedding(nn.Module):
    """Embeddings times sqrt(d_model), plus positional encodings, then dropout.

    See sections 3.4, 3.5 and 5.4. With `model.embedding_norm`, the sum is normalized first.
    """

    def __init__(self, config: ModelConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.scale = math.sqrt(config.d_model)
        self.zero_start = config.zero_start
        self.end_start = config.end_start
        self.weight = random_matrix(vocabulary_size, config.d_model)
        self.positions = Positions(config)
        # None rather than an identity, which would cost a call per step of a search.
        self.norm: nn.LayerNorm | None = None
        if config.embedding_norm:
            self.norm = nn.LayerNorm(config.d_model, config.norm_epsilon)
        self.dropout = Dropout(config.dropout)

    def forward(self, tokens_BT: Tensor, start: int = 0) -> Tensor:
        """Embed token ids [B, T] whose positions begin at `start`: [B, T, D]."""
        if self.end_start:
            # The start symbol keeps its own entry in the softmax, as in fairseq.
            tokens_BT = tokens_BT.masked_fill(tokens_BT == BOS, EOS)
        # Scaled here and not in the matrix, because the output projection shares the matrix
        # (section 3.4).
        x_BTD = F.embedding(tokens_BT, self.weight) * self.scale
        if self.zero_start:
            # As in Marian: the decoder begins with a vector of zeros instead of an embedding.
            x_BTD = x_BTD.masked_fill((tokens_BT == BOS)[:, :, None], 0)
        positions_TD = self.positions(start, tokens_BT.shape[1])
        x_BTD = x_BTD + positions_TD
        if self.norm:
            x_BTD = self.norm(x_BTD)
        return self.dropout(x_BTD)
