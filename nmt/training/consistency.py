"""The loss of consistency training: label-smoothed cross-entropy plus weight * KL(p(pair) || p(noisy copy)).

Both distributions get gradients, as in SimCut (Gao et al. 2022, https://arxiv.org/abs/2206.02368).
Shapes: B sentences, S source positions, T target positions, M target tokens, N vocabulary.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from nmt.config import UNK
from nmt.data import Batch
from nmt.model import Transformer


def hide(ids: Tensor, share: float) -> Tensor:
    """Replace this share of the tokens by the unknown token, but no padding, start or end symbol."""
    return ids.masked_fill((torch.rand(ids.shape, device=ids.device) < share) & (ids > UNK), UNK)


def consistent_losses(
    model: Transformer, batch: Batch, smoothing: float, weight: float, cut: float
) -> tuple[Tensor, Tensor]:
    """The loss and the negative log likelihood of the pair without noise, summed over the target tokens."""
    source_2BS, target_2BT = (
        torch.cat((ids, hide(ids, cut))) for ids in (batch.source, batch.target_in)
    )
    hidden = model.decoder_states(source_2BS, target_2BT, batch.padded).flatten(0, 1).chunk(2)
    targets, first = batch.target_out.flatten()[batch.target_indices], model.config.unpredicted
    logits = (
        model.output(half.index_select(0, batch.target_indices))[:, first:].float()
        for half in hidden
    )
    log_p_MN, log_q_MN = (F.log_softmax(half, dim=1) for half in logits)
    likelihood = F.nll_loss(log_p_MN, targets - first, reduction="sum")
    loss = (1 - smoothing) * likelihood - smoothing * log_p_MN.mean(1).sum()
    divergence = F.kl_div(log_q_MN, log_p_MN, reduction="sum", log_target=True)
    return loss + weight * divergence, likelihood.detach()
