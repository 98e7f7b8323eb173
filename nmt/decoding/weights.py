"""Weights of a model directory, by torch."""

import json
import math
import shutil
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_model as load_weights
from safetensors.torch import save_model as save_weights
from torch import Tensor

from nmt.config import ModelConfig
from nmt.decoding.model_directory import ModelDescription, read_description
from nmt.errors import NMTError, one_line
from nmt.model import Transformer
from nmt.storage.foreign import check_regular
from nmt.storage.whole import whole_folder

FLOATS = {"F64", "F32", "F16", "BF16"}
POSITIONS = 2**24
"""Numbers in a table of sinusoids at most, which no file holds, unless a matrix of the model has more."""


def write_model_directory(
    folder: Path, model: Transformer, tokenizer_file: Path, description: ModelDescription, card: str
) -> None:
    """Write the directory under a temporary name, then rename it; one that was there is replaced."""
    try:
        with whole_folder(folder) as temporary:
            save_weights(model, str(temporary / "model.safetensors"))
            shutil.copyfile(tokenizer_file, temporary / "tokenizer.model")
            (temporary / "config.json").write_text(json.dumps(asdict(description), indent=2) + "\n", encoding="utf-8")
            (temporary / "README.md").write_text(card, encoding="utf-8")
    except (OSError, SafetensorError) as error:
        raise NMTError(f"cannot write {folder} ({one_line(error)}): is the disk full?") from error


def read_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Name -> shape of the tensors in a safetensors file, whose own reader holds them against the file's size.

    Raises NMTError where it is none, or holds anything but floating-point numbers.
    """
    check_regular(path)
    try:
        with safe_open(path, framework="numpy") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            kinds = {str(part.get_dtype()) for part in slices.values()}
            shapes = {name: tuple(part.get_shape()) for name, part in slices.items()}
    except (OSError, SafetensorError) as error:
        raise NMTError(f"{path}: cannot be read ({one_line(error)})") from error
    if not kinds <= FLOATS:
        raise NMTError(f"{path}: holds numbers of type {min(kinds - FLOATS)}, but weights are of {', '.join(FLOATS)}")
    return shapes


def check_weights(folder: Path) -> ModelConfig:
    """The configuration of a model directory whose weights are of the shapes that it tells.

    NMTError where they are not, before any memory is taken for a model that someone has only described.
    """
    description = read_description(folder)
    config, path = ModelConfig(**description.model), folder / "model.safetensors"
    problem = f"{path}: not the weights of the model in config.json"
    check_shapes(config, description.vocabulary_size, read_shapes(path), problem)
    return config


def check_shapes(config: ModelConfig, vocabulary_size: int, shapes: dict[str, tuple[int, ...]], problem: str) -> None:
    """NMTError, which begins with `problem`, unless these are the names and shapes of such a model's weights.

    Of those that are one tensor, tied, one name is enough.
    """
    for side in ("encoder", "decoder"):
        said, held = getattr(config, f"{side}_layers"), layers(shapes, f"{side}_layers.")
        if said != held:
            raise NMTError(f"{problem}: of {held} {side} layers, where there should be {said:,}")
    if config.max_positions * config.d_model > max(POSITIONS, *(math.prod(shape) for shape in shapes.values())):
        raise NMTError(f"{problem}: max_positions={config.max_positions:,} is too many")
    try:
        with torch.device("meta"):
            model = Transformer(config, vocabulary_size)
    except (NMTError, TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise NMTError(f"{problem}: describes no model of this nmt ({one_line(error)})") from error
    names: dict[Tensor, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(parameter, []).append(name)
    wanted = {name: tuple(parameter.shape) for parameter, tied in names.items() for name in tied}
    for name in [*shapes, *(tied[0] for tied in names.values() if not any(name in shapes for name in tied))]:
        if shapes.get(name) != wanted.get(name):
            pair = [str(list(of[name])) if name in of else "nothing" for of in (shapes, wanted)]
            raise NMTError(f"{problem}: {name[:80]!r} is {pair[0]}, where there should be {pair[1]}")


def layers(shapes: dict[str, tuple[int, ...]], prefix: str) -> int:
    """How many layers of that prefix there are weights of."""
    return len({name.removeprefix(prefix).partition(".")[0] for name in shapes if name.startswith(prefix)})


def load_model(folder: Path, device: torch.device | str = "cpu") -> Transformer:
    """The model of a model directory, ready to translate; NMTError where the weights do not fit."""
    config, path = check_weights(folder), folder / "model.safetensors"
    try:
        model = Transformer(config, read_description(folder).vocabulary_size)
        load_weights(model, path)
    except (OSError, SafetensorError, RuntimeError) as error:
        raise NMTError(f"{path}: cannot be read, or not the weights of config.json ({one_line(error)})") from error
    return model.to(device).eval()
