"""The peak speed of a device: the FLOP/s of its fastest matrix products."""

import math
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from nmt import kernels

IDLE_ROUNDS = 3
"""Measure until this many rounds in a row are no faster than the fastest one so far.

Other programs can slow down a round, but not speed it up.
"""
MAX_SECONDS = 3.0
"""Measure at most this long, because a run waits for the result."""

DTYPES = {
    "bf16": torch.bfloat16,
    "16": torch.float16,
    "32": torch.float32,
    "64": torch.float64,
}
"""The first part of a Trainer precision such as bf16-mixed -> the type of matrix products."""

Product = tuple[Callable[..., Any], torch.Tensor]
"""A way to multiply matrices, and the matrix to multiply by itself."""


def precision_dtype(precision: str | int | None) -> torch.dtype:
    """The type of matrix products under a Trainer precision such as 32-true or bf16-mixed."""
    return DTYPES[str(precision or 32).split("-")[0]]


def synchronize(device: torch.device) -> None:
    """Wait until a device has finished all queued work."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)


def square_products(device: torch.device, dtype: torch.dtype) -> list[Product]:
    """The kinds of matrix products that may be the fastest on a device."""
    size = 1024 if device.type == "cpu" else 8192
    factors = [torch.randn(size, size, device=device, dtype=dtype)]
    # Also try float32: some products stay in float32, and bfloat16 without hardware support takes
    # ten times as long.
    if device.type == "cpu" and dtype.itemsize < 4:
        factors.append(factors[0].float())
    products: list[Product] = []
    for x in factors:
        products.append((torch.mm, x))
        if kernels.has_fast_product(x, x):
            products.append((kernels.product, x))
    return products


def fastest_flops_per_second(products: list[Product], device: torch.device) -> float:
    """The FLOP/s of the fastest of these products, each computed twice."""
    least = math.inf
    # Twice, because the first product allocates memory and may build a kernel.
    for multiply, x in products * 2:
        synchronize(device)
        start = time.perf_counter()
        multiply(x, x)
        synchronize(device)
        least = min(least, time.perf_counter() - start)
    # size^3 multiplications and as many additions.
    size = products[0][1].shape[0]
    return 2.0 * size**3 / least


@cache
def peak_flops_per_second(device: torch.device, dtype: torch.dtype) -> float:
    """The FLOP/s of the fastest of several square matrix products."""
    products = square_products(device, dtype)
    peak = 0.0
    idle = 0
    end = time.monotonic() + MAX_SECONDS
    while idle < IDLE_ROUNDS and time.monotonic() < end:
        speed = fastest_flops_per_second(products, device)
        # Differences of up to 2% are noise.
        if speed > 1.02 * peak:
            idle = 0
        else:
            idle += 1
        peak = max(peak, speed)
    return peak
