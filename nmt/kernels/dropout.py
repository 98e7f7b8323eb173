"""Dropout (section 5.4), with random numbers that cost little on a processor."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LEVELS = 2**16
"""Probabilities that a mask distinguishes: those of 16 random bits."""


def random_mask(shape: torch.Size, kept: int) -> Tensor:
    """True with probability kept / LEVELS (kept from 1 on), from torch's generator on the processor.

    Four elements share a 64-bit number: five times as fast as drawing each, which took a tenth of a training step.
    """
    elements = shape.numel()
    numbers = torch.empty(-(-elements // 4), dtype=torch.int64).random_(-(2**63), None)
    return (numbers.view(torch.int16)[:elements] >= LEVELS // 2 - kept).view(shape)


class MaskedScale(torch.autograd.Function):
    """forward(x, mask of the same shape, scale) -> x * mask * scale."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, mask: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(mask)
        ctx.scale = scale
        return (x * mask).mul_(scale)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (mask,) = ctx.saved_tensors
        return (grads[0] * mask).mul_(ctx.scale), None, None


class Dropout(nn.Dropout):
    """Zero elements with probability `p` in training and scale the others up (section 5.4, "Residual Dropout").

    On a processor `p` is rounded to a 65,536th, and the scale belongs to the rounded one.
    """

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        kept = round((1 - self.p) * LEVELS)
        if kept == 0 or x.device.type != "cpu" or torch.compiler.is_compiling():
            return F.dropout(x, self.p)
        return MaskedScale.apply(x, random_mask(x.shape, kept), LEVELS / kept)  # type: ignore[no-untyped-call, no-any-return]
