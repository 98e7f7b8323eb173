"""From model directories to a translator, by the engine that is wanted."""

from collections.abc import Callable
from pathlib import Path

from nmt.config import TranslateConfig
from nmt.decoding.engine import Engine
from nmt.decoding.model_directory import (
    find_model_directory,
    longest_sentence,
    positions,
    read_description,
    read_tokenizer,
)
from nmt.decoding.translator import Options, Translator
from nmt.errors import NMTError


def choose_device(name: str) -> str:
    """auto -> cuda where there is one, else cpu; NMTError for a device that torch has not."""
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        raise NMTError(f"device={name}: not available here ({str(error).splitlines()[0]}); use device=cpu") from error
    return name


def load_engine(config: TranslateConfig, folders: list[Path]) -> Engine:
    """The engine of these model directories."""
    from nmt.decoding.torch_engine import TorchEngine
    from nmt.decoding.weights import load_model
    from nmt.model.memory import keep_freed_memory

    keep_freed_memory()
    device = choose_device(config.device)
    return TorchEngine([load_model(folder, device) for folder in folders], config.decode, keeps_kernels=True)


def load_translator(config: TranslateConfig, notice: Callable[[str], None]) -> Translator:
    """A translator from model directories, which is an ensemble where they are several.

    `notice` is told what a user should know of. Raises NMTError where parts do not belong together.
    """
    folders = [find_model_directory(name) for name in config.checkpoint]
    descriptions = [read_description(folder) for folder in folders]
    for folder, description in zip(folders, descriptions, strict=True):
        if description.tokenizer != descriptions[0].tokenizer:
            raise NMTError(f"{folder} and {folders[0]} have different vocabularies: they are no ensemble")
    options = Options(
        length_penalty=config.decode.length_penalty,
        source_prefix=config.source_prefix,
        target_prefix=config.target_prefix,
        longest=min(filter(None, map(longest_sentence, descriptions)), default=None) if config.split else None,
        source=descriptions[0].source,
        positions=min(filter(None, map(positions, descriptions)), default=None),
        notice=notice,
    )
    tokenizer = read_tokenizer(folders[0])
    for folder in folders[1:]:
        read_tokenizer(folder)
    return Translator(load_engine(config, folders), tokenizer, options)
