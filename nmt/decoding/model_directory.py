"""The model directory: all that translating needs, and nothing that runs.

model.safetensors   weights
config.json         format version, model configuration, languages, vocabulary
tokenizer.model     sentencepiece, or word-piece as JSON
README.md           model card
"""

import json
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_model as load_weights
from safetensors.torch import save_model as save_weights

from nmt.config import DecodeConfig, ModelConfig
from nmt.decoding.translator import Translator
from nmt.errors import NMTError
from nmt.model import Transformer
from nmt.text.tokenizers import load_tokenizer, tokenizer_fingerprint

FORMAT_VERSION = 1


@dataclass
class ModelDescription:
    """`config.json` of a model directory."""

    model: dict[str, Any]
    """ModelConfig as a mapping."""
    vocabulary_size: int
    source: str
    target: str
    tokenizer: str
    """SHA-256 of tokenizer.model."""
    training: dict[str, Any]
    """What is known of the training: updates, averaged checkpoints, configuration."""
    format_version: int = FORMAT_VERSION


def write_model_directory(
    folder: Path, model: Transformer, tokenizer_file: Path, description: ModelDescription, card: str
) -> None:
    """Write the directory under a temporary name, then rename it; one that was there is replaced."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    temporary.chmod(0o755)
    try:
        save_weights(model, str(temporary / "model.safetensors"))
        shutil.copyfile(tokenizer_file, temporary / "tokenizer.model")
        (temporary / "config.json").write_text(json.dumps(asdict(description), indent=2) + "\n", encoding="utf-8")
        (temporary / "README.md").write_text(card, encoding="utf-8")
        for path in temporary.iterdir():
            path.chmod(0o644)  # safetensors writes for the owner alone
        # In one stroke, so that a process killed here never leaves half a directory under that name.
        old = temporary.with_name(f"{temporary.name}-old")
        if folder.exists():
            folder.rename(old)
        temporary.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    except (OSError, SafetensorError) as error:
        raise NMTError(f"cannot write {folder} ({one_line(error)}): is the disk full?") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def find_model_directory(path: str) -> Path:
    """The model directory behind a run or a model directory; NMTError that says what is missing."""
    folder = Path(path)
    for candidate in (folder / "model", folder):
        if (candidate / "config.json").is_file():
            return candidate
    if not folder.exists():
        hint = "train a model first: `nmt preprocess`, then `nmt train`" if path == "runs/latest" else "no such folder"
        raise NMTError(f"checkpoint={path}: {hint}")
    if any(folder.glob("checkpoints/*.ckpt")):
        raise NMTError(f"checkpoint={path}: not averaged yet; run `nmt average run={path}`, or let `nmt train` finish")
    raise NMTError(f"checkpoint={path}: neither a run nor a model directory (no config.json)")


def read_description(folder: Path) -> ModelDescription:
    """The description of a model directory; NMTError where it is of another format version or broken."""
    path = folder / "config.json"
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
        found = tree["format_version"]
        if found != FORMAT_VERSION:
            raise NMTError(
                f"{path}: format version {found}, but this nmt reads {FORMAT_VERSION}: use the nmt that wrote it"
            )
        return ModelDescription(**tree)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NMTError(f"{path}: cannot be read ({error})") from error


def load_model(folder: Path, device: torch.device | str = "cpu") -> Transformer:
    """The model of a model directory, ready to translate; NMTError where the weights do not fit."""
    description = read_description(folder)
    try:
        model = Transformer(ModelConfig(**description.model), description.vocabulary_size)
    except (NMTError, TypeError) as error:
        raise NMTError(f"{folder / 'config.json'}: describes no model of this nmt ({error})") from error
    path = folder / "model.safetensors"
    try:
        load_weights(model, path)
    except (OSError, SafetensorError, RuntimeError) as error:
        raise NMTError(f"{path}: cannot be read, or not the weights of config.json ({one_line(error)})") from error
    return model.to(device).eval()


def one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def load_translator(folder: Path, config: DecodeConfig, device: torch.device | str = "cpu") -> Translator:
    """A translator from a model directory; NMTError where its parts do not belong together."""
    description = read_description(folder)
    tokenizer_file = folder / "tokenizer.model"
    tokenizer = load_tokenizer(tokenizer_file)
    if tokenizer_fingerprint(tokenizer_file) != description.tokenizer:
        raise NMTError(
            f"{tokenizer_file} is not the tokenizer that {folder} was trained with: copy the directory again"
        )
    return Translator(load_model(folder, device), tokenizer, config)
