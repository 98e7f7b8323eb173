"""Linear maps, on the kernels that are fastest where they run.

On x86 processors torch gives float32 products to MKL, whose kernels for AMD are half as fast as oneDNN's, which torch
carries along too (benchmarks/linear.py). Elsewhere, and in other precisions, this is torch.nn.functional.linear.

Shapes: M rows, K inputs, N outputs.
"""

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

ONEDNN = torch.backends.mkldnn.is_available() and platform.machine() in ("x86_64", "AMD64")
LEAST = 2**25
"""Multiplications worth making a kernel for, which belongs to one shape and takes a fraction of a millisecond."""
LEAST_OF_FEW_SHAPES = 2**20
"""The same where shapes come again, so that their kernels need not be made again."""


@contextmanager
def few_shapes() -> Iterator[None]:
    """Make kernels for smaller products too, within: where few shapes come up, and kernels are kept."""
    global LEAST
    before, LEAST = LEAST, LEAST_OF_FEW_SHAPES
    try:
        yield
    finally:
        LEAST = before


def has_fast_product(x: Tensor, weight: Tensor) -> bool:
    """Whether `product` can be called with tensors like `x`, and is worth it."""
    return (
        ONEDNN
        and x.numel() * len(weight) >= LEAST
        and x.device.type == "cpu"
        and x.dtype == torch.float32
        and not torch.compiler.is_compiling()
        and not torch.is_autocast_enabled("cpu")
    )


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None, then: str = "none") -> Tensor:
    """x W^T + b by oneDNN, without a gradient: [..., K] and [N, K] -> [..., N]; strides are free.

    `then` is none or relu.
    """
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, then, [], "")  # type: ignore[no-any-return]


def outer_product(grad_MN: Tensor, x_MK: Tensor) -> Tensor:
    """G^T X, the gradient of the weight: [N, K]. oneDNN is faster where the wider side is the columns."""
    if grad_MN.shape[1] > x_MK.shape[1]:
        return product(x_MK.t(), grad_MN.t()).t()
    return product(grad_MN.t(), x_MK.t())


class OneDNNLinear(torch.autograd.Function):
    """forward(x [..., K], weight [N, K], bias [N] or None) -> [..., N]."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.biased = bias is not None
        return product(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        grad_MN = grads[0].flatten(0, -2)
        return (
            product(grads[0], weight.t()) if ctx.needs_input_grad[0] else None,
            outer_product(grad_MN, x.flatten(0, -2)) if ctx.needs_input_grad[1] else None,
            grad_MN.sum(0) if ctx.biased and ctx.needs_input_grad[2] else None,
        )


class OneDNNFeedForward(torch.autograd.Function):
    """forward(x [..., D], W1 [F, D], b1 [F], W2 [D, F], b2 [D]) -> max(0, x W1^T + b1) W2^T + b2 (equation 2)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
        inner = product(x, w1, b1, then="relu")
        ctx.save_for_backward(x, inner, w1, w2)
        return product(inner, w2, b2)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, ...]:
        x, inner, w1, w2 = ctx.saved_tensors
        x_MD, inner_MF, grad_MD = x.flatten(0, -2), inner.flatten(0, -2), grads[0].flatten(0, -2)
        grad_MF = product(grad_MD, w2.t())
        torch.ops.aten.threshold_backward(grad_MF, inner_MF, 0, grad_input=grad_MF)
        grad_x = product(grad_MF, w1.t()).view_as(x)
        return (
            grad_x,
            outer_product(grad_MF, x_MD),
            grad_MF.sum(0),
            outer_product(grad_MD, inner_MF),
            grad_MD.sum(0),
        )


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b: [..., K] and [N, K] -> [..., N]."""
    if not has_fast_product(x, weight):
        return F.linear(x, weight, bias)
    if not torch.is_grad_enabled():
        return product(x, weight, bias)
    return OneDNNLinear.apply(x, weight, bias)  # type: ignore[no-untyped-call, no-any-return]


def feed_forward(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    """max(0, x W1^T + b1) W2^T + b2 (equation 2): [..., D], [F, D], [F], [D, F] and [D] -> [..., D]."""
    if not has_fast_product(x, w1):
        return F.linear(F.relu(F.linear(x, w1, b1)), w2, b2)
    if not torch.is_grad_enabled():
        return product(product(x, w1, b1, then="relu"), w2, b2)
    return OneDNNFeedForward.apply(x, w1, b1, w2, b2)  # type: ignore[no-untyped-call, no-any-return]


class Linear(torch.nn.Linear):
    """torch.nn.Linear by `linear`."""

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)
