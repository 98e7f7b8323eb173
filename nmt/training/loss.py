"""Label-smoothed cross-entropy (section 5.4).

Shapes: M target tokens, D d_model, N vocabulary.
"""

from typing import Any

import torch
from torch import Tensor

from nmt.kernels import has_fast_product, linear, outer_product

CHUNK_LOGITS = 2**23
"""Logits computed at a time: 32 MB of float32, however large the batch and the vocabulary."""


def nll_and_probabilities(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """-log p(target) and log sum exp of each row, and the probabilities, which overwrite the logits.

    The normaliser follows from the probability of the likeliest token, which cannot underflow. Apart from two maxima,
    softmax is the only pass over the logits, and it keeps a row in the cache. One maximum with its index takes longer.
    """
    highest = logits.amax(dim=-1, keepdim=True)
    target_logits = logits.gather(1, targets[:, None])
    probabilities = torch.softmax(logits, dim=-1, out=logits)
    normaliser = highest - probabilities.amax(dim=-1, keepdim=True).log()
    return normaliser - target_logits, normaliser, probabilities


class LabelSmoothedCrossEntropy(torch.autograd.Function):
    """Loss (section 5.4) and gradient in one pass over chunks of the logits, which are never in memory all at once.

    forward(hidden [M, D], weight [N, D], targets [M], smoothing, bias [N] or None) returns two sums over tokens: the
    smoothed loss, and the negative log likelihood, which has no gradient. In mixed precision only the products have a
    lower precision: their factors are cast once, and sums over chunks or the vocabulary are in float32.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, smoothing: float, bias: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        vocabulary, device = len(weight), hidden.device.type
        rows = max(1, CHUNK_LOGITS // vocabulary)
        nll, normalisers = hidden.new_zeros((), dtype=torch.float32), hidden.new_zeros((), dtype=torch.float32)
        grad_hidden, grad_weight, grad_bias = [], None, None if bias is None else torch.zeros_like(bias)
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
        matrix = weight.to(dtype)
        for x, y in zip(hidden.to(dtype).split(rows), targets.split(rows), strict=True):
            logits = linear(x, matrix, None if bias is None else bias.to(dtype)).float()
            chunk_nll, normaliser, grad = nll_and_probabilities(logits, y)
            nll += chunk_nll.sum()
            normalisers += normaliser.sum()
            if not ctx.needs_input_grad[0]:
                continue
            # d loss / d logits = softmax - (1 - smoothing) onehot - smoothing / N; the last term is added below.
            grad.scatter_add_(1, y[:, None], grad.new_full((len(y), 1), smoothing - 1))
            if grad_bias is not None:
                grad_bias += grad.sum(0)
            grad = grad.to(dtype)
            grad_hidden.append(linear(grad, matrix.t()))
            chunk = outer_product(grad, x) if has_fast_product(x, matrix) else grad.t() @ x
            grad_weight = chunk.float() if grad_weight is None else grad_weight.add_(chunk)
        # For the uniform part, sums of logits and gradients are products with sums of weights and of hidden states.
        sum_hidden, sum_weight = (x.sum(0, dtype=torch.float32) for x in (hidden, weight))
        uniform, share = normalisers - sum_hidden.dot(sum_weight) / vocabulary, smoothing / vocabulary
        if bias is not None:
            uniform -= len(hidden) * bias.mean()
        if grad_bias is not None:
            grad_bias -= len(hidden) * share
        if grad_weight is not None:
            whole = torch.cat(grad_hidden).sub_(sum_weight * share)
            ctx.gradients = whole, grad_weight.sub_(sum_hidden * share), grad_bias
        ctx.mark_non_differentiable(nll)
        return (1 - smoothing) * nll + smoothing * uniform, nll

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        # In place: nothing else refers to these tensors, and they are used once.
        grad_hidden, grad_weight, grad_bias = (x if x is None else x.mul_(grads[0]) for x in ctx.gradients)
        del ctx.gradients
        return grad_hidden, grad_weight, None, None, grad_bias


def label_smoothed_cross_entropy(
    hidden: Tensor, weight: Tensor, targets: Tensor, smoothing: float, bias: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Sums over tokens: cross-entropy with (1 - smoothing) onehot + smoothing / N (section 5.4), and -log p(target)."""
    loss, likelihood = LabelSmoothedCrossEntropy.apply(hidden, weight, targets, smoothing, bias)  # type: ignore[no-untyped-call]
    return loss, likelihood
