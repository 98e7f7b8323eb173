"""A model of another program, as it was read from files that may come from anyone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from nmt.config import LANGUAGE, DecodeConfig, ModelConfig, matches, require, shown
from nmt.errors import NMTError, one_line
from nmt.files import read_bytes
from nmt.model import Transformer
from nmt.plugins.exchange.agreement import Program
from nmt.text import MarianTokenizer, Tokenizer, marian_tokenizer

Weights = dict[str, Tensor]


@dataclass
class Foreign:
    """A model under our names, and the program that it comes from."""

    origin: str
    """What it is, for its card."""
    config: ModelConfig
    weights: Weights
    tokenizer: Tokenizer
    package: str
    """The Python module of the program."""
    program: Callable[[DecodeConfig], Program]
    """The program with the original model, to compare with."""
    length_penalty: float = 1.0
    """alpha."""
    length_penalty_kind: str = "marian"
    languages: tuple[str, str] = ("und", "und")
    training: dict[str, Any] = field(default_factory=dict)
    """What an exported model says of its training."""

    def model(self) -> Transformer:
        model = Transformer(self.config, self.tokenizer.vocabulary_size)
        model.load_state_dict(self.weights)
        return model.eval()

    def description(self) -> dict[str, Any]:
        """`training` of the imported model."""
        penalty = {"length_penalty": self.length_penalty, "length_penalty_kind": self.length_penalty_kind}
        return {**self.training, "imported": self.origin, **penalty}


def setting(where: Path, tree: dict[str, Any], key: str, kind: type, default: Any = None) -> Any:
    """The value of a key, whose default also stands for null; NMTError where it is missing or of another type."""
    value = default if tree.get(key) is None else tree[key]
    require(matches(value, kind), f"{where}: {key}={shown(repr(value))} is missing or of another type")
    return value


def check_settings(where: Path, tree: dict[str, Any], supported: dict[str, tuple[Any, ...]]) -> None:
    """NMTError for a setting that changes what is computed; a missing one has its first supported value."""
    for key, values in supported.items():
        value = values[0] if tree.get(key) is None else tree[key]
        fits = any(value == one and type(value) is type(one) for one in values)
        only = " or ".join(str(value) or "nothing" for value in values)
        require(fits, f"{where}: {key}={shown(value)}: only {only} can be imported")


def length_penalty(where: Path, tree: dict[str, Any], key: str, default: float) -> float:
    alpha = setting(where, tree, key, float, default)
    require(0 <= alpha <= 10, f"{where}: {key}={shown(alpha)}: it must be between 0 and 10")
    return float(alpha)


def language(code: Any) -> str:
    """A code of a language; "und" for what is none."""
    return code if isinstance(code, str) and LANGUAGE.fullmatch(code) else "und"


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
