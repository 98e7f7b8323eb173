"""Weights of a model directory, by torch."""

import json
import re
import shutil
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_model as load_weights
from safetensors.torch import save_file

from nmt.errors import NMTError, one_line
from nmt.model import Transformer
from nmt.model_directory.description import ModelDescription, read_description
from nmt.model_directory.shapes import check_weights
from nmt.storage.whole import TEMPORARY, check_replaceable, whole_folder

OUR_NAMES = re.compile(
    rf"model\.safetensors|config\.json|tokenizer\.model|README\.md|ctranslate2-.*|huggingface|{TEMPORARY.pattern}"
)
"""Names in a model directory: the model's own, and those of its exports."""


def check_ours(folder: Path) -> None:
    """NMTError, before any work, where a folder that is to be replaced holds anything but a model directory of ours."""
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
    """Write the weights: the same bytes for the same weights.

    Of tied ones the first name in the alphabet is written. safetensors' own save_model notes the others in any order.
    """
    names: dict[int, str] = {}
    tensors = {}
    for name, tensor in sorted(model.state_dict().items()):
        if names.setdefault(tensor.data_ptr(), name) == name:
            tensors[name] = tensor.contiguous()
    save_file(tensors, path, metadata={"format": "pt"})


def write_model_directory(
    folder: Path, model: Transformer, tokenizer_file: Path, description: ModelDescription, card: str
) -> None:
    """Write the directory under a temporary name, then rename it; one that was there is replaced."""
    try:
        with whole_folder(folder) as temporary:
            save_weights(model, temporary / "model.safetensors")
            shutil.copyfile(tokenizer_file, temporary / "tokenizer.model")
            (temporary / "config.json").write_text(json.dumps(asdict(description), indent=2) + "\n", encoding="utf-8")
            (temporary / "README.md").write_text(card, encoding="utf-8")
    except (OSError, SafetensorError) as error:
        raise NMTError(f"cannot write {folder} ({one_line(error)}): is the disk full?") from error


def load_model(folder: Path, device: torch.device | str = "cpu") -> Transformer:
    """The model of a model directory, ready to translate; NMTError where the weights do not fit."""
    config, path = check_weights(folder), folder / "model.safetensors"
    try:
        model = Transformer(config, read_description(folder).vocabulary_size)
        load_weights(model, path)
    except (OSError, SafetensorError, RuntimeError) as error:
        raise NMTError(f"{path}: cannot be read, or not the weights of config.json ({one_line(error)})") from error
    return model.to(device).eval()
