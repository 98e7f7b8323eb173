"""Attention weights, softmax(Q K^T / sqrt(d_k)) of equation 1, computed a second time beside the running model.

The model itself uses torch's fused attention, which does not return them.

Shapes: B sentences, T target positions, S source positions, L layers, H heads, D d_model.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from nmt.model import DecoderLayer, EncoderLayer, Residual, Transformer


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

    encoder: Tensor
    """[B, L, H, S, S]."""
    decoder: Tensor
    """[B, L, H, T, T]: the queries are the decoder's inputs, the first of which is the start symbol."""
    cross: Tensor
    """[B, L, H, T, S]."""


@torch.inference_mode()
def model_attention(model: Transformer, source_BS: Tensor, inputs_BT: Tensor) -> Attention:
    """All attention weights of a model for these sources and decoder inputs (the paper draws some, figures 3 to 5)."""
    encoder = cast("list[EncoderLayer]", list(model.encoder_layers))
    decoder = cast("list[DecoderLayer]", list(model.decoder_layers))
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
    """The weights of a layer's self-attention, [B, H, T, T]; `visible=None`: each position sees those up to itself."""
    q, k, _ = layer.self_attention.project(x_BTD)
    return layer.self_attention.weights(q, k, visible, causal=visible is None)


def cross_weights(layer: DecoderLayer, x_BTD: Tensor, memory_BSD: Tensor, visible: Tensor) -> Tensor:
    """The weights of a layer's attention to the encoder's output, [B, H, T, S]."""
    cross = layer.cross_attention
    return cross.weights(cross.queries(x_BTD), cross.keys_values(memory_BSD)[0], visible)
