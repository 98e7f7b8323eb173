"""From model directories to a translator, by the engine that is wanted."""

from collections.abc import Callable
from pathlib import Path

from nmt.config import TranslateConfig
from nmt.decoding.details import Describer
from nmt.decoding.engine import Engine, Judge
from nmt.decoding.model_directory import (
    ModelDescription,
    find_model_directory,
    longest_sentence,
    read_description,
    read_tokenizer,
)
from nmt.decoding.translator import Options, Translator
from nmt.errors import NMTError
from nmt.text.tokenizers import Tokenizer


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

    device = choose_device(config.device)
    return TorchEngine([load_model(folder, device) for folder in folders], config.decode)


def load_judge(config: TranslateConfig, folders: list[Path], engine: Engine) -> Judge:
    """What these models think of translations, by torch whichever engine finds them."""
    from nmt.decoding.forced import force
    from nmt.decoding.torch_engine import TorchEngine
    from nmt.decoding.weights import load_model

    if isinstance(engine, TorchEngine):
        models = engine.models
    else:
        models = [load_model(folder, choose_device(config.device)) for folder in folders]
    return lambda pairs: force(models, pairs, config.decode.batch_tokens, align=True)


def find_models(names: list[str], key: str = "checkpoint") -> tuple[list[Path], list[ModelDescription], Tokenizer]:
    """The model directories behind what was given for `key`, and their tokenizer.

    Raises NMTError where there is none, or where they have different vocabularies.
    """
    folders = [find_model_directory(name, key) for name in names]
    descriptions = [read_description(folder) for folder in folders]
    for folder, description in zip(folders, descriptions, strict=True):
        if description.tokenizer != descriptions[0].tokenizer:
            raise NMTError(f"{folder} and {folders[0]} have different vocabularies: they are no ensemble")
    tokenizers = [read_tokenizer(folder) for folder in folders]
    return folders, descriptions, tokenizers[0]


def load_translator(config: TranslateConfig, notice: Callable[[str], None]) -> Translator:
    """A translator from model directories, which is an ensemble where they are several.

    `notice` is told what a user should know of. Raises NMTError where parts do not belong together.
    """
    folders, descriptions, tokenizer = find_models(config.checkpoint)
    options = Options(
        length_penalty=config.decode.length_penalty,
        source_prefix=config.source_prefix,
        target_prefix=config.target_prefix,
        longest=min(filter(None, map(longest_sentence, descriptions)), default=None) if config.split else None,
        source=descriptions[0].source,
        notice=notice,
    )
    engine = load_engine(config, folders)
    translator = Translator(engine, tokenizer, options)
    if config.format == "jsonl":
        translator.describer = Describer(load_judge(config, folders, engine), tokenizer, config.source_prefix)
    return translator
