"""Peak FLOP/s of a device in matrix products, the reference for utilisation and cost."""

import time
from collections.abc import Callable
from math import inf

import torch
from torch import Tensor

from nmt.kernels import has_fast_product, product

PRECISIONS = {"bf16": torch.bfloat16, "16": torch.float16, "32": torch.float32, "64": torch.float64}
REPETITIONS = 2
IDLE_ROUNDS, MAX_SECONDS = 3, 3.0
FASTER_FACTOR = 0.98


def precision_dtype(precision: str | int | None) -> torch.dtype:
    """The type of matrix products for a precision flag of Trainer, such as 32-true or bf16-mixed."""
    return PRECISIONS[str(precision or 32).split("-")[0]]


def synchronize(device: torch.device) -> None:
    """Wait until a device has finished its work."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)


def fastest(measure: Callable[[], float]) -> float:
    """The lowest of repeated measurements, until several in a row were no lower: other programs may disturb some."""
    least, idle = inf, 0
    end = time.monotonic() + MAX_SECONDS
    while idle < IDLE_ROUNDS and time.monotonic() < end:
        seconds = measure()
        idle = 0 if seconds < FASTER_FACTOR * least else idle + 1
        least = min(least, seconds)
    return least


def peak_flops_per_second(device: torch.device, dtype: torch.dtype) -> float:
    """FLOP/s of the fastest of several square products; takes a fifth of a second, or more on a busy machine.

    On a processor products of float32 are tried too: where it has none of bfloat16, those take ten times as long, and
    what mixed precision leaves in float32 would be faster than the peak.
    """
    size = 1024 if device.type == "cpu" else 8192
    matrices = [torch.randn(size, size, device=device, dtype=dtype)]
    if device.type == "cpu" and dtype.itemsize < 4:
        matrices.append(matrices[0].float())
    products: list[tuple[Callable[[Tensor, Tensor], Tensor], Tensor]] = [(torch.mm, x) for x in matrices]
    products += [(product, x) for x in matrices if has_fast_product(x, x)]

    def one_round() -> float:
        seconds = []
        for multiply, x in products * REPETITIONS:
            start = time.perf_counter()
            multiply(x, x)
            synchronize(device)
            seconds.append(time.perf_counter() - start)
        return min(seconds)

    return 2.0 * size**3 / fastest(one_round)
