"""Label-smoothed cross-entropy (section 5.4), with its gradient, from the decoder's states.

The logits of all tokens would take more memory than the rest of training, so loss and gradient are
computed chunk by chunk, in one pass.

Shapes: M target tokens, R target tokens of a chunk, D d_model, N vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass
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
"""The number of logits to compute at a time, by type of device.

It does not depend on the sizes of batch and vocabulary. 32 MB in float32 stay in a CPU's cache.
"""
CHUNK_LOGITS_ELSEWHERE = 2**28
"""1 GiB: with small chunks, a GPU would spend more time on adding gradients than on products."""
FEWEST_ROWS = 128
"""The same for a CPU: each chunk reads the whole weight and adds to its whole gradient."""

SLICE_NUMBERS = 2**26
"""The most numbers of the weight's gradient to compute at a time.

A second matrix of this size is needed besides the gradient: for 256,206 words of width 1,024, a
quarter of the gradient's size.
"""

ChunkTerms = Callable[[Tensor, Tensor, float, torch.dtype], tuple[Tensor, Tensor, Tensor]]
"""`chunk_terms` or a compiled form of it."""

Losses = Callable[[Transformer, Batch, float], tuple[Tensor, Tensor]]
"""A function like `summed_losses`."""


def chunk_rows(vocabulary: int, device: torch.device) -> int:
    """The number of target tokens in a chunk."""
    logits = CHUNK_LOGITS.get(device.type, CHUNK_LOGITS_ELSEWHERE)
    return max(FEWEST_ROWS, logits // vocabulary)


def product_dtype(x: Tensor) -> torch.dtype:
    """The type of the factors of matrix products with x."""
    device = x.device.type
    if torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return x.dtype


def chunk_terms(
    logits_RN: Tensor, targets_R: Tensor, smoothing: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """The contribution of a chunk of logits to the loss.

    Returns three tensors: the gradient with respect to the logits without its uniform part,
    softmax - (1 - smoothing) onehot, [R, N] in `dtype`; the sum of -log p(target); and the sum of
    the logarithms of the softmax's normalizers.
    """
    logits_RN = logits_RN.float()
    targets_R1 = targets_R[:, None]
    # Both are read before the softmax overwrites the logits.
    highest_R1 = logits_RN.amax(dim=-1, keepdim=True)
    target_logits_R1 = logits_RN.gather(1, targets_R1)
    if torch.compiler.is_compiling():
        gradient_RN = torch.softmax(logits_RN, dim=-1)
    else:  # in place, because new memory takes longer than the arithmetic
        gradient_RN = torch.softmax(logits_RN, dim=-1, out=logits_RN)
    # Compute log-sum-exp from the largest probability, which cannot underflow, so that only softmax
    # and maxima are needed.
    largest_R1 = gradient_RN.amax(dim=-1, keepdim=True)
    normalizer_R1 = highest_R1 - largest_R1.log()
    nll = (normalizer_R1 - target_logits_R1).sum()
    if kernels.on_cpu(logits_RN):
        # Subtracting (1 - e) onehot changes only one number per row.
        minus_onehot = gradient_RN.new_full(targets_R1.shape, smoothing - 1)
        gradient_RN.scatter_add_(1, targets_R1, minus_onehot)
    else:
        # On a GPU, the deterministic form of scatter_add_ would sort all indices.
        entries_N = torch.arange(logits_RN.shape[1], device=logits_RN.device)
        is_target_RN = entries_N == targets_R1
        gradient_RN.add_(is_target_RN, alpha=smoothing - 1)
    return gradient_RN.to(dtype), nll, normalizer_R1.sum()


def weight_gradient(grad_RN: Tensor, x_RD: Tensor, weight_ND: Tensor) -> Tensor:
    """The gradient of the weight of a linear map, [N, D]."""
    if kernels.has_fast_product(x_RD, weight_ND):
        return kernels.outer_product(grad_RN, x_RD)
    return grad_RN.t() @ x_RD


@dataclass
class Needs:
    """The inputs whose gradients are needed; frozen parameters need none."""

    hidden: bool
    weight: bool
    bias: bool

    def any(self) -> bool:
        return self.hidden or self.weight or self.bias


class Gradients:
    """The gradients of hidden states, weight and bias, added up chunk by chunk."""

    def __init__(self, needs: Needs, bias_N: Tensor | None) -> None:
        self.needs = needs
        self.hidden_chunks: list[Tensor] = []
        self.weight_ND: Tensor | None = None
        self.bias_N: Tensor | None = None
        if bias_N is not None and needs.bias:
            self.bias_N = torch.zeros_like(bias_N)

    def add(self, grad_RN: Tensor, x_RD: Tensor, weight_ND: Tensor) -> None:
        """Add a chunk; `grad_RN` is the gradient with respect to its logits, x W^T."""
        if self.bias_N is not None:
            self.bias_N += grad_RN.sum(0)
        grad_RN = grad_RN.to(x_RD.dtype)
        # The backward pass of logits = x W^T: x has the gradient grad W, and W has grad^T x.
        if self.needs.hidden:
            self.hidden_chunks.append(kernels.linear(grad_RN, weight_ND.t()))
        if self.needs.weight:
            self.add_to_weight(grad_RN, x_RD, weight_ND)

    def add_to_weight(self, grad_RN: Tensor, x_RD: Tensor, weight_ND: Tensor) -> None:
        is_small = weight_ND.numel() <= SLICE_NUMBERS
        # float32 even in mixed precision: a sum over many chunks would lose bits in bfloat16.
        if self.weight_ND is None and is_small:
            self.weight_ND = weight_gradient(grad_RN, x_RD, weight_ND).float()
            return
        if self.weight_ND is None:
            self.weight_ND = torch.zeros_like(weight_ND, dtype=torch.float32)
        # In slices: for a large vocabulary, a product would take as much memory as the gradient.
        words = max(1, SLICE_NUMBERS // weight_ND.shape[1])
        slices = zip(
            self.weight_ND.split(words),
            grad_RN.split(words, dim=1),
            weight_ND.split(words),
            strict=True,
        )
        for total, grad, weight in slices:
            # Contiguous, because oneDNN takes hundreds of times as long for columns of a matrix.
            total.add_(weight_gradient(grad.contiguous(), x_RD, weight))

    def without_uniform_part(
        self, sum_hidden_D: Tensor, sum_weight_D: Tensor, tokens: int, share: float
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """The complete gradients: subtract `share`, smoothing / N, from each logit's gradient."""
        # Let share = e / N be subtracted from the gradients of all N logits of a token. Its hidden
        # gradient then falls by share times the sum of the weight's rows, and each row of the
        # weight's gradient falls by share times the sum of the hidden states.
        hidden_MD: Tensor | None = None
        if self.needs.hidden:
            hidden_MD = torch.cat(self.hidden_chunks).sub_(sum_weight_D * share)
        if self.weight_ND is not None:
            self.weight_ND.sub_(sum_hidden_D * share)
        if self.bias_N is not None:
            self.bias_N -= tokens * share
        return hidden_MD, self.weight_ND, self.bias_N


class LabelSmoothedCrossEntropy(torch.autograd.Function):
    """Loss (section 5.4) and gradient in one pass over chunks of the logits.

    With smoothing e, the targets are (1 - e) onehot + e / N. The loss of a token is then

        (1 - e) (-log p(target)) + e (log Z - mean of the logits),

    where Z is the softmax's normalizer, and its gradient with respect to the logits is

        softmax - (1 - e) onehot - e / N.

    The logits are never all in memory at once. In mixed precision, only the products use lower
    precision: their factors are cast once, and the sums are computed in float32.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden_MD: Tensor,
        weight_ND: Tensor,
        targets_M: Tensor,
        smoothing: float,
        bias_N: Tensor | None,
        terms: ChunkTerms,
    ) -> tuple[Tensor, Tensor]:
        tokens = len(hidden_MD)
        vocabulary = len(weight_ND)
        rows = chunk_rows(vocabulary, hidden_MD.device)
        dtype = product_dtype(hidden_MD)
        # Cast once for all chunks; autocast would cast the factors of each chunk again.
        matrix_ND = weight_ND.to(dtype)
        row_N = None if bias_N is None else bias_N.to(dtype)
        needs_hidden, needs_weight, _, _, needs_bias, _ = ctx.needs_input_grad
        needs = Needs(needs_hidden, needs_weight, needs_bias)
        # The gradient of a bias is summed before the cast.
        grad_dtype = torch.float32 if needs.bias else dtype
        # Validation needs no gradients, which are most of the work.
        gradients = Gradients(needs, bias_N) if needs.any() else None
        nll = hidden_MD.new_zeros((), dtype=torch.float32)
        normalizers = torch.zeros_like(nll)
        hidden_chunks = hidden_MD.to(dtype).split(rows)
        for x_RD, y_R in zip(hidden_chunks, targets_M.split(rows), strict=True):
            # torch's compiler would build a separate kernel for a single row.
            form = terms if len(y_R) > 1 else chunk_terms
            logits_RN = kernels.linear(x_RD, matrix_ND, row_N)
            grad_RN, chunk_nll, chunk_normalizers = form(logits_RN, y_R, smoothing, grad_dtype)
            nll += chunk_nll
            normalizers += chunk_normalizers
            if gradients:
                gradients.add(grad_RN, x_RD, matrix_ND)
        # The sum of all logits is the product of the summed hidden states and the summed weights,
        # so the uniform part of loss and gradients needs no logits.
        sum_hidden_D = hidden_MD.sum(0, dtype=torch.float32)
        sum_weight_D = weight_ND.sum(0, dtype=torch.float32)
        uniform = normalizers - sum_hidden_D.dot(sum_weight_D) / vocabulary
        if bias_N is not None:
            uniform -= tokens * bias_N.mean()
        if gradients:
            # Not save_for_backward, which is for inputs and outputs; `backward` frees these at
            # once.
            ctx.gradients = gradients.without_uniform_part(
                sum_hidden_D, sum_weight_D, tokens, smoothing / vocabulary
            )
        # Only reports use `nll`; training minimizes the smoothed loss.
        ctx.mark_non_differentiable(nll)
        return (1 - smoothing) * nll + smoothing * uniform, nll

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        hidden_MD, weight_ND, bias_N = ctx.gradients
        del ctx.gradients
        # Scale in place: nothing else refers to these tensors, and they are used only once.
        for gradient in (hidden_MD, weight_ND, bias_N):
            if gradient is not None:
                gradient.mul_(grads[0])
        return hidden_MD, weight_ND, None, None, bias_N, None


def label_smoothed_cross_entropy(
    hidden_MD: Tensor,
    weight_ND: Tensor,
    targets_M: Tensor,
    smoothing: float,
    bias_N: Tensor | None = None,
    terms: ChunkTerms = chunk_terms,
) -> tuple[Tensor, Tensor]:
    """The label-smoothed loss (section 5.4) and -log p(target), each summed over the tokens.

    The loss is the cross-entropy with (1 - smoothing) onehot + smoothing / N.
    """
    loss, likelihood = LabelSmoothedCrossEntropy.apply(
        hidden_MD, weight_ND, targets_M, smoothing, bias_N, terms
    )  # type: ignore[no-untyped-call]
    return loss, likelihood


def summed_losses(
    model: Transformer, batch: Batch, label_smoothing: float
) -> tuple[Tensor, Tensor]:
    """The smoothed loss and the negative log likelihood, each summed over the target tokens."""
    hidden_BTD = model.decoder_states(batch.source, batch.target_in, batch.padded)
    hidden_MD = hidden_BTD.flatten(0, 1)
    targets_M = batch.target_out.flatten()
    real = batch.target_indices
    if len(real) < len(targets_M):  # compute no logits for padding
        hidden_MD = hidden_MD.index_select(0, real)
        targets_M = targets_M.index_select(0, real)
    weight_ND: Tensor = model.output.weight
    bias_N: Tensor | None = model.output.bias
    # Slice only if needed: the gradient of a slice takes up another matrix.
    first = model.config.unpredicted
    if first:
        weight_ND = weight_ND[first:]
        bias_N = None if bias_N is None else bias_N[first:]
        targets_M = targets_M - first
    # None unless trainer.compile is on and the model is training.
    compiler = model.training_compiler()
    terms = compiler.compiled(chunk_terms) if compiler else chunk_terms
    return label_smoothed_cross_entropy(
        hidden_MD, weight_ND, targets_M, label_smoothing, bias_N, terms
    )


def training_losses(config: ExperimentConfig) -> Losses:
    """`summed_losses`, or with optim.consistency.weight, the loss of consistency training."""
    options = config.optim.consistency
    if options.weight:
        return partial(consistent_losses, weight=options.weight, cut=options.cut)
    return summed_losses
