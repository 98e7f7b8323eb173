"""Sinusoidal positions (section 3.5), in numpy, so that converters need not load torch."""

import numpy as np
from numpy.typing import NDArray


def position_angles(length: int, d_model: int, start: int = 0, kind: str = "sinusoidal") -> NDArray[np.float64]:
    """pos / 10000^(2i / d_model) of `length` positions from `start` on: [length, d_model / 2].

    With `kind` "tensor2tensor", the exponents are 2i / (d_model - 2), the last one 1.
    """
    exponents = np.arange(0, d_model, 2, dtype=np.float64) / (d_model - 2 * (kind == "tensor2tensor"))
    return np.arange(start, start + length, dtype=np.float64)[:, None] / 10000**exponents


def sinusoid_table(length: int, d_model: int, start: int = 0, kind: str = "sinusoidal") -> NDArray[np.float32]:
    """PE(pos, 2i) = sin of the angle, PE(pos, 2i + 1) = cos of it (section 3.5): [length, d_model]."""
    angles = position_angles(length, d_model, start, kind)
    return np.stack((np.sin(angles), np.cos(angles)), axis=-1).reshape(length, -1).astype(np.float32)
