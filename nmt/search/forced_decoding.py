"""Forced decoding: token log probabilities and attention of given translations.

Shapes: B pairs, T target positions, S source positions, D d_model, M positions of all pairs, N vocabulary.
"""

import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor

from nmt.config import BOS, PAD
from nmt.model import Transformer
from nmt.model.layers import DecoderLayer
from nmt.model.transformer import padding_mask
from nmt.search.attention_weights import cross_weights, watching
from nmt.search.engine import Pair, TokenScores, batches_by_length
from nmt.search.torch_engine import evaluating, pad_source

POSITIONS_AT_ONCE = 512
"""Positions whose logits are in memory at once."""


def pad_inputs(targets: Sequence[list[int]], device: torch.device) -> Tensor:
    """The decoder's input, [B, T]: the start symbol and all tokens, then padding."""
    longest = max(map(len, targets)) + 1
    return torch.tensor([[BOS, *ids] + [PAD] * (longest - len(ids) - 1) for ids in targets], device=device)


def aligning_layer(model: Transformer) -> int:
    """The layer whose attention aligns best, counted from 0.

    That is the last but one in deep decoders (Garg et al. 2019), the last in those of three layers and less.
    """
    layers = len(model.decoder_layers)
    return layers - 2 if layers > 3 else layers - 1


def token_log_probabilities(model: Transformer, hidden_MD: Tensor, tokens_M: Tensor) -> Tensor:
    """log P of the token that follows each hidden state, [M]; never the logits of all positions at once."""
    parts = [
        model.output(hidden).float().log_softmax(dim=1).gather(1, tokens[:, None])[:, 0]
        for hidden, tokens in zip(hidden_MD.split(POSITIONS_AT_ONCE), tokens_M.split(POSITIONS_AT_ONCE), strict=True)
    ]
    return torch.cat(parts)


def score_batch(
    models: Sequence[Transformer], source_BS: Tensor, inputs_BT: Tensor, tokens_BT: Tensor, align: bool
) -> tuple[Tensor, Tensor | None]:
    """log P of each real token, one pair after another, [M]; with `align` attention averaged over heads, [B, T, S]."""
    real_BT = tokens_BT != PAD
    log_probabilities, attention = [], []
    for model in models:
        memory_BSD = model.encode(source_BS)
        layer = cast(DecoderLayer, model.decoder_layers[aligning_layer(model)])
        with watching([layer.residual_2] if align else []) as seen:
            hidden_BTD = model.decode(inputs_BT, memory_BSD, source_BS)
        log_probabilities.append(token_log_probabilities(model, hidden_BTD[real_BT], tokens_BT[real_BT]))
        if align:
            attention.append(cross_weights(layer, seen[0], memory_BSD, padding_mask(source_BS)).mean(dim=1))
    mean_M = torch.stack(log_probabilities).logsumexp(0) - math.log(len(models))
    return mean_M, torch.stack(attention).mean(dim=0) if align else None


@torch.inference_mode()
def forced_decoding(
    models: Sequence[Transformer], pairs: Sequence[Pair], budget: int, align: bool = False
) -> list[TokenScores]:
    """The token scores of each pair by a model, or by an ensemble, whose probabilities are averaged.

    Batches have `budget` tokens of the longer side at most, one pair at least.
    Attention is that of the layer that aligns best, read at the step that has a target token as its output: at the
    step that has it as its input, attention looks for the next one already.
    """
    device = next(models[0].parameters()).device
    lengths = [max(map(len, pair)) + 1 for pair in pairs]
    scores: dict[int, TokenScores] = {}
    with evaluating(models):
        for batch in batches_by_length(lengths, budget):
            sources, targets = zip(*(pairs[index] for index in batch), strict=True)
            found, attention_BTS = score_batch(
                models, pad_source(sources, device), pad_inputs(targets, device), pad_source(targets, device), align
            )
            log_probabilities = iter(found.split([len(ids) + 1 for ids in targets]))
            for row, index in enumerate(batch):
                source, target = pairs[index]
                weights = attention_BTS[row, : len(target), : len(source)] if attention_BTS is not None else None
                scores[index] = TokenScores(
                    next(log_probabilities).tolist(), None if weights is None else weights.cpu().numpy()
                )
    return [scores[index] for index in range(len(pairs))]
