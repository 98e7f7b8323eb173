"""Weights of Marian and of MarianMTModel of transformers as ours.

The vocabulary here begins with PAD, BOS, EOS and UNK. There, it is a table with </s> and <unk>, and with <pad> in
transformers alone, where the decoder also starts from <pad>. names.py has the other differences.

Shapes: D d_model, N vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt.config import ModelConfig, build, require, shown
from nmt.errors import NMTError, one_line
from nmt.files import EMBEDDINGS, read_bytes
from nmt.model import Transformer
from nmt.plugins.exchange.names import halves, layer_table
from nmt.text import MARIAN_SYMBOLS, SOURCE, MarianTokenizer, marian_tokenizer

Weights = dict[str, Tensor]
VOCABULARY = (
    *("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"),
    "final_logits_bias",
)
"""transformers' names of EMBEDDINGS and of output.bias."""
COMPUTED_BY: dict[str, dict[str, Any]] = {
    "marian": {"zero_start": True, "positions": "tensor2tensor", "norm_epsilon": 1e-6},
    "transformers": {"padding_probability": False},
}
"""What a program that trains such models computes otherwise than the paper."""


@dataclass
class MarianModel:
    """A model that was read from files of another program, under our names."""

    trained_by: str
    """marian or transformers."""
    config: ModelConfig
    weights: Weights
    tokenizer: MarianTokenizer
    length_penalty: float
    """alpha, of kind marian."""
    languages: tuple[str, str] = ("und", "und")

    def model(self) -> Transformer:
        model = Transformer(self.config, self.tokenizer.vocabulary_size)
        model.load_state_dict(self.weights)
        return model.eval()


def entries_by_number(path: Path, numbers: dict[str, Any]) -> list[str]:
    """The entries of a vocabulary in the order of their numbers; NMTError unless these are 0, 1, 2 and so on."""
    if sorted(map(str, numbers.values())) != sorted(map(str, range(len(numbers)))):
        raise NMTError(f"{path}: the numbers of its entries are not 0, 1, 2 and so on, each once")
    return sorted(numbers, key=lambda entry: int(numbers[entry]))


def tokenizer_of(models: Sequence[Path], tables: Sequence[list[str]], tags: bool) -> MarianTokenizer:
    """The tokenizer of the sentencepiece models of source and target, and of one table or one for each."""
    try:
        return marian_tokenizer([read_bytes(path) for path in models], tables, tags)
    except ValueError as error:
        raise NMTError(f"{models[0].parent}: no tokenizer ({one_line(error)})") from error


def read_weights(
    where: Path,
    settings: dict[str, Any],
    by: str,
    tokenizer: MarianTokenizer,
    layers: Weights,
    vocabulary: tuple[Tensor | None, ...],
) -> tuple[ModelConfig, Weights]:
    """The configuration and the weights under our names; matrices are tied where they are equal.

    `by` is who trained the model, `layers` have the names of Marian or of transformers, `vocabulary` is in the order of
    VOCABULARY. Raises NMTError unless these are all weights, of the right shapes, and no others.
    """
    marians = any(name.startswith("encoder_l1_") for name in layers)
    tables, (source, target, output, _) = tokenizer.tables, vocabulary
    if source is None or target is None or output is None:
        raise NMTError(f"{where}: it has no embeddings")
    left = layers | {name: tensor for name, tensor in zip(VOCABULARY, vocabulary, strict=True) if tensor is not None}

    def take(name: str, *shape: int) -> Tensor:
        require(name in left, f"{where}: {name} is missing")
        tensor = left.pop(name)
        if marians and name in layers and tensor.dim() == 2:
            tensor = tensor[0] if len(shape) == 1 and len(tensor) == 1 else tensor.T
        require(tensor.shape == shape, f"{where}: {name} is {list(tensor.shape)}, where there should be {list(shape)}")
        require(bool(tensor.isfinite().all()), f"{where}: {name} holds values that are no finite numbers")
        return tensor.float()

    tied = torch.equal(target, output)
    # A source whose matrix alone is not tied has a vocabulary of its own, if with the same entries.
    joint = len(tables) == 1 and (not tied or torch.equal(source, target))
    sizes = {"tied_embeddings": tied, "source_vocabulary_size": None if joint else len(tokenizer.entries[SOURCE])}
    biases = {"attention_bias": True, "output_bias": True}
    config = build(ModelConfig, {"name": "marian", **settings, **biases, **sizes, **COMPUTED_BY[by]}, str(where))
    order_D, weights = torch.from_numpy(halves(config.d_model).argsort()), Weights()
    for row in layer_table(config):
        names = row.marian if marians else row.transformers
        tensor = torch.cat([take(name, row.shape[0] // len(names), *row.shape[1:]) for name in names])
        weights[row.ours] = tensor if row.axis is None else tensor.index_select(row.axis, order_D)
    for ours, theirs, side in zip((*EMBEDDINGS, "output.bias"), VOCABULARY, (0, -1, -1, -1), strict=True):
        table, is_bias = tables[side], ours == "output.bias"
        tensor = take(theirs, 1, len(table)).T if is_bias else take(theirs, len(table), config.d_model)[:, order_D]
        # The last row is for PAD and BOS where the table has none.
        tensor = torch.cat((tensor, torch.zeros_like(tensor[:1])))[rows_of(table, by == "transformers")]
        weights[ours] = tensor.flatten() if is_bias else tensor
    require(not left, f"{where}: it has {shown(min(left, default=''))}, which is not known to be in such a model")
    return config, weights


def rows_of(table: Sequence[str], has_padding: bool) -> list[int]:
    """For each of our ids the row in Marian's order; without padding, that of PAD and BOS is one after the last."""
    row = {entry: number for number, entry in enumerate(table)}
    end, unknown, padding = (row.get(symbol, len(table)) for symbol in MARIAN_SYMBOLS)
    padding = padding if has_padding else len(table)
    return [padding, padding, end, unknown, *(row[entry] for entry in table if entry not in MARIAN_SYMBOLS)]
