"""The layers that Table 1 compares (section 4), each a module from [B, N, D] to [B, N, D].

As in the paper's table, attention is measured without its four projections, which cost 8 n d^2 operations in any of its
forms. Each head is 64 wide, as in the paper's models; together, they cost as many operations as one wide head.

Shapes: B batch, N positions, D channels, H heads, K channels of a head, C blocks, R positions of a neighborhood.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

D_K = 64


def split_heads(x_BND: Tensor) -> Tensor:
    """[B, N, D] -> [B, H, N, K]."""
    batch, n, d = x_BND.shape
    return x_BND.reshape(batch, n, max(1, d // D_K), -1).transpose(1, 2)


def join_heads(x_BHNK: Tensor) -> Tensor:
    """[B, H, N, K] -> [B, N, D]."""
    return x_BHNK.transpose(1, 2).flatten(2)


class SelfAttention(nn.Module):
    """Self-attention as the model runs it (equation 1): in one kernel, which stores no score matrix."""

    def forward(self, x_BND: Tensor) -> Tensor:
        x_BHNK = split_heads(x_BND)
        return join_heads(F.scaled_dot_product_attention(x_BHNK, x_BHNK, x_BHNK))


class WrittenSelfAttention(nn.Module):
    """Self-attention as equation 1 is written: stores all N x N scores of each head."""

    def forward(self, x_BND: Tensor) -> Tensor:
        q_BHNK = split_heads(x_BND)
        k_BHNK = q_BHNK / q_BHNK.shape[-1] ** 0.5
        return join_heads((q_BHNK @ k_BHNK.mT).softmax(-1) @ q_BHNK)


class Recurrent(nn.LSTM):
    """An LSTM: each step needs the result of the one before."""

    def __init__(self, d: int) -> None:
        super().__init__(d, d, batch_first=True)

    def forward(self, x_BND: Tensor) -> Tensor:  # type: ignore[override]
        output: Tensor = super().forward(x_BND)[0]
        return output


class Convolution(nn.Sequential):
    """A convolution of odd width; if separable, it convolves each channel by itself, then mixes the channels."""

    def __init__(self, d: int, width: int, separable: bool = False) -> None:
        first = nn.Conv1d(d, d, width, padding=width // 2, groups=d if separable else 1)
        super().__init__(first, *([nn.Conv1d(d, d, 1)] if separable else []))

    def forward(self, x_BND: Tensor) -> Tensor:
        output: Tensor = super().forward(x_BND.transpose(1, 2))  # type: ignore[no-untyped-call]
        return output.transpose(1, 2)


class RestrictedSelfAttention(nn.Module):
    """Self-attention to R positions around each one (section 4), in time and memory of O(R N D).

    The sequence is cut into blocks of R queries. All keys that a block sees lie in a window of 2 R positions, so each
    block is a small attention with a mask, which differs only at the ends of the sequence.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.before = width // 2

    def mask(self, n: int, device: torch.device) -> Tensor:
        """[C, 1, R, 2 R]: True where a query of a block may attend in the block's window."""
        queries, keys = (
            torch.arange(self.width, device=device),
            torch.arange(2 * self.width, device=device),
        )
        distances = keys - queries[:, None]  # 0: the first neighbor; `before`: the query itself
        starts = torch.arange(0, n, self.width, device=device) - self.before
        positions = starts[:, None] + keys
        near, inside = (
            (distances >= 0) & (distances < self.width),
            (positions >= 0) & (positions < n),
        )
        return near & inside[:, None, None, :]

    def forward(self, x_BND: Tensor) -> Tensor:
        batch, n, _ = x_BND.shape
        missing = -n % self.width
        q_CBRD = F.pad(x_BND, (0, 0, 0, missing)).unflatten(1, (-1, self.width)).transpose(0, 1)
        padded = F.pad(x_BND, (0, 0, self.before, missing + self.width - self.before))
        windows = padded.unfold(1, 2 * self.width, self.width).permute(1, 0, 3, 2)
        # Batch and heads share a dimension, because each block has one mask.
        q, k = (
            split_heads(part.flatten(0, 1)).unflatten(0, (-1, batch)).flatten(1, 2)
            for part in (q_CBRD, windows)
        )
        y = F.scaled_dot_product_attention(q, k, k, attn_mask=self.mask(n, x_BND.device))
        y_CBRD: Tensor = join_heads(y.unflatten(1, (batch, -1)).flatten(0, 1)).unflatten(
            0, (-1, batch)
        )
        return y_CBRD.transpose(0, 1).flatten(1, 2).narrow(1, 0, n)


@dataclass(frozen=True)
class Layer:
    """A layer type of table1.csv."""

    name: str
    make: Callable[[int, int], nn.Module]
    """Makes the layer, given d and the width (k or r)."""
    sees: Callable[[int, int, int], Iterable[int]]
    """The distances from a position to its inputs, given n, the width and the number of layers below."""
    width: str = ""
    """The letter for the width in the table; empty if the layer has no width."""


def everywhere(n: int, width: int, level: int) -> Iterable[int]:
    return range(1 - n, n)


def around(n: int, width: int, level: int) -> Iterable[int]:
    """`width` positions around a position; an even width has one more on the left."""
    return range(-(width // 2), width - width // 2)


def dilated(n: int, width: int, level: int) -> Iterable[int]:
    """Positions up to a position, with gaps that grow by a factor of `width` per layer."""
    return range((1 - width) * width**level, 1, width**level)


LAYERS = [
    Layer("self-attention", lambda d, _: SelfAttention(), everywhere),
    Layer("self-attention, scores kept", lambda d, _: WrittenSelfAttention(), everywhere),
    Layer("recurrent (LSTM)", lambda d, _: Recurrent(d), lambda n, width, level: range(-1, 1)),
    Layer("convolutional", Convolution, around, "k"),
    Layer("convolutional, separable", lambda d, k: Convolution(d, k, separable=True), around, "k"),
    Layer("self-attention, restricted", lambda d, r: RestrictedSelfAttention(r), around, "r"),
]
