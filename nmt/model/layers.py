"""The parts of the Transformer (section 3): attention, feed-forward networks, embeddings, positions, and layers.

Shapes: B batch, T queries or target positions, S keys or source positions, D d_model, H heads, V d_v,
K d_k (in transformer.py, K is the number of hypotheses).
"""

import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.config import BOS, ModelConfig, require
from nmt.kernels import Dropout, Linear, linear, on_cpu

KeysValues = tuple[Tensor, Tensor]
"""Keys [B, H, S, K] and values [B, H, S, V] of all heads."""
LinearMap = tuple[Tensor, Tensor | None]
"""A matrix, [outputs, D], and its bias, [outputs]."""


def neighborhood(length: int, r: int, device: torch.device, causal: bool = False) -> Tensor:
    """Restricted self-attention (section 4): True where query t may attend to key s, [length, length].

    The keys are the r positions around t (for even r, one more before t than after) or, if `causal`, the r up to t.
    """
    positions = torch.arange(length, device=device)
    ahead = positions - positions[:, None]
    return (ahead > -r) & (ahead <= 0) if causal else (ahead >= -(r // 2)) & (ahead < r - r // 2)


class MultiHeadAttention(nn.Module):
    """Multi-head attention (section 3.2.2, figure 2 right); by default without biases, as in the authors' code.

    Query, key and value projections share one matrix, so self-attention computes them in one product.

    `model.attention` selects how query-key pairs are scored (section 3.2.1): scaled_dot_product, q k^T / sqrt(d_k)
    (equation 1); dot_product, q k^T; or additive, v^T tanh(W q + U k) (Bahdanau et al. 2015), where W and U are the
    head's projections and v, [H, K], is the only additional parameter.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        assert config.d_k
        assert config.d_v
        self.kind, self.heads = config.attention, config.heads
        self.widths = [config.heads * config.d_k, config.heads * config.d_k, config.heads * config.d_v]
        self.input = nn.Parameter(torch.empty(sum(self.widths), config.d_model))
        self.output = nn.Parameter(torch.empty(config.d_model, self.widths[2]))
        for matrix in (*self.input.split(self.widths), self.output):
            nn.init.xavier_uniform_(matrix)
        self.input_bias = nn.Parameter(torch.zeros(sum(self.widths))) if config.attention_bias else None
        self.output_bias = nn.Parameter(torch.zeros(config.d_model)) if config.attention_bias else None
        if self.kind == "additive":
            self.v = nn.Parameter(torch.empty(config.heads, config.d_k))
            for vector in self.v.split(1):
                nn.init.xavier_uniform_(vector)

    def split_heads(self, x_BTD: Tensor) -> Tensor:
        """[B, T, H * K] -> [B, H, T, K]."""
        return x_BTD.view(*x_BTD.shape[:-1], self.heads, -1).transpose(1, 2)

    def project(self, x_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of self-attention."""
        q, k, v = linear(x_BTD, self.input, self.input_bias).split(self.widths, dim=-1)
        return self.split_heads(q), self.split_heads(k), self.split_heads(v)

    def cross_maps(self) -> tuple[LinearMap, LinearMap]:
        """The map to the queries, and the map to the keys and values, of cross-attention.

        One split, because the gradient of each slice of the matrix would be a whole matrix of zeros.
        """
        widths = [self.widths[0], self.widths[1] + self.widths[2]]
        queries, keys_values = self.input.split(widths)
        if self.input_bias is None:
            return (queries, None), (keys_values, None)
        query_bias, keys_values_bias = self.input_bias.split(widths)
        return (queries, query_bias), (keys_values, keys_values_bias)

    def queries(self, x_BTD: Tensor, query_map: LinearMap) -> Tensor:
        """Queries of cross-attention, [B, H, T, K]."""
        return self.split_heads(linear(x_BTD, *query_map))

    def keys_values(self, memory_BSD: Tensor, keys_values_map: LinearMap) -> KeysValues:
        """Keys and values of cross-attention."""
        k, v = linear(memory_BSD, *keys_values_map).split(self.widths[1:], dim=-1)
        return self.split_heads(k), self.split_heads(v)

    def weights(self, q_BHTK: Tensor, k_BHSK: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        """The softmax of the scores (section 3.2.1, equation 1, figure 2 left): [B, H, T, S]; masks as in `attend`."""
        if self.kind == "additive":
            hidden_BHTSK = torch.tanh(q_BHTK[:, :, :, None] + k_BHSK[:, :, None])
            scores_BHTS = torch.einsum("bhtsk,hk->bhts", hidden_BHTSK, self.v)
        else:
            scores_BHTS = q_BHTK @ k_BHSK.transpose(2, 3)
            if self.kind == "scaled_dot_product":
                scores_BHTS = scores_BHTS / math.sqrt(q_BHTK.shape[3])
        if causal:
            mask = torch.ones(scores_BHTS.shape[2:], dtype=torch.bool, device=scores_BHTS.device).tril()
        if mask is not None:
            is_bool = mask.dtype == torch.bool
            scores_BHTS = scores_BHTS.masked_fill(~mask, -torch.inf) if is_bool else scores_BHTS + mask
        return scores_BHTS.softmax(dim=3)

    def attend(
        self, q_BHTK: Tensor, k_BHSK: Tensor, v_BHSV: Tensor, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """softmax(Q K^T / sqrt(d_k)) V (section 3.2.1, equation 1, figure 2 left) for all heads, then W^O: [B, T, D].

        `mask` is broadcastable to [B, H, T, S]: True where a query may attend, or numbers to add to the scores.
        `causal` hides keys after t from query t.
        """
        if self.kind == "additive":
            x_BHTV = self.weights(q_BHTK, k_BHSK, mask, causal) @ v_BHSV
        else:
            scale = 1.0 if self.kind == "dot_product" else None
            # On CPUs, torch 2.13 takes three times as long to compute gradients in bfloat16 as in float32.
            slow = on_cpu(q_BHTK) and q_BHTK.dtype == torch.bfloat16 and q_BHTK.requires_grad
            with torch.autocast("cpu", enabled=False) if slow else nullcontext():
                q, k, v = (x.float() if slow else x for x in (q_BHTK, k_BHSK, v_BHSV))
                x_BHTV = F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal, scale=scale).to(q_BHTK)
        return linear(x_BHTV.transpose(1, 2).flatten(2), self.output, self.output_bias)


class SSRU(nn.Module):
    """A simpler simple recurrent unit (Kim et al. 2019), which can replace the decoder's self-attention.

    c_t = f_t c_(t-1) + (1 - f_t) W x_t, where f_t = sigmoid(W_f x_t + b_f) and c_0 = 0; the output is max(0, c_t).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.input, self.forget = (nn.Parameter(torch.empty(config.d_model, config.d_model)) for _ in range(2))
        for matrix in (self.input, self.forget):
            nn.init.xavier_uniform_(matrix)
        self.forget_bias = nn.Parameter(torch.zeros(config.d_model))

    def forward(self, x_BTD: Tensor, remember: Callable[[Tensor, Tensor], Tensor] | None) -> Tensor:
        """Process all positions in O(log T) products or, given `remember`, only the next, whose state it computes."""
        state = linear(x_BTD, self.input).to(x_BTD)
        forget = torch.sigmoid(linear(x_BTD, self.forget, self.forget_bias).to(x_BTD))
        if remember:
            return F.relu(remember(forget, state))
        state, reach = (1 - forget) * state, 1
        while reach < x_BTD.shape[1]:  # state and forget describe the last `reach` positions; combine two neighbors
            state = torch.cat((state[:, :reach], state[:, reach:] + forget[:, reach:] * state[:, :-reach]), dim=1)
            forget = torch.cat((forget[:, :reach], forget[:, reach:] * forget[:, :-reach]), dim=1)
            reach *= 2
        return F.relu(state)


class QuickGELU(nn.Module):
    """An approximation of GELU (Hendrycks and Gimpel 2016)."""

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(1.702 * x)


ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "swish": nn.SiLU, "gelu": nn.GELU, "quick_gelu": QuickGELU}


class FeedForward(nn.Sequential):
    """FFN(x) = max(0, x W1 + b1) W2 + b2 (section 3.3, equation 2), or the same with another activation."""

    def __init__(self, config: ModelConfig) -> None:
        inner, outer = Linear(config.d_model, config.d_ff), Linear(config.d_ff, config.d_model)
        for product in (inner, outer):
            nn.init.xavier_uniform_(product.weight)
            nn.init.zeros_(product.bias)
        super().__init__(inner, ACTIVATIONS[config.activation](), outer)


def sinusoids(length: int, d_model: int, start: int = 0, kind: str = "sinusoidal") -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos(...) (section 3.5): [length, d_model].

    The first pos is `start`. With `kind` "tensor2tensor", the exponents are 2i / (d_model - 2), so the last one is 1.
    """
    exponents = np.arange(0, d_model, 2) / (d_model - 2 * (kind == "tensor2tensor"))
    angles = np.arange(start, start + length)[:, None] / 10000**exponents
    return torch.from_numpy(np.stack((np.sin(angles), np.cos(angles)), axis=-1).reshape(length, -1).astype(np.float32))


def random_matrix(rows: int, d_model: int) -> nn.Parameter:
    """A [rows, d_model] matrix of normally distributed numbers with standard deviation d_model^-0.5."""
    if torch.get_default_device().type == "meta":  # shapes only; arithmetic would load torch's compiler
        return nn.Parameter(torch.empty(rows, d_model))
    return nn.Parameter(torch.randn(rows, d_model) * d_model**-0.5)


class Positions(nn.Module):
    """Positional encoding: sinusoidal (section 3.5) or learned (Table 3, row E)."""

    table: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        shape, self.kind = (config.max_positions, config.d_model), config.positions
        if self.kind == "learned":
            self.table = random_matrix(*shape)
        else:
            self.register_buffer("table", sinusoids(*shape, kind=self.kind), persistent=False)

    def forward(self, start: int, length: int) -> Tensor:
        """Encodings of positions start .. start + length - 1: [length, D]."""
        end = start + length
        if end <= len(self.table):
            return self.table[start:end]
        limit = f"the model.max_positions={len(self.table)} learned positions"
        require(self.kind != "learned", f"a sequence of {end} tokens is longer than {limit}")
        # Compute only these positions: incremental decoding would otherwise compute a whole table for each token.
        return sinusoids(length, self.table.shape[1], start, self.kind).to(self.table)


class Embedding(nn.Module):
    """Embeddings times sqrt(d_model), plus positional encodings, then dropout (sections 3.4, 3.5, 5.4)."""

    def __init__(self, config: ModelConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.scale, self.zero_start = math.sqrt(config.d_model), config.zero_start
        self.weight = random_matrix(vocabulary_size, config.d_model)
        self.positions, self.dropout = Positions(config), Dropout(config.dropout)

    def forward(self, tokens_BT: Tensor, start: int = 0) -> Tensor:
        """Embed token ids [B, T] whose positions begin at `start`: [B, T, D]."""
        x_BTD = F.embedding(tokens_BT, self.weight) * self.scale
        if self.zero_start:
            x_BTD = x_BTD.masked_fill((tokens_BT == BOS)[:, :, None], 0)
        return self.dropout(x_BTD + self.positions(start, tokens_BT.shape[1]))  # type: ignore[no-any-return]


class Residual(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))) around a sub-layer (sections 3.1 and 5.4), or its pre-norm variant."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.post_norm = config.norm == "post"
        self.norm = nn.LayerNorm(config.d_model, config.norm_epsilon)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.post_norm:
            return self.norm(x + self.dropout(sublayer(x)))  # type: ignore[no-any-return]
        return x + self.dropout(sublayer(self.norm(x)))  # type: ignore[no-any-return]


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward (section 3.1, figure 1 left)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention, self.feed_forward = MultiHeadAttention(config), FeedForward(config)
        self.residual_1, self.residual_2 = Residual(config), Residual(config)

    def forward(self, x_BSD: Tensor, mask: Tensor | None) -> Tensor:
        x_BSD = self.residual_1(x_BSD, lambda x: self.self_attention.attend(*self.self_attention.project(x), mask))
        return self.residual_2(x_BSD, self.feed_forward)  # type: ignore[no-any-return]


class DecoderLayer(nn.Module):
    """Causal self-attention, cross-attention (section 3.2.3), then feed-forward (section 3.1, figure 1 right)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.ssru = SSRU(config) if config.decoder == "ssru" else None
        if self.ssru is None:
            self.self_attention = MultiHeadAttention(config)
        self.cross_attention, self.feed_forward = MultiHeadAttention(config), FeedForward(config)
        self.residual_1, self.residual_2, self.residual_3 = Residual(config), Residual(config), Residual(config)

    def forward(
        self,
        x_BTD: Tensor,
        memory: Tensor | KeysValues,
        mask: Tensor | None,
        past: Tensor | None = None,
        remember: Callable[[Tensor, Tensor], Any] | None = None,
    ) -> Tensor:
        """Process all positions or, given `remember`, only the next, whose keys and values `remember` adds to the past.

        `memory` is the encoder's output, [B, S, D], or its keys and values. `mask` masks source positions, `past`
        self-attention keys. If `past` is None, self-attention is causal, or unmasked for a single next position.
        """
        cross = self.cross_attention

        def look_back(x: Tensor) -> Tensor:
            if self.ssru:
                return self.ssru(x, remember)  # type: ignore[no-any-return]
            attention = self.self_attention
            q, k, v = attention.project(x)
            k, v = remember(k, v) if remember else (k, v)
            return attention.attend(q, k, v, past, causal=past is None and remember is None)

        def attend_to_memory(x: Tensor) -> Tensor:
            query_map, keys_values_map = cross.cross_maps()
            q = cross.queries(x, query_map)
            if isinstance(memory, Tensor):
                k, v = cross.keys_values(memory, keys_values_map)
            else:
                k, v = memory
            return cross.attend(q, k, v, mask)

        x_BTD = self.residual_1(x_BTD, look_back)
        x_BTD = self.residual_2(x_BTD, attend_to_memory)
        return self.residual_3(x_BTD, self.feed_forward)  # type: ignore[no-any-return]
