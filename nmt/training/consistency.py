"""The loss of consistency training.

It is label-smoothed cross-entropy plus weight * KL(p(pair) || p(noisy copy)).

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
    """Replace this share of the tokens, except padding, start and end, with the unknown token."""
    is_drawn = torch.rand(ids.shape, device=ids.device) < share
    is_word = ids > UNK  # the special symbols come first
    return ids.masked_fill(is_drawn & is_word, UNK)


def consistent_losses(
    model: Transformer, batch: Batch, smoothing: float, weight: float, cut: float
) -> tuple[Tensor, Tensor]:
    """The loss and the negative log likelihood of the pairs without noise, both summed."""
    # The pairs and their copies go through the model together; dropout differs between the two.
    source_2BS = torch.cat((batch.source, hide(batch.source, cut)))
    target_2BT = torch.cat((batch.target_in, hide(batch.target_in, cut)))
    hidden = model.decoder_states(source_2BS, target_2BT, batch.padded)
    # The pairs are the first B of 2 B sentences, so their states are the first half.
    pair_states, copy_states = hidden.flatten(0, 1).chunk(2)
    log_p_MN = log_probabilities(model, pair_states, batch)
    log_q_MN = log_probabilities(model, copy_states, batch)

    targets_M = batch.target_out.flatten()[batch.target_indices]
    targets_M = targets_M - model.config.unpredicted
    likelihood = F.nll_loss(log_p_MN, targets_M, reduction="sum")
    mean_M = log_p_MN.mean(1)
    # The uniform part of the targets: smoothing / N times the sum over N entries is the mean.
    loss = (1 - smoothing) * likelihood - smoothing * mean_M.sum()
    # torch's argument order: the second distribution first, KL(second argument || first).
    divergence = F.kl_div(log_q_MN, log_p_MN, reduction="sum", log_target=True)
    # From the pairs alone, so that the reported perplexity is comparable between runs.
    return loss + weight * divergence, likelihood.detach()


def log_probabilities(model: Transformer, states: Tensor, batch: Batch) -> Tensor:
    """log P of each target token, without padding: [B T, D] -> [M, N].

    The vocabulary begins after the symbols that the model never predicts. The softmax is in
    float32, even with mixed precision.
    """
    logits_MN = model.output(states.index_select(0, batch.target_indices))
    logits_MN = logits_MN[:, model.config.unpredicted :].float()
    return F.log_softmax(logits_MN, dim=1)
