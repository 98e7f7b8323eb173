"""Encoder and decoder layers (section 3.1, figure 1).

Shapes: B batch, T target positions, S source positions, D d_model, H heads, W their width, K hypotheses of a sentence.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from nmt.config import ModelConfig
from nmt.kernels import Dropout, Linear
from nmt.model.attention import MultiHeadAttention


class Residual(nn.Module):
    """Around every sub-layer, LayerNorm(x + Dropout(Sublayer(x))) (sections 3.1 and 5.4), or its pre-norm variant."""

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
    """x sigmoid(1.702 x), an approximation of GELU (Hendrycks and Gimpel 2016)."""

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(1.702 * x)


ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "swish": nn.SiLU, "gelu": nn.GELU, "quick_gelu": QuickGELU}


class FeedForward(nn.Sequential):
    """FFN(x) = max(0, x W1 + b1) W2 + b2 (section 3.3, equation 2), or with another activation than max(0, x)."""

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


@dataclass
class LayerCache:
    """Keys and values of a decoder layer, kept between steps, [B, H, columns, width] each.

    A step adds K columns to those of self-attention, one for each hypothesis. Columns never move, because copying them
    would take longer: when the beam is reordered, a mask selects the columns of each hypothesis's past.
    """

    self_k: Tensor
    self_v: Tensor
    cross_k: Tensor
    cross_v: Tensor

    def append(self, k_BHKW: Tensor, v_BHKW: Tensor, seen: slice) -> tuple[Tensor, Tensor]:
        """Write keys and values to the last of the columns `seen`; returns all of these columns."""
        begin, end = seen.stop - k_BHKW.shape[2], seen.stop
        if end > self.self_k.shape[2]:
            # Double the room, to at least 16 steps, so that few steps copy the whole cache.
            room = 15 * k_BHKW.shape[2] + begin
            self.self_k, self.self_v = (
                torch.cat((x, x.new_empty(*x.shape[:2], room, x.shape[3])), dim=2) for x in (self.self_k, self.self_v)
            )
        self.self_k[:, :, begin:end], self.self_v[:, :, begin:end] = k_BHKW, v_BHKW
        return self.self_k[:, :, seen], self.self_v[:, :, seen]

    def select(self, sentences: Tensor) -> "LayerCache":
        """The cache of only the given sentences: finished ones leave the batch."""
        return LayerCache(*(x.index_select(0, sentences) for x in vars(self).values()))


class DecoderLayer(nn.Module):
    """Causal self-attention, attention to the encoder's output, then feed-forward (section 3.1, figure 1 right).

    The three uses of attention are those of section 3.2.3.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config)
        self.cross_attention = MultiHeadAttention(config)
        self.feed_forward = FeedForward(config)
        self.residual_1, self.residual_2, self.residual_3 = Residual(config), Residual(config), Residual(config)

    def forward(self, x_BTD: Tensor, memory_BSD: Tensor, mask: Tensor | None, past: Tensor | None = None) -> Tensor:
        """All positions at once, for training; `past` is the mask of self-attention, None: causal."""
        attention, cross = self.self_attention, self.cross_attention
        x_BTD = self.residual_1(x_BTD, lambda x: attention.attend(*attention.project(x), past, causal=past is None))
        x_BTD = self.residual_2(x_BTD, lambda x: cross.attend(cross.queries(x), *cross.keys_values(memory_BSD), mask))
        return self.residual_3(x_BTD, self.feed_forward)  # type: ignore[no-any-return]

    def start(self, memory_BSD: Tensor) -> LayerCache:
        """The cache before the first step."""
        cross_k, cross_v = self.cross_attention.keys_values(memory_BSD)
        return LayerCache(cross_k[:, :, :0].clone(), cross_v[:, :, :0].clone(), cross_k, cross_v)

    def step(
        self, x_BKD: Tensor, cache: LayerCache, seen: slice, ancestors: Tensor | None, mask: Tensor | None
    ) -> Tensor:
        """The next position of K hypotheses of each sentence; extends `cache`, in the last of the columns `seen`.

        `ancestors` masks the columns that each hypothesis sees, `mask` the source positions. The hypotheses of a
        sentence are K queries to the same keys and values, which are therefore never repeated.
        """
        attention, cross = self.self_attention, self.cross_attention

        def attend_to_past(x: Tensor) -> Tensor:
            q, k, v = attention.project(x)
            return attention.attend(q, *cache.append(k, v, seen), ancestors)

        x_BKD = self.residual_1(x_BKD, attend_to_past)
        x_BKD = self.residual_2(x_BKD, lambda x: cross.attend(cross.queries(x), cache.cross_k, cache.cross_v, mask))
        return self.residual_3(x_BKD, self.feed_forward)  # type: ignore[no-any-return]
