"""Forced decoding: token log probabilities and attention of given translations.

Shapes: B pairs, T target positions, S source positions, D d_model, M positions of all pairs, N vocabulary.
"""

import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor

from nmt.config import BOS, PAD
from nmt.model import DecoderLayer, Transformer
from nmt.search.attention_weights import cross_weights, watching
from nmt.search.beam_search import pad, pad_source
from nmt.search.engine import Pair, TokenScores, aligning_layer, batches_by_length

POSITIONS_AT_ONCE = 512
"""Positions whose logits are in memory at the same time."""


def pad_inputs(targets: Sequence[list[int]], device: torch.device) -> Tensor:
    """The decoder's input, [B, T]: the start symbol and all tokens, then padding."""
    return pad([[BOS, *ids] for ids in targets], device)


def token_log_probabilities(model: Transformer, hidden_MD: Tensor, tokens_M: Tensor) -> Tensor:
    """log P of the token that follows each hidden state, [M], without the logits of all positions in memory."""
    parts = [
        model.logits(hidden).float().log_softmax(dim=1).gather(1, tokens[:, None])[:, 0]
        for hidden, tokens in zip(hidden_MD.split(POSITIONS_AT_ONCE), tokens_M.split(POSITIONS_AT_ONCE), strict=True)
    ]
    return torch.cat(parts)


def score_batch(
    models: Sequence[Transformer], source_BS: Tensor, inputs_BT: Tensor, tokens_BT: Tensor, align: bool
) -> tuple[Tensor, Tensor | None]:
    """log P of each real token, one pair after another, [M]; with `align`, the mean attention of heads, [B, T, S]."""
    real_BT = tokens_BT != PAD
    log_probabilities, attention = [], []
    for model in models:
        memory_BSD = model.encode(source_BS)
        layer = cast(DecoderLayer, model.decoder_layers[aligning_layer(len(model.decoder_layers))])
        with watching([layer.residual_2] if align else []) as seen:
            hidden_BTD = model.decode(inputs_BT, memory_BSD, source_BS)
        log_probabilities.append(token_log_probabilities(model, hidden_BTD[real_BT], tokens_BT[real_BT]))
        if align:
            attention.append(cross_weights(layer, seen[0], memory_BSD, model.real(source_BS)).mean(dim=1))
    mean_M = torch.stack(log_probabilities).logsumexp(0) - math.log(len(models))
    return mean_M, torch.stack(attention).mean(dim=0) if align else None


@torch.inference_mode()
def forced_decoding(
    models: Sequence[Transformer], pairs: Sequence[Pair], budget: int, align: bool = False
) -> list[TokenScores]:
    """The token scores of each pair by a model, or by an ensemble, whose probabilities are averaged.

    Batches have at most `budget` tokens of the longer side, but at least one pair. With `align`, the attention to the
    source comes along. It is that of the step whose output is the target token: one step later, when the token is the
    input, attention already looks for the next one.
    """
    device = next(models[0].parameters()).device
    scores: dict[int, TokenScores] = {}
    for batch in batches_by_length([max(map(len, pair)) + 1 for pair in pairs], budget):
        sources, targets = zip(*(pairs[index] for index in batch), strict=True)
        log_probabilities_M, attention_BTS = score_batch(
            models, pad_source(sources, device), pad_inputs(targets, device), pad_source(targets, device), align
        )
        rows = log_probabilities_M.split([len(ids) + 1 for ids in targets])
        for row, index in enumerate(batch):
            source, target = pairs[index]
            scores[index] = TokenScores(rows[row].tolist())
            if attention_BTS is not None:
                scores[index].attention = attention_BTS[row, : len(target), : len(source)].float().cpu().numpy()
    return [scores[index] for index in range(len(pairs))]
