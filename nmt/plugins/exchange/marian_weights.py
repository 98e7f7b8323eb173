"""Our parameters under the names of MarianMTModel of transformers, in its order, and back.

- Marian keeps sines and cosines in the two halves of the width; here they alternate, as in the paper. So in all weights
  the even indices of the width come first there, then the odd ones. LayerNorm does not depend on the order.
- The vocabulary here begins with PAD, BOS, EOS and UNK. There, it is a table with </s> and <unk>, and with <pad> in
  transformers alone, where the decoder also starts from <pad>.

Shapes: D d_model, N vocabulary.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nmt.config import BOS, EOS, UNK, ModelConfig
from nmt.files import Shapes
from nmt.text import MARIAN_SYMBOLS, SOURCE, TARGET

Weights = dict[str, Tensor]
Take = Callable[[str, tuple[int, ...]], Tensor]
"""Gives the tensor of a name and a shape."""


@dataclass(frozen=True)
class Part:
    """A parameter of ours, and those of Marian that it consists of."""

    ours: str
    theirs: tuple[str, ...]
    axis: int | None
    """The dimension of size d_model whose order differs; None: none."""


def parts(config: ModelConfig) -> Iterator[Part]:
    """The parameters of the layers."""
    for stack, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for number in range(layers):
            yield from layer_parts(f"{stack}_layers.{number}", f"model.{stack}.layers.{number}")
        if config.norm == "pre":
            yield from norm_parts(f"{stack}_norm", f"model.{stack}.layer_norm")


def layer_parts(ours: str, theirs: str) -> Iterator[Part]:
    attentions = [("self_attention", "self_attn")]
    if ours.startswith("decoder"):
        attentions.append(("cross_attention", "encoder_attn"))
    for number, (own, name) in enumerate(attentions, 1):
        for kind, suffix in (("weight", ""), ("bias", "_bias")):
            inputs = tuple(f"{theirs}.{name}.{letter}_proj.{kind}" for letter in "qkv")
            yield Part(f"{ours}.{own}.input{suffix}", inputs, 1 if kind == "weight" else None)
            yield Part(f"{ours}.{own}.output{suffix}", (f"{theirs}.{name}.out_proj.{kind}",), 0)
        yield from norm_parts(f"{ours}.residual_{number}.norm", f"{theirs}.{name}_layer_norm")
    yield Part(f"{ours}.feed_forward.0.weight", (f"{theirs}.fc1.weight",), 1)
    yield Part(f"{ours}.feed_forward.0.bias", (f"{theirs}.fc1.bias",), None)
    yield Part(f"{ours}.feed_forward.2.weight", (f"{theirs}.fc2.weight",), 0)
    yield Part(f"{ours}.feed_forward.2.bias", (f"{theirs}.fc2.bias",), 0)
    yield from norm_parts(f"{ours}.residual_{len(attentions) + 1}.norm", f"{theirs}.final_layer_norm")


def norm_parts(ours: str, theirs: str) -> Iterator[Part]:
    for kind in ("weight", "bias"):
        yield Part(f"{ours}.{kind}", (f"{theirs}.{kind}",), 0)


def halves(d_model: int) -> Tensor:
    """Our index of each of Marian's, [D]."""
    return torch.cat((torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)))


def layers_to_marian(ours: Weights, config: ModelConfig) -> Weights:
    """The layers of a model under Marian's names; missing biases are zeros."""
    order_D, weights = halves(config.d_model), Weights()
    for part in parts(config):
        tensor = ours.get(part.ours)
        if tensor is None:
            tensor = torch.zeros(config.d_model * len(part.theirs))
        if part.axis is not None:
            tensor = tensor.index_select(part.axis, order_D)
        weights |= zip(part.theirs, tensor.chunk(len(part.theirs)), strict=True)
    return weights


def layers_from_marian(take: Take, config: ModelConfig, shapes: Shapes) -> Weights:
    """The layers of a model under our names, whose shapes are given."""
    order_D, weights = halves(config.d_model).argsort(), Weights()
    for part in parts(config):
        rows, *columns = shapes[part.ours]
        tensor = torch.cat([take(name, (rows // len(part.theirs), *columns)) for name in part.theirs])
        weights[part.ours] = tensor if part.axis is None else tensor.index_select(part.axis, order_D)
    return weights


def rows_of(table: Sequence[str], has_padding: bool) -> list[int]:
    """For each of our ids the row in Marian's order; without padding, that of PAD and BOS is one after the last."""
    row = {entry: number for number, entry in enumerate(table)}
    end, unknown, padding = (row.get(symbol, len(table)) for symbol in MARIAN_SYMBOLS)
    padding = padding if has_padding else len(table)
    return [padding, padding, end, unknown, *(row[entry] for entry in table if entry not in MARIAN_SYMBOLS)]


def ids_of(table: Sequence[str]) -> list[int]:
    """For each row in Marian's order our id; <pad> is the start symbol, and follows the table that has none."""
    symbols = dict(zip(MARIAN_SYMBOLS, (EOS, UNK, BOS), strict=True))
    ordinary = iter(range(UNK + 1, UNK + 1 + len(table)))
    ids = [symbols[entry] if entry in symbols else next(ordinary) for entry in table]
    return ids if MARIAN_SYMBOLS[2] in table else [*ids, BOS]


def vocabulary_from_marian(take: Take, tables: Sequence[Sequence[str]], config: ModelConfig, padding: bool) -> Weights:
    """Embeddings, output matrix and bias under our names; without `padding` there, PAD and BOS have zeros."""
    order_D, weights = halves(config.d_model).argsort(), Weights()
    for ours, theirs, side in (
        ("source_embedding.weight", "model.encoder.embed_tokens.weight", SOURCE),
        ("target_embedding.weight", "model.decoder.embed_tokens.weight", TARGET),
        ("output.weight", "lm_head.weight", TARGET),
        ("output.bias", "final_logits_bias", TARGET),
    ):
        table, is_bias = tables[-1 if side == TARGET else 0], ours == "output.bias"
        tensor = take(theirs, (1, len(table)) if is_bias else (len(table), config.d_model))
        tensor = tensor.T if is_bias else tensor[:, order_D]
        tensor = torch.cat((tensor, torch.zeros_like(tensor[:1])))[rows_of(table, padding)]
        weights[ours] = tensor.flatten() if is_bias else tensor
    return weights
