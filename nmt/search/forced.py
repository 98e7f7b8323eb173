"""Forced decoding: token log probabilities and attention of given translations.

Attention weights, softmax(Q K^T / sqrt(d_k)) of equation 1, are computed a second time beside the running model, which
uses torch's fused attention: that does not return them.

Shapes: B pairs, T target positions, S source positions, L layers, H heads, D d_model, M positions of all pairs.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from nmt.config import BOS, PAD
from nmt.model import DecoderLayer, EncoderLayer, Residual, Transformer
from nmt.search.beam_search import pad, pad_source
from nmt.search.engine import Pair, TokenScores, aligning_layer, batches_by_length

POSITIONS_AT_ONCE = 512  # whose logits are in memory at the same time


@contextmanager
def watching(residuals: Sequence[Residual]) -> Iterator[list[Tensor]]:
    """Collect the inputs of the sub-layers within these residuals while the model runs."""
    seen: list[Tensor] = []

    def look(residual: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        assert isinstance(residual, Residual)
        seen.append(inputs[0] if residual.post_norm else residual.norm(inputs[0]))

    handles = [residual.register_forward_pre_hook(look) for residual in residuals]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@dataclass
class Attention:
    """The weights of every layer and head; the weights of one query sum to 1."""

    encoder: Tensor  # [B, L, H, S, S]
    decoder: Tensor  # [B, L, H, T, T]: the queries are the decoder's inputs, the first of which is the start symbol
    cross: Tensor  # [B, L, H, T, S]


@torch.inference_mode()
def model_attention(model: Transformer, source_BS: Tensor, inputs_BT: Tensor) -> Attention:
    """All attention weights of a model for these sources and decoder inputs (the paper draws some, figures 3 to 5)."""
    encoder, decoder = cast(Any, list(model.encoder_layers)), cast(Any, list(model.decoder_layers))
    with watching([layer.residual_1 for layer in encoder]) as into_encoder:
        memory_BSD = model.encode(source_BS)
    with (
        watching([layer.residual_1 for layer in decoder]) as into_decoder,
        watching([layer.residual_2 for layer in decoder]) as into_cross,
    ):
        model.decode(inputs_BT, memory_BSD, source_BS)
    near, visible = model.source_mask(source_BS), model.past_mask(inputs_BT)
    to_source = [self_weights(layer, x, near) for layer, x in zip(encoder, into_encoder, strict=True)]
    past = [self_weights(layer, x, visible) for layer, x in zip(decoder, into_decoder, strict=True)]
    real = model.real(source_BS)
    cross = [cross_weights(layer, x, memory_BSD, real) for layer, x in zip(decoder, into_cross, strict=True)]
    return Attention(torch.stack(to_source, 1), torch.stack(past, 1), torch.stack(cross, 1))


def self_weights(layer: EncoderLayer | DecoderLayer, x_BTD: Tensor, visible: Tensor | None) -> Tensor:
    """The weights of a layer's self-attention, [B, H, T, T]; `visible=None`: each position sees all up to itself."""
    q, k, _ = layer.self_attention.project(x_BTD)
    return layer.self_attention.weights(q, k, visible, causal=visible is None)


def cross_weights(layer: DecoderLayer, x_BTD: Tensor, memory_BSD: Tensor, visible: Tensor) -> Tensor:
    """The weights of a layer's attention to the encoder's output, [B, H, T, S]."""
    cross = layer.cross_attention
    return cross.weights(cross.queries(x_BTD), cross.keys_values(memory_BSD)[0], visible)


def pad_inputs(targets: Sequence[list[int]], device: torch.device) -> Tensor:
    """The decoder's input, [B, T]: the start symbol and all tokens, then padding."""
    return pad([[BOS, *ids] for ids in targets], device)


def token_log_probabilities(model: Transformer, hidden_MD: Tensor, tokens_M: Tensor) -> Tensor:
    """log P of the token that follows each hidden state, [M], without the logits of all positions in memory."""
    parts = zip(hidden_MD.split(POSITIONS_AT_ONCE), tokens_M.split(POSITIONS_AT_ONCE), strict=True)
    logp = (model.logits(hidden).float().log_softmax(dim=1).gather(1, tokens[:, None]) for hidden, tokens in parts)
    return torch.cat(list(logp))[:, 0]


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

    Batches have at most `budget` tokens of the longer side. With `align`, the attention to the source comes along, of
    the step whose output is the target token: one step later, attention already looks for the next one.
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
