"""Scores of additive attention (compared in section 3.2.1), in memory that does not grow with T x S x K.

Shapes: B batch, T queries, S keys, H heads, K d_k.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

BLOCK_NUMBERS = 2**21
"""Most values of tanh(q + k) in memory at once, but at least those of one query."""


def tanh_blocks(q_BHTK: Tensor, k_BHSK: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Slices of queries, and tanh(q + k) of their pairs, [B, H, rows, S, K]."""
    rows = max(BLOCK_NUMBERS // max(k_BHSK.numel(), 1), 1)
    for begin in range(0, q_BHTK.shape[2], rows):
        part = slice(begin, begin + rows)
        yield part, (q_BHTK[:, :, part, None] + k_BHSK[:, :, None]).tanh_()


class AdditiveScores(torch.autograd.Function):
    """forward(q, k, v [H, K]) -> v^T tanh(q + k). The backward pass recomputes tanh, block by block."""

    @staticmethod
    def forward(ctx: Any, q_BHTK: Tensor, k_BHSK: Tensor, v_HK: Tensor) -> Tensor:
        ctx.save_for_backward(q_BHTK, k_BHSK, v_HK)
        scores_BHTS = q_BHTK.new_empty(*q_BHTK.shape[:3], k_BHSK.shape[2])
        for part, x_BHTSK in tanh_blocks(q_BHTK, k_BHSK):
            scores_BHTS[:, :, part] = torch.matmul(x_BHTSK.flatten(2, 3), v_HK[:, :, None]).view(x_BHTSK.shape[:4])
        return scores_BHTS

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q_BHTK, k_BHSK, v_HK = ctx.saved_tensors
        grad_q, grad_k, grad_v = torch.empty_like(q_BHTK), torch.zeros_like(k_BHSK), torch.zeros_like(v_HK)
        for part, x_BHTSK in tanh_blocks(q_BHTK, k_BHSK):
            grad_BHTS = grads[0][:, :, part]
            grad_v += torch.matmul(grad_BHTS.flatten(2)[:, :, None], x_BHTSK.flatten(2, 3)).sum((0, 2))
            # The derivative of tanh is 1 - tanh^2.
            slope_BHTSK = x_BHTSK.square_().neg_().add_(1).mul_(grad_BHTS[..., None])
            grad_q[:, :, part] = slope_BHTSK.sum(3) * v_HK[:, None]
            grad_k += slope_BHTSK.sum(2)
        return grad_q, grad_k.mul_(v_HK[:, None]), grad_v


def additive_scores(q_BHTK: Tensor, k_BHSK: Tensor, v_HK: Tensor) -> Tensor:
    """v^T tanh(q + k) of every query and key (additive attention, section 3.2.1), [B, H, T, S]."""
    return AdditiveScores.apply(q_BHTK, k_BHSK, v_HK.to(q_BHTK.dtype))  # type: ignore[no-untyped-call, no-any-return]
