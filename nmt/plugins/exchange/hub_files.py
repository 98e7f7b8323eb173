"""The files to download of a model on the Hugging Face Hub, for each kind of model."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from nmt import files
from nmt.config import NMTError, shown
from nmt.plugins.exchange.hub_names import HubName, in_bytes

MULTILINGUAL = ("m2m_100", "mbart")
"""The model_type of models whose lines name their languages."""
MODEL_TYPES = ("marian", *MULTILINGUAL)
"""All supported values of model_type in transformers' config.json."""
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
"""The files with all weights in transformers' format, the preferred one first."""
CONFIG = "config.json"
CARD = "README.md"
SMALL_FILES = (
    CONFIG,
    CARD,
    "added_tokens.json",
    "generation_config.json",
    "sentencepiece.bpe.model",
    "source.spm",
    "special_tokens_map.json",
    "target.spm",
    "target_vocab.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
)
"""The files besides the weights in transformers' format; CONFIG is the first."""
LIMITS = {CONFIG: files.SMALL, CARD: files.SMALL, "tokenizer.model": files.LARGE}
"""The greatest sizes in bytes that nmt reads of files in its own model directories."""


@dataclass(frozen=True)
class Format:
    """A kind of model on the hub."""

    choose: Callable[[HubName, Mapping[str, int]], list[str]]
    """Chooses the files to download, CONFIG among them, given the sizes of all files of a commit.

    Raises NMTError if the files are not those of such a model.
    """
    check: Callable[[HubName, Path], None]
    """Checks the file CONFIG in a folder; NMTError if it belongs to another kind of model."""


def index_of(name: str) -> str:
    """The file that lists the parts of weights that a large model has instead of `name`."""
    return f"{name}.index.json"


def weights_among(names: Collection[str]) -> list[str]:
    """The files with the weights, in the preferred format; empty if there are none."""
    for name in WEIGHTS:
        if name in names:
            return [name]
        index = index_of(name)
        if index in names:
            stem, _, suffix = name.rpartition(".")
            part = re.compile(rf"{stem}-\d{{5}}-of-\d{{5}}\.{suffix}")
            return [index, *sorted(filter(part.fullmatch, names))]
    return []


def files_of_transformers(name: HubName, sizes: Mapping[str, int]) -> list[str]:
    small = [file for file in SMALL_FILES if file in sizes]
    weights = weights_among(sizes)
    if CONFIG not in small or not weights:
        raise NMTError(f"{name}: contains no model in the format of transformers")
    return small + weights


def check_type(name: HubName, folder: Path) -> None:
    """Raise NMTError if the importers do not support a model of this type."""
    tree = files.read_mapping(folder / CONFIG, files.parse_json)
    if "format_version" in tree:
        raise NMTError(f"{name}: is a model of nmt; use it without importing it, as run={name}")
    model_type = tree.get("model_type")
    if model_type not in MODEL_TYPES:
        supported = ", ".join(MODEL_TYPES)
        raise NMTError(f"{name}: model_type={shown(model_type)}: must be one of {supported}")


def files_of_nmt(name: HubName, sizes: Mapping[str, int]) -> list[str]:
    if CONFIG in sizes and files.MODEL_FILES[1] not in sizes and weights_among(sizes):
        raise not_imported(name)
    missing = [file for file in files.MODEL_FILES if file not in sizes]
    if missing:
        raise NMTError(f"{name}: contains no model directory of nmt (no {', '.join(missing)})")
    check_sizes(name, sizes)
    added = files.added_files()
    return [file for file in (*files.MODEL_FILES, *added, CARD) if file in sizes]


def check_sizes(name: HubName, sizes: Mapping[str, int]) -> None:
    """Raise NMTError for a file of a model directory that nmt would not read."""
    limits = {**LIMITS, **dict.fromkeys(files.added_files(), files.SMALL)}
    for file, limit in limits.items():
        size = sizes.get(file, 0)
        if size > limit:
            raise NMTError(f"{name}: {file} has {in_bytes(size)}; nmt reads {in_bytes(limit)}")


def check_is_nmt(name: HubName, folder: Path) -> None:
    """Raise NMTError unless a model was written by nmt."""
    if "format_version" not in files.read_mapping(folder / CONFIG, files.parse_json):
        raise not_imported(name)
    files.read_description(folder)


def not_imported(name: HubName) -> NMTError:
    advice = f"import it with `nmt import {name} output=FOLDER`, and pass that folder"
    return NMTError(f"{name}: is not a model directory of nmt; {advice}")


TRANSFORMERS = Format(files_of_transformers, check_type)
"""Models that `nmt import` reads."""
NMT = Format(files_of_nmt, check_is_nmt)
"""Model directories that `nmt push` has published."""
