"""Encoder and decoder layers (section 3.1, figure 1).

Shapes: B batch, T target positions, S source positions, D d_model.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from nmt.config import ModelConfig
from nmt.kernels import Dropout, Linear
from nmt.model.attention import KeysValues, MultiHeadAttention


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


class QuickGELU(nn.Module):
    """An approximation of GELU (Hendrycks and Gimpel 2016)."""

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(1.702 * x)


ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "swish": nn.SiLU, "gelu": nn.GELU, "quick_gelu": QuickGELU}


class FeedForward(nn.Sequential):
    """FFN(x) = max(0, x W1 + b1) W2 + b2 (section 3.3, equation 2), or the same with another activation."""

    def __init__(self, config: ModelConfig) -> None:
        inner, outer = Linear(config.d_model, config.d_ff), Linear(config.d_ff, config.d_model)
        for linear in (inner, outer):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)
        super().__init__(inner, ACTIVATIONS[config.activation](), outer)


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward (section 3.1, figure 1 left)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config)
        self.feed_forward = FeedForward(config)
        self.residual_1, self.residual_2 = Residual(config), Residual(config)

    def forward(self, x_BSD: Tensor, mask: Tensor | None) -> Tensor:
        x_BSD = self.residual_1(x_BSD, lambda x: self.self_attention.attend(*self.self_attention.project(x), mask))
        return self.residual_2(x_BSD, self.feed_forward)  # type: ignore[no-any-return]


class DecoderLayer(nn.Module):
    """Causal self-attention, cross-attention (section 3.2.3), then feed-forward (section 3.1, figure 1 right)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention, self.cross_attention = MultiHeadAttention(config), MultiHeadAttention(config)
        self.feed_forward = FeedForward(config)
        self.residual_1, self.residual_2, self.residual_3 = Residual(config), Residual(config), Residual(config)

    def forward(
        self,
        x_BTD: Tensor,
        memory: Tensor | KeysValues,
        mask: Tensor | None,
        past: Tensor | None = None,
        remember: Callable[[Tensor, Tensor], KeysValues] | None = None,
    ) -> Tensor:
        """Process all positions or, given `remember`, only the next, whose keys and values `remember` adds to the past.

        `memory` is the encoder's output, [B, S, D], or its keys and values. `mask` masks source positions, `past`
        self-attention keys. If `past` is None, self-attention is causal, or unmasked for a single next position.
        """
        attention, cross = self.self_attention, self.cross_attention

        def attend_to_past(x: Tensor) -> Tensor:
            q, k, v = attention.project(x)
            k, v = remember(k, v) if remember else (k, v)
            return attention.attend(q, k, v, past, causal=past is None and remember is None)

        def attend_to_memory(x: Tensor) -> Tensor:
            q = cross.queries(x)
            return cross.attend(q, *(cross.keys_values(memory) if isinstance(memory, Tensor) else memory), mask)

        x_BTD = self.residual_1(x_BTD, attend_to_past)
        x_BTD = self.residual_2(x_BTD, attend_to_memory)
        return self.residual_3(x_BTD, self.feed_forward)  # type: ignore[no-any-return]
