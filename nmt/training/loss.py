"""Label-smoothed cross-entropy (section 5.4), with its gradient, from the decoder's states.

Shapes: M target tokens, D d_model, N vocabulary.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from nmt import kernels
from nmt.config import ExperimentConfig
from nmt.data import Batch
from nmt.model import Transformer
from nmt.training.consistency import consistent_losses

CHUNK_LOGITS = {"cpu": 2**23}
"""The number of logits to compute at a time, by type of device, however large batch and vocabulary are.

32 MB in float32 stay in a CPU's cache.
"""
CHUNK_LOGITS_ELSEWHERE = 2**28
"""1 GiB: a GPU would spend more time on adding the gradients of many chunks than on computing them."""

ChunkTerms = Callable[[Tensor, Tensor, float, torch.dtype], tuple[Tensor, Tensor, Tensor]]


def chunk_rows(vocabulary: int, device: torch.device) -> int:
    return max(1, CHUNK_LOGITS.get(device.type, CHUNK_LOGITS_ELSEWHERE) // vocabulary)


def product_dtype(x: Tensor) -> torch.dtype:
    """The type of the factors of matrix products with x."""
    device = x.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype


def weight_gradient(grad_MN: Tensor, x_MD: Tensor, weight_ND: Tensor) -> Tensor:
    """The gradient of the weight of a linear map, [N, D]."""
    if kernels.has_fast_product(x_MD, weight_ND):
        return kernels.outer_product(grad_MN, x_MD)
    return grad_MN.t() @ x_MD


def chunk_terms(
    logits: Tensor, targets_M: Tensor, smoothing: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """What a chunk of logits, [M, N], adds to the loss.

    Returns the gradient by the logits without its uniform part, softmax - (1 - smoothing) onehot, [M, N] in `dtype`,
    and the sums of -log p(target) and of the logarithms of the softmax's normalizers.
    """
    logits = logits.float()
    targets_M1 = targets_M[:, None]
    highest = logits.amax(dim=-1, keepdim=True)
    target_logits = logits.gather(1, targets_M1)
    if torch.compiler.is_compiling():
        gradient = torch.softmax(logits, dim=-1)
    else:  # in place, because new memory takes longer than the arithmetic
        gradient = torch.softmax(logits, dim=-1, out=logits)
    # Get log-sum-exp from the largest probability, which cannot underflow; this needs only softmax and maxima.
    normalizer = highest - gradient.amax(dim=-1, keepdim=True).log()
    nll = (normalizer - target_logits).sum()
    if kernels.on_cpu(logits):
        gradient.scatter_add_(1, targets_M1, gradient.new_full(targets_M1.shape, smoothing - 1))
    else:
        # On a GPU, the deterministic form of scatter_add_ would sort all indices.
        is_target = torch.arange(logits.shape[1], device=logits.device) == targets_M1
        gradient.add_(is_target, alpha=smoothing - 1)
    return gradient.to(dtype), nll, normalizer.sum()


class LabelSmoothedCrossEntropy(torch.autograd.Function):
    """Loss (section 5.4) and gradient in one pass over chunks of the logits, which are never all in memory at once.

    forward(hidden [M, D], weight [N, D], targets [M], smoothing, bias [N] or None, terms: the form of `chunk_terms`).
    In mixed precision, only the products use lower precision: their factors are cast once, and the sums are computed
    in float32.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        targets: Tensor,
        smoothing: float,
        bias: Tensor | None,
        terms: ChunkTerms,
    ) -> tuple[Tensor, Tensor]:
        vocabulary = len(weight)
        device = hidden.device
        rows = chunk_rows(vocabulary, device)
        nll = hidden.new_zeros((), dtype=torch.float32)
        normalizers = torch.zeros_like(nll)
        grad_hidden = []
        grad_weight = None
        grad_bias = None if bias is None else torch.zeros_like(bias)
        dtype = product_dtype(hidden)
        matrix = weight.to(dtype)
        row_bias = None if bias is None else bias.to(dtype)
        grad_dtype = (
            dtype if bias is None else torch.float32
        )  # the gradient of a bias is summed before the cast
        for x, y in zip(hidden.to(dtype).split(rows), targets.split(rows), strict=True):
            # torch's compiler would make another kernel for a single row.
            form = terms if len(y) > 1 else chunk_terms
            logits = kernels.linear(x, matrix, row_bias)
            grad, chunk_nll, chunk_normalizers = form(logits, y, smoothing, grad_dtype)
            nll += chunk_nll
            normalizers += chunk_normalizers
            if not ctx.needs_input_grad[0]:
                continue
            if grad_bias is not None:
                grad_bias += grad.sum(0)
                grad = grad.to(dtype)
            grad_hidden.append(kernels.linear(grad, matrix.t()))
            chunk = weight_gradient(grad, x, matrix)
            grad_weight = chunk.float() if grad_weight is None else grad_weight.add_(chunk)
        # For the uniform part, the summed weights and summed hidden states suffice to sum logits and gradients.
        sum_hidden = hidden.sum(0, dtype=torch.float32)
        sum_weight = weight.sum(0, dtype=torch.float32)
        uniform = normalizers - sum_hidden.dot(sum_weight) / vocabulary
        share = smoothing / vocabulary
        if bias is not None and grad_bias is not None:
            uniform -= len(hidden) * bias.mean()
            grad_bias -= len(hidden) * share
        if grad_weight is not None:
            whole = torch.cat(grad_hidden).sub_(sum_weight * share)
            ctx.gradients = whole, grad_weight.sub_(sum_hidden * share), grad_bias
        ctx.mark_non_differentiable(nll)
        return (1 - smoothing) * nll + smoothing * uniform, nll

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        # Scale in place: nothing else refers to these tensors, and they are used only once.
        grad_hidden, grad_weight, grad_bias = (
            x if x is None else x.mul_(grads[0]) for x in ctx.gradients
        )
        del ctx.gradients
        return grad_hidden, grad_weight, None, None, grad_bias, None


def label_smoothed_cross_entropy(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    smoothing: float,
    bias: Tensor | None = None,
    terms: ChunkTerms = chunk_terms,
) -> tuple[Tensor, Tensor]:
    """Sums over tokens: cross-entropy with (1 - smoothing) onehot + smoothing / N (section 5.4), and -log p(target).

    `terms` is `chunk_terms` or a compiled form of it.
    """
    loss, likelihood = LabelSmoothedCrossEntropy.apply(
        hidden, weight, targets, smoothing, bias, terms
    )  # type: ignore[no-untyped-call]
    return loss, likelihood


def summed_losses(
    model: Transformer, batch: Batch, label_smoothing: float
) -> tuple[Tensor, Tensor]:
    """The smoothed loss and the negative log likelihood, summed over the target tokens of a micro-batch."""
    hidden = model.decoder_states(batch.source, batch.target_in, batch.padded).flatten(0, 1)
    targets = batch.target_out.flatten()
    real = batch.target_indices
    if len(real) < len(targets):  # compute no logits for padding
        hidden = hidden.index_select(0, real)
        targets = targets.index_select(0, real)
    weight: Tensor = model.output.weight
    bias: Tensor | None = model.output.bias
    if (
        first := model.config.unpredicted
    ):  # slice only if needed: its gradient takes up another matrix
        weight = weight[first:]
        bias = None if bias is None else bias[first:]
        targets = targets - first
    compiler = model.training_compiler()
    terms = compiler.compiled(chunk_terms) if compiler else chunk_terms
    return label_smoothed_cross_entropy(hidden, weight, targets, label_smoothing, bias, terms)


Losses = Callable[[Transformer, Batch, float], tuple[Tensor, Tensor]]
"""A function like `summed_losses`."""


def training_losses(config: ExperimentConfig) -> Losses:
    """`summed_losses`, or with optim.consistency.weight, the loss of consistency training."""
    options = config.optim.consistency
    if options.weight:
        return partial(consistent_losses, weight=options.weight, cut=options.cut)
    return summed_losses
