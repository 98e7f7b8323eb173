"""A model of another program, as it was read from files that may come from anyone, and what it becomes here."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt.config import ModelConfig, matches, require, shown
from nmt.errors import NMTError, one_line
from nmt.files import described, read_bytes
from nmt.model import Transformer
from nmt.plugins.exchange.marian_weights import Weights, layers_from_marian, vocabulary_from_marian
from nmt.text import MARIAN_SYMBOLS, MarianTokenizer, marian_tokenizer

TRAINED_BY: dict[str, dict[str, Any]] = {
    "marian": {"zero_start": True, "positions": "tensor2tensor", "norm_epsilon": 1e-6},
    "transformers": {"padding_probability": False},
}
"""What a program computes other than the paper."""
EMBEDDINGS = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")


@dataclass
class Foreign:
    """What a folder holds: weights under the names of MarianMTModel, in Marian's order."""

    where: Path
    settings: dict[str, Any]
    """Some of the model's configuration."""
    weights: Weights
    tokenizer: MarianTokenizer
    length_penalty: float
    """alpha in |Y|^alpha."""
    arrays: Weights | None = None
    """The weights as Marian stores them; None for a folder of transformers."""
    languages: tuple[str, str] = ("und", "und")
    trained_by: str = "marian"
    length_penalty_kind: str = "marian"
    used: set[str] = field(default_factory=set)

    @property
    def origin(self) -> str:
        return f"trained by {self.trained_by}"

    @property
    def training(self) -> dict[str, Any]:
        """What the description of the imported model says of it."""
        penalty = {"length_penalty": self.length_penalty, "length_penalty_kind": self.length_penalty_kind}
        return {"imported": self.origin, **penalty}

    @property
    def has_padding(self) -> bool:
        """True where the vocabulary has <pad>, from which a decoder of transformers starts."""
        return MARIAN_SYMBOLS[2] in self.tokenizer.tables[-1]

    def take(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """A weight in float32; NMTError where it is missing, or of another shape."""
        found = self.weights.get(name)
        if found is None or tuple(found.shape) != shape:
            there = "missing" if found is None else f"{list(found.shape)}"
            raise NMTError(f"{self.where}: {name} is {there}, where there should be {list(shape)}")
        require(bool(found.isfinite().all()), f"{self.where}: {name} holds values that are no finite numbers")
        self.used.add(name)
        return found.float()

    def model(self) -> Transformer:
        """The model; NMTError where it is none that we have."""
        try:
            config = self.config()
        except NMTError as error:
            raise NMTError(f"{self.where}: {error}") from error
        tables, size = self.tokenizer.tables, self.tokenizer.vocabulary_size
        shapes = {name: tuple(tensor.shape) for name, tensor in described(config, size).state_dict().items()}
        weights = layers_from_marian(self.take, config, shapes)
        weights |= vocabulary_from_marian(self.take, tables, config, padding=self.trained_by == "transformers")
        if unknown := sorted(self.weights.keys() - self.used):
            raise NMTError(f"{self.where}: it has {shown(unknown[0])}, which is not known to be in such a model")
        model = Transformer(config, size)
        model.load_state_dict(weights)
        return model.eval()

    def config(self) -> ModelConfig:
        """The configuration, by what is stored: matrices are tied where they are equal."""
        require(self.weights.keys() >= set(EMBEDDINGS), "no embeddings")
        source, target, output = (self.weights[name] for name in EMBEDDINGS)
        one = len(self.tokenizer.tables) == 1
        tied, all_tied = torch.equal(target, output), one and torch.equal(source, target)
        own = None if all_tied or (one and not tied) else len(self.tokenizer.entries[0])
        return ModelConfig(
            name="marian",
            **self.settings,
            attention_bias=True,
            output_bias=True,
            tied_embeddings=tied,
            source_vocabulary_size=own,
            **TRAINED_BY[self.trained_by],
        )


KINDS: dict[Any, str] = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", list: "a list"}


def setting(where: Path, tree: dict[str, Any], key: str, kind: type, default: Any = None) -> Any:
    """The value of a key, which null leaves at its default; NMTError where it is missing, or of another type."""
    value = default if tree.get(key) is None else tree[key]
    fits = isinstance(value, list) if kind is list else matches(value, kind)
    require(fits, f"{where}: {key} is {'missing' if value is None else shown(repr(value))}: it must be {KINDS[kind]}")
    return value


def check_flags(where: Path, found: dict[str, Any], supported: dict[str, tuple[Any, ...]]) -> None:
    """NMTError for a setting that changes what is computed; a missing one has its first value."""
    for key, values in supported.items():
        value = setting(where, found, key, type(values[0]), values[0])
        if value not in values:
            known = " or ".join(str(each) or "nothing" for each in values)
            raise NMTError(f"{where}: {key}={shown(value)}: only {known} can be imported")


def table_of(path: Path, numbers: dict[str, Any]) -> list[str]:
    """The entries of a vocabulary in the order of their numbers; NMTError unless these are 0, 1, 2 and so on."""
    if sorted(map(str, numbers.values())) != sorted(map(str, range(len(numbers)))):
        raise NMTError(f"{path}: the numbers of its entries are not 0, 1, 2 and so on, each once")
    return sorted(numbers, key=lambda entry: int(numbers[entry]))


def read_tokenizer(folder: Path, tables: Sequence[list[str]], tags: bool) -> MarianTokenizer:
    """The tokenizer of source.spm, target.spm and these tables."""
    return tokenizer_of(folder, [folder / "source.spm", folder / "target.spm"], tables, tags)


def tokenizer_of(folder: Path, models: list[Path], tables: Sequence[list[str]], tags: bool) -> MarianTokenizer:
    try:
        return marian_tokenizer([read_bytes(path) for path in models], tables, tags)
    except ValueError as error:
        raise NMTError(f"{folder}: no tokenizer ({one_line(error)})") from error
