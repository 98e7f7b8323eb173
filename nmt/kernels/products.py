"""Linear maps on a CPU, computed with oneDNN where that is faster.

On x86 CPUs, torch computes float32 products with MKL. On AMD CPUs, MKL is half as fast as oneDNN,
which torch also includes: 225 versus 431 GFLOP/s in a training step. On other devices and in other
precisions, `linear` is the same as torch.nn.functional.linear.

Shapes: M rows, K inputs, N outputs.
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
IS_X86 = platform.machine() in ("x86_64", "AMD64")
ONEDNN = torch.backends.mkldnn.is_available() and IS_X86

SMALLEST_PRODUCT = 2**25
"""The number of multiplications from which oneDNN is faster if it must build a kernel.

Building one for a new shape takes a fraction of a millisecond.
"""

HAS_AVX512 = torch.backends.cpu.get_cpu_capability() == "AVX512"
# 2**62 is larger than any product.
SMALLEST_REPEATED_PRODUCT = 2**20 if HAS_AVX512 else 2**62
"""The same if kernels stay cached. In a search without AVX512, MKL is at least as fast."""

HAS_FEW_SHAPES = ContextVar("HAS_FEW_SHAPES", default=False)
"""A setting of the current thread, because a server's threads use several models at once."""


@contextmanager
def few_shapes() -> Iterator[None]:
    """Use oneDNN for smaller products too, in a block whose products have few shapes.

    Their kernels stay cached. This applies only to the thread that runs the block.
    """
    # `reset` restores the value from before, so blocks may be nested.
    token = HAS_FEW_SHAPES.set(True)
    try:
        yield
    finally:
        HAS_FEW_SHAPES.reset(token)


def smallest_product() -> int:
    """The number of multiplications from which a product uses oneDNN."""
    return SMALLEST_REPEATED_PRODUCT if HAS_FEW_SHAPES.get() else SMALLEST_PRODUCT


def has_fast_product(x: Tensor, weight: Tensor) -> bool:
    """Whether `product` supports these tensors and is faster than torch's linear map."""
    if not ONEDNN or not device.on_cpu(x):
        return False
    # Autocast converts the arguments only of functions that it knows, such as F.linear.
    if x.dtype != torch.float32 or torch.is_autocast_enabled("cpu"):
        return False
    # M K N multiplications.
    return x.numel() * len(weight) >= smallest_product()


def outer_product(grad_MN: Tensor, x_MK: Tensor) -> Tensor:
    """G^T X, the gradient of the weight: [N, K]."""
    # oneDNN is faster if the result is not taller than wide.
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
        # Inputs and weights without gradients, such as frozen ones, save a product each.
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad
        grad = grads[0]  # [..., N]
        grad_MN = grad.flatten(0, -2)
        grad_x: Tensor | None = None
        grad_weight: Tensor | None = None
        grad_bias: Tensor | None = None
        if needs_x:
            grad_x = product(grad, weight.t())
        if needs_weight:
            grad_weight = outer_product(grad_MN, x.flatten(0, -2))
        if needs_bias:
            grad_bias = grad_MN.sum(0)
        return grad_x, grad_weight, grad_bias


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b: [..., K] and [N, K] -> [..., N]."""
    if not has_fast_product(x, weight):
        return F.linear(x, weight, bias)
    # A search needs no node of autograd for each product.
    if not torch.is_grad_enabled():
        return product(x, weight, bias)
    return OneDNNLinear.apply(x, weight, bias)  # type: ignore[no-untyped-call, no-any-return]


class Linear(nn.Linear):
    """torch.nn.Linear, computed with `linear`."""

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)
