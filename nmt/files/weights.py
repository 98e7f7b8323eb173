"""The weights of a model directory: writing, checking and loading them with torch."""

import json
import re
import shutil
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_model as load_weights, save_file

from nmt.config import ModelConfig, require
from nmt.errors import NMTError, one_line
from nmt.files.description import ModelDescription, read_description
from nmt.files.stored import Shapes, check_positions, stored_as, stored_shapes
from nmt.files.whole import TEMPORARY, check_replaceable, whole_folder
from nmt.model import Transformer

OUR_NAMES = re.compile(
    rf"model\.safetensors|config\.json|tokenizer\.model|README\.md|ctranslate2-.*|huggingface|{TEMPORARY.pattern}"
)
"""Names in a model directory: the model's own, and those of its exports."""


def check_ours(folder: Path) -> None:
    """NMTError, before any work, unless a folder that is to be replaced is empty or holds a model directory of ours."""
    check_replaceable(folder)
    if not folder.exists():
        return
    names = sorted(path.name for path in folder.iterdir())
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
    """Write the directory under a temporary name, then rename it, replacing one that was there."""
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
    check_positions(model, stored, problem)
    wanted = {name: tuple(tensor.shape) for name, tensor in described(model, vocabulary_size).state_dict().items()}
    for name in [*stored, *wanted]:
        held = stored.get(stored_as(name, stored, model))
        if held != wanted.get(name):
            pair = [str(list(shape)) if shape is not None else "nothing" for shape in (held, wanted.get(name))]
            raise NMTError(f"{problem}: {name[:80]!r} is {pair[0]}, where there should be {pair[1]}")


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
