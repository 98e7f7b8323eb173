"""Forced decoding: the log probabilities and the attention of given translations.

Attention weights, softmax(Q K^T / sqrt(d_k)) of equation 1, are computed separately, because the
model uses PyTorch's fused attention, which does not return them.

Shapes: B pairs, T target positions, S source positions, H heads, D d_model, M positions in all
pairs.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor

from nmt.config import BOS, PAD
from nmt.model import DecoderLayer, MultiHeadAttention, Transformer
from nmt.search.batches import pad, pad_source
from nmt.search.engine import Pair, TokenScores, aligning_layer, batches_by_length

POSITIONS_AT_ONCE = 512
"""Positions whose logits are in memory at once: 64 MB with 32,000 vocabulary entries."""


@contextmanager
def recorded(attentions: Sequence[MultiHeadAttention]) -> Iterator[list[Tensor]]:
    """Collect the weights of these attention modules, [B, H, T, S], while the model runs."""
    weights: list[Tensor] = []

    def attend(
        attention: MultiHeadAttention,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *mask: Any,
        **causal: Any,
    ) -> Tensor:
        weights.append(attention.weights(q, k, *mask, **causal))
        return MultiHeadAttention.attend(attention, q, k, v, *mask, **causal)

    for attention in attentions:
        # This attribute of the instance hides the method of its class until it is deleted.
        attention.attend = partial(attend, attention)  # type: ignore[method-assign]
    try:
        yield weights
    finally:
        for attention in attentions:
            del attention.attend


def token_log_probabilities(model: Transformer, hidden_MD: Tensor, tokens_M: Tensor) -> Tensor:
    """log P of the token after each hidden state, [M].

    The logits of all positions would need too much memory, so they are computed in parts.
    """
    parts = []
    hidden_parts = hidden_MD.split(POSITIONS_AT_ONCE)
    token_parts = tokens_M.split(POSITIONS_AT_ONCE)
    for hidden, tokens in zip(hidden_parts, token_parts, strict=True):
        logp = model.log_probabilities(hidden)
        parts.append(logp.gather(1, tokens[:, None]).squeeze(1))
    return torch.cat(parts)


def score_batch(
    models: Sequence[Transformer],
    source_BS: Tensor,
    inputs_BT: Tensor,
    tokens_BT: Tensor,
    align: bool,
) -> tuple[Tensor, Tensor | None]:
    """log P of each non-padding token, pair by pair, [M]; 0 for the tags of targets.

    With `align`, also the mean attention of the heads and models, [B, T, S].
    """
    real_BT = tokens_BT != PAD
    # As in a search, which is given the tag of the target's language.
    given = int(models[0].config.target_tags)
    given_BT = torch.zeros_like(real_BT)
    given_BT[:, :given] = True
    log_probabilities = []
    attention: list[Tensor] = []
    for model in models:
        number = aligning_layer(len(model.decoder_layers))
        layer = cast(DecoderLayer, model.decoder_layers[number])
        with recorded([layer.cross_attention] if align else []) as weights:
            hidden_BTD = model.decode(inputs_BT, model.encode(source_BS), source_BS)
        # Padding needs no logits.
        hidden_MD = hidden_BTD[real_BT]
        log_probabilities.append(token_log_probabilities(model, hidden_MD, tokens_BT[real_BT]))
        attention.extend(weights_BHTS.mean(dim=1) for weights_BHTS in weights)
    mean_M = torch.stack(log_probabilities).logsumexp(0) - math.log(len(models))
    is_given_M = given_BT[real_BT]
    mean_M.masked_fill_(is_given_M, 0.0)
    if not align:
        return mean_M, None
    return mean_M, torch.stack(attention).mean(dim=0)


@torch.inference_mode()
def forced_decoding(
    models: Sequence[Transformer],
    pairs: Sequence[Pair],
    budget: int,
    align: bool = False,
) -> list[TokenScores]:
    """Score the tokens of each pair with a model, or an ensemble that averages probabilities.

    The longer side of each batch has at most `budget` tokens. If `align`, also return the attention
    to the source at the step that predicts the target token. One step later, the model already
    attends to the next word.
    """
    device = next(models[0].parameters()).device
    scores: dict[int, TokenScores] = {}
    lengths = [max(map(len, pair)) + 1 for pair in pairs]
    for batch in batches_by_length(lengths, budget):
        sources = [pairs[index][0] for index in batch]
        targets = [pairs[index][1] for index in batch]
        source_BS = pad_source(sources, device)
        inputs = [[BOS, *ids] for ids in targets]
        inputs_BT = pad(inputs, device)
        # What each position of `inputs` predicts: the targets with their end symbols.
        tokens_BT = pad_source(targets, device)
        logp_M, attention_BTS = score_batch(models, source_BS, inputs_BT, tokens_BT, align)
        rows = logp_M.split([len(ids) + 1 for ids in targets])
        for row, index in enumerate(batch):
            scores[index] = TokenScores(rows[row].tolist())
            if attention_BTS is not None:
                # Without the end symbols.
                target_length = len(targets[row])
                source_length = len(sources[row])
                attention_TS = attention_BTS[row, :target_length, :source_length]
                scores[index].attention = attention_TS.float().cpu().numpy()
    return [scores[index] for index in range(len(pairs))]
