"""The weights of a model directory: written, checked against its description, and loaded."""

import json
import math
import re
import shutil
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_model as load_weights, save_file

from nmt.config import ModelConfig, require
from nmt.errors import NMTError, one_line
from nmt.files import ModelDescription, Shapes, check_replaceable, read_description, stored_shapes, tied, whole_folder
from nmt.model.transformer import Transformer

OUR_NAMES = re.compile(
    r"model\.safetensors|config\.json|tokenizer\.model|README\.md|ctranslate2-.*|huggingface|\..*\.nmt-tmp"
)
"""Names in a model directory: the model's files, and its exports."""
TABLE_NUMBERS = 2**24
"""Most numbers in a table of sinusoids, unless a matrix of the model has more."""


def check_ours(folder: Path) -> None:
    """NMTError, before any work, unless a folder that is to be replaced is empty or holds a model directory of ours."""
    check_replaceable(folder)
    names = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    for name in names:
        if not OUR_NAMES.fullmatch(name):
            raise NMTError(f"{folder} holds {name}, not nmt's, which would be lost: move it, or name another folder")
    if names:
        read_description(folder)


def save_weights(model: Transformer, path: Path) -> None:
    """Write the weights, of tied matrices only the first. safetensors' save_model lists the others in random order."""
    names: dict[int, str] = {}
    tensors = {}
    for name, tensor in sorted(model.state_dict().items()):
        if names.setdefault(tensor.data_ptr(), name) == name:
            tensors[name] = tensor.contiguous()
    save_file(tensors, path, metadata={"format": "pt"})


def write_model_directory(
    folder: Path, model: Transformer, tokenizer_file: Path, description: ModelDescription, card: str
) -> None:
    """Write a whole model directory, replacing one that was there."""
    try:
        with whole_folder(folder) as temporary:
            save_weights(model, temporary / "model.safetensors")
            shutil.copyfile(tokenizer_file, temporary / "tokenizer.model")
            (temporary / "config.json").write_text(json.dumps(asdict(description), indent=2) + "\n", encoding="utf-8")
            (temporary / "README.md").write_text(card, encoding="utf-8")
    except (OSError, SafetensorError) as error:
        raise NMTError(f"cannot write {folder} ({one_line(error)}): is the disk full?") from error


def described(model: ModelConfig, vocabulary_size: int) -> Transformer:
    """The Transformer of a configuration, without memory for its weights."""
    require(vocabulary_size > 0, f"vocabulary_size={vocabulary_size}: must be positive")
    try:
        with torch.device("meta"):
            return Transformer(model, vocabulary_size)
    except RuntimeError as error:
        raise NMTError(f"vocabulary_size={vocabulary_size}: too large ({one_line(error)})") from error


def count_parameters(model: ModelConfig, vocabulary_size: int) -> int:
    """Parameters of a model; tied matrices count once."""
    return sum(parameter.numel() for parameter in described(model, vocabulary_size).parameters())


def check_shapes(model: ModelConfig, vocabulary_size: int, stored: Shapes, problem: str) -> None:
    """NMTError, beginning with `problem`, unless these are the names and shapes of such a model's weights."""
    if model.max_positions * model.d_model > max([TABLE_NUMBERS, *map(math.prod, stored.values())]):
        raise NMTError(f"{problem}: max_positions={model.max_positions:,} is too many")
    expected = {name: tuple(tensor.shape) for name, tensor in described(model, vocabulary_size).state_dict().items()}
    # Of tied matrices a file holds only one.
    shared = next((stored[name] for name in tied(model) if name in stored), None)
    for name in [*stored, *expected]:
        shapes = stored.get(name, shared if name in tied(model) else None), expected.get(name)
        if shapes[0] != shapes[1]:
            held, right = ("nothing" if shape is None else str(list(shape)) for shape in shapes)
            raise NMTError(f"{problem}: {name[:80]!r} is {held}, where there should be {right}")


def load_model(folder: Path, device: torch.device | str = "cpu") -> Transformer:
    """The model of a model directory, in evaluation mode; NMTError where the weights do not fit its description."""
    description, path = read_description(folder), folder / "model.safetensors"
    config, size = ModelConfig(**description.model), description.vocabulary_size
    # Before allocating any memory: a stranger's description may claim any size.
    check_shapes(config, size, stored_shapes(path), f"{path}: not the weights of the model in config.json")
    try:
        model = Transformer(config, size)
        load_weights(model, path)
    except (OSError, SafetensorError, RuntimeError) as error:
        raise NMTError(f"{path}: cannot be read, or not the weights of config.json ({one_line(error)})") from error
    return model.to(device).eval()
