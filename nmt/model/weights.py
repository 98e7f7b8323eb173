"""Write, check and load the weights of a model directory."""

import json
import math
import shutil
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_model as load_weights, save_file

from nmt.config import ModelConfig, NMTError, one_line
from nmt.files import (
    ModelDescription,
    Shapes,
    check_replaceable,
    foreign_files,
    read_description,
    stored_shapes,
    tied,
    whole_folder,
)
from nmt.model.transformer import Transformer

MAX_VOCABULARY = 2**24
"""More than any vocabulary has; config.json may come from anyone."""

TABLE_NUMBERS = 2**24
"""The maximum size of a sinusoid table, unless one of the model's matrices is larger.

The table follows from config.json alone, so without a maximum, a tiny file could fill the memory.
"""


def check_ours(folder: Path) -> None:
    """Raise NMTError if replacing a folder would delete files that are not a model directory's."""
    check_replaceable(folder)
    if not folder.exists():
        return
    foreign = next(foreign_files(folder, "model"), None)
    if foreign is not None:
        name = foreign.relative_to(folder)
        raise NMTError(
            f"{folder} contains {name}, which nmt did not write: move it, or name another folder"
        )
    # An empty folder may be used. In any other folder, config.json must describe a model.
    if any(folder.iterdir()):
        read_description(folder)


def check_new(folder: Path, overwrite: bool) -> None:
    """Raise NMTError if a folder has a model and may not be overwritten, or is not a model's."""
    check_ours(folder)
    # Runs may have started from that model.
    if folder.exists() and any(folder.iterdir()) and not overwrite:
        raise NMTError(f"output={folder}: exists; pass another folder, or overwrite=true")


def write_model_directory(
    folder: Path, model: Transformer, tokenizer_file: Path, description: ModelDescription, card: str
) -> None:
    """Write a model directory, replacing an older one."""
    config = json.dumps(asdict(description), indent=2) + "\n"
    try:
        # A killed process leaves the old directory or the new one, never half of one.
        with whole_folder(folder) as temporary:
            weights = temporary / "model.safetensors"
            save_file(distinct_tensors(model), weights, metadata={"format": "pt"})
            shutil.copyfile(tokenizer_file, temporary / "tokenizer.model")
            (temporary / "config.json").write_text(config, encoding="utf-8")
            (temporary / "README.md").write_text(card, encoding="utf-8")
    except (OSError, SafetensorError) as error:
        raise NMTError(f"cannot write {folder} ({one_line(error)}): is the disk full?") from error


def distinct_tensors(model: Transformer) -> dict[str, torch.Tensor]:
    """The model's tensors by name. Tied matrices appear once, under the first of their names.

    safetensors' save_model may keep any of the names, so equal models would have different files.
    """
    kept: dict[str, torch.Tensor] = {}
    addresses = set()
    for name, tensor in sorted(model.state_dict().items()):
        if tensor.data_ptr() not in addresses:
            addresses.add(tensor.data_ptr())
            # safetensors refuses tensors that are not contiguous.
            kept[name] = tensor.contiguous()
    return kept


def described(model: ModelConfig, vocabulary_size: int) -> Transformer:
    """A Transformer whose weights have no storage; NMTError for an impossible vocabulary."""
    if not 0 < vocabulary_size <= MAX_VOCABULARY:
        raise NMTError(
            f"vocabulary_size={vocabulary_size}: must be between 1 and {MAX_VOCABULARY:,}"
        )
    with torch.device("meta"):
        return Transformer(model, vocabulary_size)


def check_shapes(model: ModelConfig, vocabulary_size: int, stored: Shapes, problem: str) -> None:
    """Check that stored weights have the names and shapes of the model.

    Raises an NMTError that begins with `problem`.
    """
    # Before `described`, which computes sinusoids in memory even on the meta device.
    largest_stored = max(map(math.prod, stored.values()), default=0)
    if model.max_positions * model.d_model > max(TABLE_NUMBERS, largest_stored):
        raise NMTError(f"{problem}: max_positions={model.max_positions:,} is too large")
    tensors = described(model, vocabulary_size).state_dict()
    expected = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    # A file contains only one of the tied matrices, which stands for the others.
    tied_names = tied(model)
    shared = next((stored[name] for name in tied_names if name in stored), None)
    for name in [*stored, *expected]:
        held = stored.get(name)
        if held is None and name in tied_names:
            held = shared
        right = expected.get(name)
        # Names come from a file that may be hostile: they are cut and quoted.
        if held != right:
            raise NMTError(
                f"{problem}: {name[:80]!r} is {in_words(held)} but should be {in_words(right)}"
            )


def in_words(shape: tuple[int, ...] | None) -> str:
    return "absent" if shape is None else str(list(shape))


def load_model(folder: Path, device: torch.device | str = "cpu") -> Transformer:
    """Load a model in evaluation mode; NMTError if the weights do not match the description."""
    description = read_description(folder)
    path = folder / "model.safetensors"
    config = ModelConfig(**description.model)
    size = description.vocabulary_size
    # Check before allocating memory, because an untrusted description may claim any size.
    problem = f"{path}: not the weights of the model in config.json"
    check_shapes(config, size, stored_shapes(path), problem)
    try:
        model = Transformer(config, size)
        # safetensors' load_model accepts a file that has only one of several tied matrices.
        load_weights(model, path)
    except (OSError, SafetensorError, RuntimeError) as error:
        raise NMTError(
            f"{path}: cannot be read or does not match config.json ({one_line(error)})"
        ) from error
    return model.to(device).eval()
