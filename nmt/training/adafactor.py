"""Adafactor (Shazeer and Stern 2018), whose state is two vectors for each matrix.

It divides a gradient by a root mean square, as Adam does, but estimates the mean squares of a
matrix from those of its rows and columns. It has no momentum.
"""

from typing import Any

from torch.optim import Adafactor

from nmt.model import Transformer
from nmt.training.frozen import trained_parameters
from nmt.training.rounding import RoundedAdafactor

SMALLEST_GRADIENT = 1e-15
"""Below any gradient of a model, and its square is still a number of float32.

torch's default, 1e-7, is above the root mean square of a large model's gradients.
"""
SCALE = 1.0
"""torch multiplies an update by the root mean square of the weights, but at least by this number.

All matrices are below it, so the learning rate has the meaning that it has with Adam.
"""


def adafactor(model: Transformer, precision: str, **options: Any) -> Adafactor:
    """Adafactor with the learning rate and weight decay of `options`, which are those of Adam."""
    kind = RoundedAdafactor if precision == "bf16-true" else Adafactor
    return kind(
        trained_parameters(model),
        lr=options["lr"],
        eps=(SMALLEST_GRADIENT, SCALE),
        weight_decay=options["weight_decay"],
    )
