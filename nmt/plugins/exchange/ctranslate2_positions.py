"""Tables of positions in models of CTranslate2: those that we write, and those that we find. No torch."""

import numpy as np
from numpy.typing import NDArray

from nmt.errors import NMTError
from nmt.plugins.exchange.ctranslate2_variables import Matrix


def angles(length: int, width: int, kind: str) -> NDArray[np.float64]:
    """What the sinusoids of each position are sines and cosines of: [length, width / 2]."""
    exponents = np.arange(0, width, 2) / (width - 2 * (kind == "tensor2tensor"))
    return np.arange(length)[:, None] / 10000**exponents


def sinusoids(length: int, width: int, kind: str = "sinusoidal") -> Matrix:
    """The table of `model.positions`, sines and cosines by turns: [length, width]."""
    each = angles(length, width, kind)
    return np.stack((np.sin(each), np.cos(each)), axis=-1).reshape(length, width).astype(np.float32)


def generated_positions(length: int, width: int) -> Matrix:
    """The positions of CTranslate2 for a model without a table: from 1 on, sines first, then cosines."""
    if width % 2 or width < 4:
        raise NMTError(f"a width of {width} has no sinusoids in CTranslate2")
    each = angles(length + 1, width, "tensor2tensor")[1:]
    return np.concatenate((np.sin(each), np.cos(each)), axis=1).astype(np.float32)


def known_sinusoids(table: Matrix, rounding: float) -> tuple[str, bool] | None:
    """The name that a table has in nmt, and True if it has all sines first; None for any other table."""
    length, width = table.shape
    # In float32, as OpenNMT-py computes it, an angle has an error of 1e-7 of itself.
    allowed = rounding + 1e-6 * (1 + np.arange(length)[:, None])
    for kind in ("sinusoidal", "tensor2tensor") if width % 2 == 0 and width >= 4 else ():
        each = angles(length, width, kind)
        pairs = np.stack((np.sin(each), np.cos(each)), axis=1)
        for halves in (False, True):
            wanted = (pairs if halves else pairs.transpose(0, 2, 1)).reshape(length, width)
            if (abs(table - wanted) <= allowed).all():
                return kind, halves
    return None
