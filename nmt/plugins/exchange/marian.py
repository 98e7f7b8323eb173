"""Read models that Marian or transformers' MarianMT stored.

Marian (https://marian-nmt.github.io) computes different sinusoids than transformers, uses an
epsilon of 1e-6, and starts its decoder from zeros. An imported model does the same, unless it was
trained by transformers: then the embedding of <pad>, its decoder's start token, is not zero.
parameters.py covers the other differences.

Shapes: D d_model, N vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt.config import DecodeConfig, ModelConfig, NMTError, build, shown
from nmt.files import EMBEDDINGS
from nmt.model import Transformer
from nmt.plugins.exchange.hub_weights import Weights
from nmt.plugins.exchange.marian_vocabulary import rows_of
from nmt.plugins.exchange.parameters import halves, layer_parameters
from nmt.plugins.exchange.supported import MARIAN_NUMBERS
from nmt.text import MARIAN_SYMBOLS, SOURCE, MarianTokenizer

Supported = dict[str, tuple[Any, ...]]
"""Keys of a program's settings and their supported values, the program's default first."""

HUB_EMBEDDINGS = (
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    "lm_head.weight",
)
"""The names that transformers uses for EMBEDDINGS."""
HUB_BIAS = "final_logits_bias"
"""The name that transformers uses for output.bias."""
HUB_SHARED = "model.shared.weight"
"""The matrix for all EMBEDDINGS that are missing."""
SETTINGS_BY_TRAINER: dict[str, dict[str, Any]] = {
    "marian": MARIAN_NUMBERS,
    # The <pad> of transformers has a probability. It is also the start token, so nmt has its row
    # twice, as PAD and BOS, and only BOS may count in the softmax.
    "transformers": {"padding_probability": False},
}
"""The settings of a model that depend on the program that trained it."""


@dataclass(frozen=True)
class StoredWeights:
    """The weights in a file, with transformers' names for embeddings and the output bias.

    Layers have Marian's or transformers' names.
    """

    path: Path
    tensors: Weights

    @property
    def are_marians(self) -> bool:
        """Whether layers have Marian's names."""
        return any(name.startswith("encoder_l1_") for name in self.tensors)


def model_settings(
    where: Path,
    tree: dict[str, Any],
    supported: Supported,
    keys: dict[str, str],
) -> dict[str, Any]:
    """The ModelConfig values of a program's settings.

    `keys` maps the program's keys to ModelConfig's. NMTError for unsupported values, or if encoder
    and decoder differ where nmt has one key for both.
    """
    # Only keys that change the computation; any others, such as those of training, are ignored.
    for key, values in supported.items():
        value = tree.get(key)
        # A key that is missing has the program's default.
        if value is None:
            value = values[0]
        # In Python, True equals 1, but a setting of 1 is not one of True.
        if not any(value == one and type(value) is type(one) for one in values):
            only = " or ".join(str(one) or "nothing" for one in values)
            raise NMTError(f"{where}: {key}={shown(value)}: only {only} can be imported")
    settings: dict[str, Any] = {}
    for key, name in keys.items():
        value = tree.get(key)
        if settings.setdefault(name, value) != value:
            raise NMTError(f"{where}: {key}={shown(value)} differs from the encoder's")
    return settings


def length_penalty(where: Path, alpha: Any) -> float:
    """A length penalty from a file, after the checks that decode.length_penalty gets."""
    return build(DecodeConfig, {"length_penalty": alpha}, str(where)).length_penalty


def read_weights(
    stored: StoredWeights,
    settings: dict[str, Any],
    tokenizer: MarianTokenizer,
) -> tuple[Transformer, str]:
    """The model with stored weights, and the program that trained it; equal matrices are tied.

    NMTError if weights are missing, unexpected or of the wrong shape.
    """
    where = stored.path
    tables = tokenizer.tables
    tensors = with_all_embeddings(stored)
    source, target, output = (tensors[name] for name in HUB_EMBEDDINGS)
    program = training_program(stored, target, tables[-1])
    # By content, because a file may store a tied matrix twice.
    is_tied = torch.equal(target, output)
    # If only the source matrix is untied, the source needs its own vocabulary, although the entries
    # are the same.
    is_joint = len(tables) == 1 and (not is_tied or torch.equal(source, target))
    values = {
        "name": "marian",
        **settings,
        "attention_bias": True,
        "output_bias": True,
        "tied_embeddings": is_tied,
        "source_vocabulary_size": None if is_joint else len(tokenizer.entries[SOURCE]),
        **SETTINGS_BY_TRAINER[program],
    }
    config = build(ModelConfig, values, str(where))
    unread = UnreadWeights(where, tensors, stored.are_marians)
    # Each weight that is read is removed, so what is left shows a model that nmt does not know.
    weights = unread.take_layers(config)
    weights |= unread.take_vocabularies(config, tables, has_padding=program == "transformers")
    if unread.tensors:
        raise NMTError(f"{where}: unexpected weight {shown(min(unread.tensors))}")
    model = Transformer(config, tokenizer.vocabulary_size)
    model.load_state_dict(weights)
    return model.eval(), program


def with_all_embeddings(stored: StoredWeights) -> Weights:
    """The stored weights with all three HUB_EMBEDDINGS, and without the shared matrix."""
    tensors = dict(stored.tensors)
    shared = tensors.pop(HUB_SHARED, None)
    source_name, target_name, output_name = HUB_EMBEDDINGS
    source = tensors.get(source_name, shared)
    target = tensors.get(target_name, shared)
    output = tensors.get(output_name, target)
    if source is None or target is None or output is None:
        raise NMTError(f"{stored.path}: has no embeddings")
    return tensors | {source_name: source, target_name: target, output_name: output}


def training_program(stored: StoredWeights, target_ND: Tensor, table: Sequence[str]) -> str:
    """The program that trained a model: Marian if the target's <pad> row is zero."""
    if stored.are_marians or target_ND.dim() != 2:
        return "marian"
    row = table.index(MARIAN_SYMBOLS[2])
    # A slice, because the matrix of a damaged file may have fewer rows, which is reported later.
    # Marian has no <pad>: when its models are converted for the hub, they get a row of zeros for
    # it.
    has_padding = target_ND[row : row + 1].any()
    return "transformers" if has_padding else "marian"


@dataclass
class UnreadWeights:
    """Weights of a file; each is removed when it is read."""

    where: Path
    tensors: Weights
    are_marians: bool

    def take(self, name: str, *shape: int) -> Tensor:
        """Remove a weight and return it as nmt stores it; NMTError if it has another shape."""
        if name not in self.tensors:
            raise NMTError(f"{self.where}: {name} is missing")
        tensor = self.tensors.pop(name)
        is_of_layer = name not in (*HUB_EMBEDDINGS, HUB_BIAS)
        # Marian stores matrices as [in, out] and vectors as [1, out].
        if self.are_marians and is_of_layer and tensor.dim() == 2:
            is_vector = len(shape) == 1 and len(tensor) == 1
            tensor = tensor[0] if is_vector else tensor.T
        if tensor.shape != shape:
            shapes = f"{list(tensor.shape)}, not {list(shape)}"
            raise NMTError(f"{self.where}: {name} has shape {shapes}")
        if not tensor.isfinite().all():
            raise NMTError(f"{self.where}: {name} has values that are not finite")
        # Files of the hub may be in half precision.
        return tensor.float()

    def take_layers(self, config: ModelConfig) -> Weights:
        """The parameters of all layers, by nmt's names."""
        order_D = our_order(config)
        weights = Weights()
        for row in layer_parameters(config):
            names = row.marian if self.are_marians else row.transformers
            rows, *others = row.shape
            # nmt stores the file's three matrices for queries, keys and values as one matrix.
            parts = [self.take(name, rows // len(names), *others) for name in names]
            weights[row.ours] = row.reordered(torch.cat(parts), order_D)
        return weights

    def take_vocabularies(
        self,
        config: ModelConfig,
        tables: Sequence[list[str]],
        has_padding: bool,
    ) -> Weights:
        """Embeddings, output matrix and output bias, by nmt's names.

        `tables` has the vocabularies of the source and the target, or one for both. PAD and BOS get
        zeros, unless the <pad> row was trained (`has_padding`).
        """
        order_D = our_order(config)
        source_table = tables[0]
        target_table = tables[-1]

        def in_our_rows(tensor: Tensor, table: list[str]) -> Tensor:
            # `rows_of` gives the added row to the symbols that the table lacks.
            with_zeros = torch.cat((tensor, torch.zeros_like(tensor[:1])))
            return with_zeros[rows_of(table, has_padding)]

        weights = Weights()
        of_matrices = (source_table, target_table, target_table)
        for ours, theirs, table in zip(EMBEDDINGS, HUB_EMBEDDINGS, of_matrices, strict=True):
            matrix_ND = self.take(theirs, len(table), config.d_model)
            weights[ours] = in_our_rows(matrix_ND[:, order_D], table)
        bias_N1 = self.take(HUB_BIAS, 1, len(target_table)).T
        weights["output.bias"] = in_our_rows(bias_N1, target_table).flatten()
        return weights


def our_order(config: ModelConfig) -> Tensor:
    """The column in Marian and transformers for each of our columns."""
    # The inverse of the order with which an export is written.
    return torch.from_numpy(halves(config.d_model).argsort())
