"""The parameters of all layers, with their names and shapes in other programs.

The programs differ as follows:

- Matrices are [out, in] in nmt, transformers (MarianMTModel) and CTranslate2. In Marian they are
  [in, out], and vectors are [1, out].
- Marian and transformers keep sines and cosines in separate halves; nmt alternates them, as in the
  paper. So along every d_model dimension, their weights have the entries with our even indices
  first, then those with odd indices.
- Marian and transformers have a matrix each for queries, keys and values. nmt has one for all
  three. CTranslate2 has one for all three in self-attention; in cross-attention, it has one for
  queries, and one for keys and values.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nmt.config import ModelConfig

LINEAR_PARAMETERS = (("weight", "W"), ("bias", "b"))
"""The two parameters of a linear map, and the letters that Marian's names have for them."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of nmt, and those into which other programs split it along its first dimension.

    A program that lacks the parameter has no names for it.
    """

    ours: str
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    """The d_model dimensions, whose entries Marian and transformers order differently."""
    transformers: tuple[str, ...]
    marian: tuple[str, ...]
    ctranslate2: tuple[str, ...]
    """The names; of two, the first is for the query rows, the second for the other rows."""

    def reordered(self, tensor: Tensor, order_D: Tensor) -> Tensor:
        """The tensor with the entries along each d_model dimension in this order."""
        for axis in self.axes:
            tensor = tensor.index_select(axis, order_D)
        return tensor


@dataclass(frozen=True)
class Names:
    """The names of a part of the model in each program; empty if the program lacks it."""

    ours: str
    transformers: str
    marian: str
    ctranslate2: str


SELF_ATTENTION = Names("self_attention", "self_attn", "self", "self_attention")
CROSS_ATTENTION = Names("cross_attention", "encoder_attn", "context", "attention")


def layer_parameters(model: ModelConfig) -> Iterator[Parameter]:
    """The parameters of all layers, including attention biases, and the norms around them."""
    for stack, layers in (("encoder", model.encoder_layers), ("decoder", model.decoder_layers)):
        for number in range(layers):
            yield from parameters_of_layer(model, stack, number)
        if model.embedding_norm:
            embedding = Names(
                ours=f"{'source' if stack == 'encoder' else 'target'}_embedding.norm",
                transformers=f"model.{stack}.layernorm_embedding",
                # Marian has no such normalization.
                marian="",
                ctranslate2=f"{stack}/layernorm_embedding",
            )
            yield from normalization(model, embedding)
        # Pre-norm stacks have one more normalization, since the last residual is not normalized
        # otherwise.
        if model.norm == "pre":
            top = Names(
                ours=f"{stack}_norm",
                transformers=f"model.{stack}.layer_norm",
                marian=f"{stack}_top_ln",
                ctranslate2=f"{stack}/layer_norm",
            )
            yield from normalization(model, top)


def parameters_of_layer(model: ModelConfig, stack: str, number: int) -> Iterator[Parameter]:
    """The parameters of the layer with this number, from 0, of the encoder or decoder."""
    layer = Names(
        ours=f"{stack}_layers.{number}",
        transformers=f"model.{stack}.layers.{number}",
        # Marian counts layers from 1.
        marian=f"{stack}_l{number + 1}",
        ctranslate2=f"{stack}/layer_{number}",
    )
    is_decoder = stack == "decoder"
    if is_decoder and model.decoder == "ssru":
        yield from recurrence(model, layer)
    else:
        yield from attention(model, layer, SELF_ATTENTION)
    if is_decoder:
        yield from attention(model, layer, CROSS_ATTENTION)
    yield from feed_forward(model, layer, residual=3 if is_decoder else 2)


def recurrence(model: ModelConfig, layer: Names) -> Iterator[Parameter]:
    """The SSRU, which among the other programs only Marian has, and its normalization."""
    width = model.d_model
    for name, letter in (("input", "W"), ("forget", "Wf"), ("forget_bias", "bf")):
        is_bias = name == "forget_bias"
        yield Parameter(
            ours=f"{layer.ours}.ssru.{name}",
            shape=(width,) if is_bias else (width, width),
            axes=(0,) if is_bias else (0, 1),
            transformers=(),
            marian=(f"{layer.marian}_rnn_{letter}",),
            ctranslate2=(),
        )
    # The SSRU replaces self-attention, so it has the first residual of the layer.
    norm = Names(
        ours=f"{layer.ours}.residual_1.norm",
        transformers="",
        marian=f"{layer.marian}_rnn_ffn_ln",
        ctranslate2="",
    )
    yield from normalization(model, norm, marian_suffix(model))


def attention(model: ModelConfig, layer: Names, kind: Names) -> Iterator[Parameter]:
    """The projections of self-attention or cross-attention, and the sub-layer's normalization."""
    width = model.d_model
    ours = f"{layer.ours}.{kind.ours}"
    transformers = f"{layer.transformers}.{kind.transformers}"
    marian = f"{layer.marian}_{kind.marian}"
    ctranslate2 = f"{layer.ctranslate2}/{kind.ctranslate2}"
    if kind is SELF_ATTENTION:
        # The position of the sub-layer in its layer, counted from 1.
        residual = 1
        inputs = [f"{ctranslate2}/linear_0"]
        output = f"{ctranslate2}/linear_1"
    else:
        residual = 2
        inputs = [f"{ctranslate2}/linear_0", f"{ctranslate2}/linear_1"]
        output = f"{ctranslate2}/linear_2"
    for name, letter in LINEAR_PARAMETERS:
        is_bias = name == "bias"
        suffix = "_bias" if is_bias else ""
        # Queries, keys and values are one matrix in nmt. Heads consist of rows of it and of columns
        # of the output, which stay in order: only the d_model dimensions are reordered.
        yield Parameter(
            ours=f"{ours}.input{suffix}",
            shape=(3 * width,) if is_bias else (3 * width, width),
            axes=() if is_bias else (1,),
            transformers=tuple(f"{transformers}.{part}_proj.{name}" for part in "qkv"),
            marian=tuple(f"{marian}_{letter}{part}" for part in "qkv"),
            ctranslate2=tuple(f"{product}/{name}" for product in inputs),
        )
        yield Parameter(
            ours=f"{ours}.output{suffix}",
            shape=(width,) if is_bias else (width, width),
            axes=(0,),
            transformers=(f"{transformers}.out_proj.{name}",),
            marian=(f"{marian}_{letter}o",),
            ctranslate2=(f"{output}/{name}",),
        )
    norm = Names(
        ours=f"{layer.ours}.residual_{residual}.norm",
        transformers=f"{transformers}_layer_norm",
        marian=f"{marian}_Wo_ln",
        ctranslate2=f"{ctranslate2}/layer_norm",
    )
    yield from normalization(model, norm, marian_suffix(model))


def feed_forward(model: ModelConfig, layer: Names, residual: int) -> Iterator[Parameter]:
    """The two linear maps of a feed-forward network, and its normalization."""
    width = model.d_model
    inner = model.d_ff
    for name, letter in LINEAR_PARAMETERS:
        is_bias = name == "bias"
        yield Parameter(
            # 0 and 2 are the linear maps, 1 is the activation between them.
            ours=f"{layer.ours}.feed_forward.0.{name}",
            shape=(inner,) if is_bias else (inner, width),
            axes=() if is_bias else (1,),
            transformers=(f"{layer.transformers}.fc1.{name}",),
            marian=(f"{layer.marian}_ffn_{letter}1",),
            ctranslate2=(f"{layer.ctranslate2}/ffn/linear_0/{name}",),
        )
    for name, letter in LINEAR_PARAMETERS:
        is_bias = name == "bias"
        yield Parameter(
            ours=f"{layer.ours}.feed_forward.2.{name}",
            shape=(width,) if is_bias else (width, inner),
            axes=(0,),
            transformers=(f"{layer.transformers}.fc2.{name}",),
            marian=(f"{layer.marian}_ffn_{letter}2",),
            ctranslate2=(f"{layer.ctranslate2}/ffn/linear_1/{name}",),
        )
    norm = Names(
        ours=f"{layer.ours}.residual_{residual}.norm",
        transformers=f"{layer.transformers}.final_layer_norm",
        marian=f"{layer.marian}_ffn_ffn_ln",
        ctranslate2=f"{layer.ctranslate2}/ffn/layer_norm",
    )
    yield from normalization(model, norm, marian_suffix(model))


def marian_suffix(model: ModelConfig) -> str:
    """The end of Marian's names for the normalizations of sub-layers."""
    # Marian names a normalization for the operation that it belongs to: before or after a
    # sub-layer.
    return "_pre" if model.norm == "pre" else ""


def normalization(model: ModelConfig, norm: Names, suffix: str = "") -> Iterator[Parameter]:
    """The weight and bias of a layer normalization; `suffix` ends Marian's names."""
    for name, of_marian, of_ctranslate2 in (
        ("weight", "scale", "gamma"),
        ("bias", "bias", "beta"),
    ):
        yield Parameter(
            ours=f"{norm.ours}.{name}",
            shape=(model.d_model,),
            axes=(0,),
            transformers=(f"{norm.transformers}.{name}",),
            marian=(f"{norm.marian}_{of_marian}{suffix}",),
            ctranslate2=(f"{norm.ctranslate2}/{of_ctranslate2}",),
        )


def exported_layers(
    model: ModelConfig, ours: dict[str, Tensor], order_D: Tensor
) -> dict[str, Tensor]:
    """The parameters of all layers by transformers' names; zeros for missing biases.

    `order_D` is the order of the entries along each d_model dimension.
    """
    weights = dict[str, Tensor]()
    for row in layer_parameters(model):
        tensor = ours.get(row.ours, torch.zeros(row.shape))
        parts = row.reordered(tensor, order_D).chunk(len(row.transformers))
        weights |= zip(row.transformers, parts, strict=True)
    return weights


def halves(d_model: int) -> npt.NDArray[np.int64]:
    """Our column index for each column in Marian and transformers."""
    sines = np.arange(0, d_model, 2)
    cosines = np.arange(1, d_model, 2)
    return np.concatenate((sines, cosines))
