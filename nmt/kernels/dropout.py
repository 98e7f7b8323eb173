"""Dropout (section 5.4), with a faster generator of random bits on CPUs."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.kernels import device

LEVELS = 2**16  # levels of the dropout probability, one for each value of 16 random bits


def random_bits(shape: torch.Size) -> Tensor:
    """Draw 16 random bits per element, as int16.

    Drawing 64 bits for four elements at once is five times as fast.
    """
    elements = shape.numel()
    numbers = torch.empty(-(-elements // 4), dtype=torch.int64).random_(-(2**63), None)
    return numbers.view(torch.int16)[:elements].view(shape)


class Dropout(nn.Dropout):
    """In training, zero elements with probability `p` and scale up the rest (section 5.4, "Residual Dropout").

    On a CPU, `p` is rounded to a multiple of 1 / 65,536.
    """

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        kept = round((1 - self.p) * LEVELS)
        if kept == 0 or not device.on_cpu(x):
            return F.dropout(x, self.p)
        return (x * (random_bits(x.shape) >= LEVELS // 2 - kept)).mul_(LEVELS / kept)
