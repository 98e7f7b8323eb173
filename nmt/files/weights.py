"""Weights: those of a model directory, written, checked and loaded with torch, and files of torch.save from anyone."""

import json
import math
import pickle
import re
import shutil
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_model as load_weights, save_file
from torch import Tensor

from nmt.config import ModelConfig, require
from nmt.errors import NMTError, is_out_of_memory, one_line
from nmt.files.description import ModelDescription, Shapes, read_description, stored_shapes, tied
from nmt.files.foreign import LARGE, check_regular, check_tree
from nmt.files.whole import TEMPORARY, check_replaceable, whole_folder
from nmt.model import Transformer

OUR_NAMES = re.compile(
    rf"model\.safetensors|config\.json|tokenizer\.model|README\.md|ctranslate2-.*|huggingface|{TEMPORARY.pattern}"
)
"""Names in a model directory: the model's own, and those of its exports."""

TABLE_NUMBERS = 2**24
"""Most numbers in a table of sinusoids, unless a matrix of the model has more."""


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


VALUE_LIMIT = 2**20
"""Most numbers, strings and tensors in an archive."""


def load_plain(path: Path) -> Any:
    """Load a file of torch.save, memory-mapped; ValueError where it is damaged or holds more than plain values.

    Such a file is an uncompressed zip archive of a pickle and the bytes of each tensor.
    """
    check_regular(path)
    if not zipfile.is_zipfile(path):
        raise ValueError("it is empty, cut, or a bare pickle, which is not run")
    try:
        with zipfile.ZipFile(path) as archive:
            check_members(archive, path.stat().st_size)
        # With weights_only, a pickle can only construct tensors and containers.
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except pickle.UnpicklingError as error:  # whose message advises to run the pickle
        raise ValueError("it holds more than plain tensors, numbers and strings") from error
    except Exception as error:  # zipfile and torch raise all kinds for a damaged archive
        if is_out_of_memory(error):
            raise  # the archive may be whole
        raise ValueError(f"it is cut or damaged: {one_line(error)}") from error
    check_tree(content, parts, VALUE_LIMIT)
    return content


def check_members(archive: zipfile.ZipFile, size: int) -> None:
    """Raise ValueError where the archive in a file of `size` bytes is larger than the file, or damaged."""
    members = archive.infolist()
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise ValueError("its members are compressed, which torch.save does not do")
    if sum(member.file_size for member in members) > size:
        raise ValueError("it claims to hold more than the file does")
    if any(member.file_size > LARGE for member in members if member.filename.endswith("/data.pkl")):
        raise ValueError(f"more than {LARGE:,} bytes of it are not tensors")
    if damaged := archive.testzip():
        raise ValueError(f"{damaged} within it is damaged: its check sum differs")


def parts(value: Any) -> list[Any]:
    """The values in a mapping or a sequence, none in any other; ValueError for a value of a type that is not plain."""
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, Tensor):
        # With strides of 0, a few bytes can be a tensor of any size.
        if value.layout != torch.strided or value.numel() * value.element_size() > value.untyped_storage().nbytes():
            raise ValueError("a tensor in it is larger than its bytes")
    elif value is not None and not isinstance(value, int | float | str):
        raise ValueError(f"it holds a {type(value).__name__}, which is not a tensor, number or string")
    return []
