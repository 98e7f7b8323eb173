"""Label-smoothed cross-entropy (section 5.4).

Shapes: M target tokens, D d_model, N vocabulary.
"""

from typing import Any

import torch
from torch import Tensor

CHUNK = 2**23
"""Logits made at a time: 32 MB of float32, which a reused buffer holds, however large the batch."""


class LabelSmoothedCrossEntropy(torch.autograd.Function):
    """Loss and gradient in one pass over pieces of the logits, which are never all in memory.

    forward(hidden [M, D], weight [N, D], targets [M], smoothing) gives two sums over tokens: the smoothed loss,
    and the negative log likelihood, which has no gradient.
    """

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        vocabulary = len(weight)
        rows = max(1, CHUNK // vocabulary)
        loss, likelihood = hidden.new_zeros((), dtype=torch.float32), hidden.new_zeros((), dtype=torch.float32)
        grad_hidden, grad_weight = torch.empty_like(hidden), torch.zeros_like(weight)
        for x, y, grad_x in zip(hidden.split(rows), targets.split(rows), grad_hidden.split(rows), strict=True):
            logits = (x @ weight.t()).float()
            normaliser = logits.logsumexp(dim=-1)
            nll = (normaliser - logits.gather(1, y[:, None])[:, 0]).sum()
            uniform = normaliser.sum() - logits.sum() / vocabulary
            likelihood += nll
            loss += (1 - smoothing) * nll + smoothing * uniform
            if not ctx.needs_input_grad[0]:
                continue
            # d loss / d logits = softmax - (1 - smoothing) onehot - smoothing / N, in the logits' own memory.
            grad = logits.sub_(normaliser[:, None]).exp_().sub_(smoothing / vocabulary)
            grad.scatter_add_(1, y[:, None], grad.new_full((len(y), 1), smoothing - 1))
            grad = grad.to(x.dtype)
            torch.mm(grad, weight.to(x.dtype), out=grad_x)
            grad_weight += grad.t() @ x
        ctx.save_for_backward(grad_hidden, grad_weight)
        ctx.mark_non_differentiable(likelihood)
        return loss, likelihood

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        grad_hidden, grad_weight = ctx.saved_tensors
        return grad_hidden * grads[0], grad_weight * grads[0], None, None


def label_smoothed_cross_entropy(
    hidden: Tensor, weight: Tensor, targets: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Sums over tokens of the cross-entropy with (1 - smoothing) onehot + smoothing / N, and of -log p(target).

    Shapes: hidden [M, D] and weight [N, D], whose product are the logits, targets [M].
    """
    loss, likelihood = LabelSmoothedCrossEntropy.apply(hidden, weight, targets, smoothing)  # type: ignore[no-untyped-call]
    return loss, likelihood
