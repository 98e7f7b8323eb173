"""The names of layer parameters in nmt, transformers, Marian and CTranslate2. Does not import torch.

- Matrices are [out, in] in nmt, transformers (MarianMTModel) and CTranslate2. In Marian they are [in, out], and vectors
  are [1, out].
- Marian and transformers keep sines and cosines in separate halves; nmt alternates them, as in the paper. So along
  every d_model dimension, their weights have the entries with our even indices first, then those with odd indices.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.config import ModelConfig


class Row(NamedTuple):
    """An nmt parameter, and the parameters into which other programs split it along its first dimension."""

    ours: str
    shape: tuple[int, ...]
    axis: int | None  # the d_model dimension, whose entries other programs may order differently
    transformers: tuple[str, ...]
    marian: tuple[str, ...]
    ctranslate2: tuple[str, ...]  # of two names, the first is for the query rows, the second for the others


def layer_table(model: ModelConfig) -> Iterator[Row]:
    """The parameters of all layers, including attention biases."""
    for stack, layers in (("encoder", model.encoder_layers), ("decoder", model.decoder_layers)):
        for number in range(layers):
            yield from layer_rows(model, stack, number)
        if model.norm == "pre":
            names = f"model.{stack}.layer_norm", f"{stack}_top_ln", "", f"{stack}/layer_norm"
            yield from norm_rows(model, f"{stack}_norm", *names)


def layer_rows(model: ModelConfig, stack: str, number: int) -> Iterator[Row]:
    ours, hub, marian = f"{stack}_layers.{number}", f"model.{stack}.layers.{number}", f"{stack}_l{number + 1}"
    other, width, inner, pre = f"{stack}/layer_{number}", model.d_model, model.d_ff, "_pre" * (model.norm == "pre")
    attentions = [("self_attention", "self_attn", "self", "self_attention")]
    attentions += [("cross_attention", "encoder_attn", "context", "attention")] if stack == "decoder" else []
    for place, (name, a, b, c) in enumerate(attentions, 1):
        *inputs, output = [f"{other}/{c}/linear_{part}" for part in range(1 + place)]
        for kind, letter, suffix, shape in (("weight", "W", "", [width]), ("bias", "b", "_bias", [])):
            yield Row(
                f"{ours}.{name}.input{suffix}",
                (3 * width, *shape),
                1 if shape else None,
                tuple(f"{hub}.{a}.{part}_proj.{kind}" for part in "qkv"),
                tuple(f"{marian}_{b}_{letter}{part}" for part in "qkv"),
                tuple(f"{part}/{kind}" for part in inputs),
            )
            theirs = (f"{hub}.{a}.out_proj.{kind}",), (f"{marian}_{b}_{letter}o",), (f"{output}/{kind}",)
            yield Row(f"{ours}.{name}.output{suffix}", (width, *shape), 0, *theirs)
        names = f"{hub}.{a}_layer_norm", f"{marian}_{b}_Wo_ln", pre, f"{other}/{c}/layer_norm"
        yield from norm_rows(model, f"{ours}.residual_{place}.norm", *names)
    for place, rows, columns, axes in ((1, inner, width, (1, None)), (2, width, inner, (0, 0))):
        name, other_name = f"{ours}.feed_forward.{2 * place - 2}", f"{other}/ffn/linear_{place - 1}"
        for kind, letter, axis in (("weight", "W", axes[0]), ("bias", "b", axes[1])):
            theirs = (f"{hub}.fc{place}.{kind}",), (f"{marian}_ffn_{letter}{place}",), (f"{other_name}/{kind}",)
            yield Row(f"{name}.{kind}", (rows, columns) if kind == "weight" else (rows,), axis, *theirs)
    names = f"{hub}.final_layer_norm", f"{marian}_ffn_ffn_ln", pre, f"{other}/ffn/layer_norm"
    yield from norm_rows(model, f"{ours}.residual_{len(attentions) + 1}.norm", *names)


def norm_rows(model: ModelConfig, ours: str, hub: str, marian: str, suffix: str, other: str) -> Iterator[Row]:
    for name, a, b in (("weight", "scale", "gamma"), ("bias", "bias", "beta")):
        theirs = (f"{hub}.{name}",), (f"{marian}_{a}{suffix}",), (f"{other}/{b}",)
        yield Row(f"{ours}.{name}", (model.d_model,), 0, *theirs)


def halves(d_model: int) -> npt.NDArray[np.int64]:
    """Our column index for each column in Marian and transformers, where sines and cosines are in separate halves."""
    return np.concatenate((np.arange(0, d_model, 2), np.arange(1, d_model, 2)))
