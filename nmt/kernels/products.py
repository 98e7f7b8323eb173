"""Linear maps on a CPU, computed with oneDNN where that is faster.

On x86 CPUs, torch computes float32 products with MKL. On AMD CPUs, MKL is half as fast as oneDNN, which torch also
includes: 225 versus 431 GFLOP/s in a training step. On other devices and in other precisions, `linear` is the same as
torch.nn.functional.linear. Shapes: M rows, K inputs, N outputs.
"""

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.compat import onednn_linear
from nmt.kernels import device

product = onednn_linear
ONEDNN = torch.backends.mkldnn.is_available() and platform.machine() in ("x86_64", "AMD64")
# The number of multiplications from which oneDNN is faster: first if it must build a kernel for the shape, which takes
# a fraction of a millisecond, then if kernels stay cached. In a search without AVX512, MKL is at least as fast.
SMALLEST_PRODUCT = 2**25
SMALLEST_REPEATED_PRODUCT = 2**20 if torch.backends.cpu.get_cpu_capability() == "AVX512" else 2**62

# Of the current thread, because a server's threads use several models at once.
HAS_FEW_SHAPES = ContextVar("HAS_FEW_SHAPES", default=False)


@contextmanager
def few_shapes() -> Iterator[None]:
    """Use oneDNN for smaller products too, in a block whose products have few shapes, so that kernels stay cached.

    This applies only to the thread that runs the block.
    """
    token = HAS_FEW_SHAPES.set(True)
    try:
        yield
    finally:
        HAS_FEW_SHAPES.reset(token)


def smallest_product() -> int:
    """The number of multiplications from which a product uses oneDNN."""
    return SMALLEST_REPEATED_PRODUCT if HAS_FEW_SHAPES.get() else SMALLEST_PRODUCT


def has_fast_product(x: Tensor, weight: Tensor) -> bool:
    """Return True if `product` supports these tensors and is faster than torch's linear map."""
    fits = device.on_cpu(x) and x.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
    return ONEDNN and fits and x.numel() * len(weight) >= smallest_product()


def outer_product(grad_MN: Tensor, x_MK: Tensor) -> Tensor:
    """G^T X, the gradient of the weight: [N, K]. oneDNN is faster if the result is not taller than wide."""
    if grad_MN.shape[1] > x_MK.shape[1]:
        return product(x_MK.t(), grad_MN.t()).t()
    return product(grad_MN.t(), x_MK.t())


class OneDNNLinear(torch.autograd.Function):
    """forward(x [..., K], weight [N, K], bias [N] or None) -> [..., N]."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return product(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.needs_input_grad
        grad_MN = grads[0].flatten(0, -2)
        return (
            product(grads[0], weight.t()) if of_x else None,
            outer_product(grad_MN, x.flatten(0, -2)) if of_weight else None,
            grad_MN.sum(0) if of_bias else None,
        )


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b: [..., K] and [N, K] -> [..., N]."""
    if not has_fast_product(x, weight):
        return F.linear(x, weight, bias)
    if not torch.is_grad_enabled():
        return product(x, weight, bias)
    return OneDNNLinear.apply(x, weight, bias)  # type: ignore[no-untyped-call, no-any-return]


class Linear(nn.Linear):
    """torch.nn.Linear, computed with `linear`."""

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)
