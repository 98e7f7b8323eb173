"""The most FLOP/s that a device shows in matrix products, which utilisation and cost are measured against."""

import time
from collections.abc import Callable

import torch
from torch import Tensor

from nmt.model.linear import has_fast_product, product

PRECISIONS = {"bf16": torch.bfloat16, "16": torch.float16, "32": torch.float32, "64": torch.float64}
REPETITIONS = 5


def precision_dtype(precision: str | int | None) -> torch.dtype:
    """What products are computed in under a Trainer's precision flag, such as 32-true or bf16-mixed."""
    return PRECISIONS[str(precision or 32).split("-")[0]]


def matrix_product_peak(device: torch.device, dtype: torch.dtype) -> float:
    """FLOP/s of the fastest of some square products; takes a tenth of a second."""
    size = 1024 if device.type == "cpu" else 8192
    x = torch.randn(size, size, device=device, dtype=dtype)
    products: list[Callable[[Tensor, Tensor], Tensor]] = [torch.mm, product] if has_fast_product(x, x) else [torch.mm]
    seconds = []
    for multiply in products * REPETITIONS:
        start = time.perf_counter()
        multiply(x, x)
        if device.type != "cpu":
            torch.accelerator.synchronize(device)
        seconds.append(time.perf_counter() - start)
    return 2.0 * size**3 / min(seconds)
