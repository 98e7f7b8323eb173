"""Dropout (section 5.4), with random numbers that are cheap on a processor."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LEVELS = 2**16  # of probability, by 16 random bits


def random_bits(shape: torch.Size) -> Tensor:
    """16 random bits for each element, as int16. Four elements share a 64-bit number, which is five times as fast."""
    elements = shape.numel()
    numbers = torch.empty(-(-elements // 4), dtype=torch.int64).random_(-(2**63), None)
    return numbers.view(torch.int16)[:elements].view(shape)


class Dropout(nn.Dropout):
    """Zero elements with probability `p` in training, and scale the rest up (section 5.4, "Residual Dropout").

    On a processor `p` is rounded to a multiple of 1 / 65,536.
    """

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        kept = round((1 - self.p) * LEVELS)
        if kept == 0 or x.device.type != "cpu":
            return F.dropout(x, self.p)
        return (x * (random_bits(x.shape) >= LEVELS // 2 - kept)).mul_(LEVELS / kept)
