"""Weights of a model directory, by torch."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_model as load_weights
from safetensors.torch import save_model as save_weights

from nmt.decoding.model_directory import ModelDescription, read_description
from nmt.decoding.shapes import check_weights
from nmt.errors import NMTError, one_line
from nmt.model import Transformer
from nmt.storage.whole import whole_folder


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


def load_model(folder: Path, device: torch.device | str = "cpu") -> Transformer:
    """The model of a model directory, ready to translate; NMTError where the weights do not fit."""
    config, path = check_weights(folder), folder / "model.safetensors"
    try:
        model = Transformer(config, read_description(folder).vocabulary_size)
        load_weights(model, path)
    except (OSError, SafetensorError, RuntimeError) as error:
        raise NMTError(f"{path}: cannot be read, or not the weights of config.json ({one_line(error)})") from error
    return model.to(device).eval()
