"""From model directories to a translator, by the engine that is wanted."""

import hashlib
import importlib.util
import os
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import nmt
from nmt.config import TranslateConfig
from nmt.errors import NMTError, how_to_install
from nmt.model_directory.description import (
    ModelDescription,
    find_model_directory,
    is_exported,
    read_description,
    read_tokenizer,
)
from nmt.search.engine import Engine, Judge
from nmt.storage.cache import cache_folder
from nmt.storage.foreign import sha256
from nmt.text.tokenizers import Tokenizer
from nmt.translation.limits import limits
from nmt.translation.token_scores import Describer
from nmt.translation.translator import Options, Translator

MADE_OF = ("config.json", "tokenizer.model", "model.safetensors")
"""The files of a model directory that decide what it is as a model of CTranslate2."""


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


def load_engine(config: TranslateConfig, folders: list[Path], notice: Callable[[str], None]) -> Engine:
    """The engine of these model directories; NMTError where it is not for them, or not for what is wanted."""
    if config.engine == "ctranslate2":
        return load_ctranslate2(config, folders, notice)
    for folder in folders:
        if is_exported(folder):
            raise NMTError(f"run={folder}: exported for another program; pass engine=ctranslate2, or the run")
    from nmt.kernels.memory import keep_freed_memory
    from nmt.model_directory.weights import load_model
    from nmt.search.torch_engine import TorchEngine

    keep_freed_memory()
    device = choose_device(config.device)
    return TorchEngine([load_model(folder, device) for folder in folders], config.decode, keeps_kernels=True)


def require_ctranslate2(key: str) -> None:
    """NMTError unless CTranslate2, which `key` asks for, is installed."""
    if importlib.util.find_spec("ctranslate2") is None:
        raise NMTError(f"{key}=ctranslate2: not installed; {how_to_install('ctranslate2')}")


def load_ctranslate2(config: TranslateConfig, folders: list[Path], notice: Callable[[str], None]) -> Engine:
    """CTranslate2 with a model directory, which is converted at its first use, or with an exported model."""
    if len(folders) > 1:
        raise NMTError(f"engine=ctranslate2: {len(folders)} models, but it has no ensembles; use engine=torch")
    if config.device not in ("auto", "cpu"):
        raise NMTError(f"device={config.device} with engine=ctranslate2: that is for processors; use engine=torch")
    require_ctranslate2("engine")
    from nmt.interchange.ctranslate2_reader import check_exported
    from nmt.search import ctranslate2_engine

    ctranslate2_engine.check(config.decode, config.target_prefix)
    [folder] = folders
    longest = ctranslate2_engine.positions(read_description(folder))
    with ExitStack() as stack:
        precision = "default"
        if is_exported(folder):
            check_exported(folder)
            precision = "int8" if config.precision == "int8" else precision
        else:
            folder = converted(folder, config.precision, notice, stack)
        engine = ctranslate2_engine.CTranslate2Engine(folder, config.decode, longest, precision, config.threads)
        # Text has no scores in it; a corpus that Ray writes has.
        engine.scores = config.format != "text" or config.ray.enabled
        return engine


def ctranslate2_folder(folder: Path, precision: str) -> Path:
    """Where the model of CTranslate2 is kept that was made of a model directory: by the content of its files.

    That is in our own cache. What comes with a model directory may hold other weights, whatever it says of itself.
    """
    parts = [nmt.__version__, *(sha256(folder / name) for name in MADE_OF)]
    return cache_folder() / "ctranslate2" / f"{hashlib.sha256(' '.join(parts).encode()).hexdigest()}-{precision}"


def converted(folder: Path, precision: str, notice: Callable[[str], None], stack: ExitStack) -> Path:
    """A model directory as a model of CTranslate2, from our cache, written there where it is not yet.

    It goes into a temporary folder, which `stack` removes, where the cache cannot be written.
    """
    output = ctranslate2_folder(folder, precision)
    if is_exported(output):
        return output
    from nmt.interchange.ctranslate2 import write

    if not can_be_made(output.parent):
        output = Path(stack.enter_context(tempfile.TemporaryDirectory())) / output.name
    notice(f"converting the model for CTranslate2, once: {output}")
    write(folder, output, precision)
    return output


def can_be_made(folder: Path) -> bool:
    """Whether there is such a folder, which can be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def load_judge(config: TranslateConfig, folders: list[Path], engine: Engine) -> Judge:
    """What these models think of translations, by torch whichever engine finds them; NMTError without its weights."""
    for folder in folders:
        if is_exported(folder):
            raise NMTError(
                f"format=jsonl needs the model's own weights, which {folder} has not; pass run=RUN, or format=tsv"
            )
    from nmt.model_directory.weights import load_model
    from nmt.search.forced_decoding import force
    from nmt.search.torch_engine import TorchEngine

    if isinstance(engine, TorchEngine):
        models = engine.models
    else:
        models = [load_model(folder, choose_device(config.device)) for folder in folders]
    return lambda pairs: force(models, pairs, config.decode.batch_tokens, align=True)


def find_models(names: list[str], key: str = "run") -> tuple[list[Path], list[ModelDescription], Tokenizer]:
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
    folders, descriptions, tokenizer = find_models(config.run)
    options = Options(
        length_penalty=config.decode.length_penalty,
        source_prefix=config.source_prefix,
        target_prefix=config.target_prefix,
        limits=limits(descriptions, config.split),
        source=descriptions[0].source,
    )
    engine = load_engine(config, folders, notice)
    translator = Translator(engine, tokenizer, options)
    if config.format == "jsonl":
        translator.describer = Describer(
            load_judge(config, folders, engine), tokenizer, config.source_prefix, translator.prefix
        )
    return translator
