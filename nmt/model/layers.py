"""Encoder and decoder layers (section 3.1, figure 1).

Shapes: B batch, T target positions, S source positions, D d_model.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from nmt.config import ModelConfig
from nmt.model.attention import MultiHeadAttention
from nmt.model.dropout import Dropout
from nmt.model.linear import feed_forward


class Residual(nn.Module):
    """The rule around every sub-layer: LayerNorm(x + Dropout(Sublayer(x))), or its pre-norm variant."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.post_norm = config.norm == "post"
        self.norm = nn.LayerNorm(config.d_model)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.post_norm:
            return self.norm(x + self.dropout(sublayer(x)))  # type: ignore[no-any-return]
        return x + self.dropout(sublayer(self.norm(x)))  # type: ignore[no-any-return]


class FeedForward(nn.Sequential):
    """FFN(x) = max(0, x W1 + b1) W2 + b2 (equation 2)."""

    def __init__(self, config: ModelConfig) -> None:
        inner = nn.Linear(config.d_model, config.d_ff)
        outer = nn.Linear(config.d_ff, config.d_model)
        for linear in (inner, outer):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)
        super().__init__(inner, nn.ReLU(), outer)

    def forward(self, x: Tensor) -> Tensor:
        return feed_forward(x, *self.parameters())


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward (figure 1 left)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config)
        self.feed_forward = FeedForward(config)
        self.residual_1, self.residual_2 = Residual(config), Residual(config)

    def forward(self, x_BSD: Tensor, mask: Tensor | None) -> Tensor:
        x_BSD = self.residual_1(x_BSD, lambda x: self.self_attention.attend(*self.self_attention.project(x), mask))
        return self.residual_2(x_BSD, self.feed_forward)  # type: ignore[no-any-return]


@dataclass
class LayerCache:
    """What a decoder layer remembers between steps: [rows, H, positions, width] each.

    Self-attention has one row for each hypothesis, cross-attention one for each sentence.
    """

    self_k: Tensor
    self_v: Tensor
    cross_k: Tensor
    cross_v: Tensor

    def select(self, sentences: Tensor | None, hypotheses: Tensor) -> "LayerCache":
        """The cache of the given rows, in the given order; `sentences` None keeps all."""
        return LayerCache(
            self.self_k.index_select(0, hypotheses),
            self.self_v.index_select(0, hypotheses),
            self.cross_k if sentences is None else self.cross_k[sentences],
            self.cross_v if sentences is None else self.cross_v[sentences],
        )


class DecoderLayer(nn.Module):
    """Causal self-attention, attention to the encoder's output, then feed-forward (figure 1 right)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config)
        self.cross_attention = MultiHeadAttention(config)
        self.feed_forward = FeedForward(config)
        self.residual_1, self.residual_2, self.residual_3 = Residual(config), Residual(config), Residual(config)

    def forward(self, x_BTD: Tensor, memory_BSD: Tensor, mask: Tensor | None) -> Tensor:
        """All positions at once, for training."""
        own, cross = self.self_attention, self.cross_attention
        x_BTD = self.residual_1(x_BTD, lambda x: own.attend(*own.project(x), causal=True))
        x_BTD = self.residual_2(x_BTD, lambda x: cross.attend(cross.queries(x), *cross.keys_values(memory_BSD), mask))
        return self.residual_3(x_BTD, self.feed_forward)  # type: ignore[no-any-return]

    def start(self, memory_BSD: Tensor, hypotheses: int) -> LayerCache:
        """The cache before the first step, for `hypotheses` hypotheses of each sentence."""
        cross_k, cross_v = self.cross_attention.keys_values(memory_BSD)
        rows = len(memory_BSD) * hypotheses
        return LayerCache(
            cross_k.new_empty(rows, *cross_k.shape[1:2], 0, cross_k.shape[3]),
            cross_v.new_empty(rows, *cross_v.shape[1:2], 0, cross_v.shape[3]),
            cross_k,
            cross_v,
        )

    def step(self, x_R1D: Tensor, cache: LayerCache, mask: Tensor | None) -> Tensor:
        """One position of R hypotheses, the same number for each sentence; extends `cache` in place."""
        own, cross = self.self_attention, self.cross_attention

        def attend_to_past(x: Tensor) -> Tensor:
            q, k, v = own.project(x)
            cache.self_k = torch.cat((cache.self_k, k), dim=2)
            cache.self_v = torch.cat((cache.self_v, v), dim=2)
            return own.attend(q, cache.self_k, cache.self_v)

        def attend_to_source(x: Tensor) -> Tensor:
            # The hypotheses of a sentence stand as its queries, so its keys and values are never repeated.
            x_BTD = x.view(len(cache.cross_k), -1, x.shape[-1])
            return cross.attend(cross.queries(x_BTD), cache.cross_k, cache.cross_v, mask).view(x.shape)

        x_R1D = self.residual_1(x_R1D, attend_to_past)
        x_R1D = self.residual_2(x_R1D, attend_to_source)
        return self.residual_3(x_R1D, self.feed_forward)  # type: ignore[no-any-return]
