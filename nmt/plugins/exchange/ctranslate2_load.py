"""CTranslate2 as an engine: what it can be asked for, and conversions of model directories in the cache.

This file imports neither torch nor CTranslate2, which take time to load.
"""

import hashlib
import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.config import DecodeConfig, ModelConfig, require
from nmt.errors import NMTError
from nmt.files import MODEL_FILES, ModelDescription, cache_folder, is_exported, is_parser, read_description, sha256
from nmt.search import EngineOptions
from nmt.text import SOURCE, TARGET, Tokenizer, read_tokenizer
from nmt.version import __version__

if TYPE_CHECKING:
    from nmt.plugins.exchange.ctranslate2_engine import CTranslate2Engine
    from nmt.plugins.exchange.ctranslate2_reader import CTranslate2Model

MAX_POSITIONS = 2048
"""Length of the table of sinusoids, which CTranslate2 needs."""
CONVERSION = "3"
"""Raise it whenever a conversion of the same model gets another content."""


def require_ctranslate2(key: str) -> None:
    """Raise NMTError, naming `key`, unless CTranslate2 is installed."""
    installed = importlib.util.find_spec("ctranslate2") is not None
    require(installed, f"{key}=ctranslate2: CTranslate2 is not installed; pip install ctranslate2")


def check_search(config: DecodeConfig, target_prefix: str = "") -> None:
    """Raise NMTError for a search that CTranslate2 does not have, or that finds worse translations than torch."""
    for key, value, refused in (
        ("decode.do_sample", "true", config.do_sample),
        ("decode.no_repeat_ngram_size", config.no_repeat_ngram_size, config.no_repeat_ngram_size > 0),
        ("decode.min_length", config.min_length, config.min_length > 0),
        ("decode.max_length", config.max_length, config.max_length is not None),
        ("decode.length_penalty", config.length_penalty, config.beam_size > 1 and config.length_penalty > 1),
        ("target_prefix", target_prefix, bool(target_prefix.strip())),
    ):
        require(not refused, f"{key}={value}: engine=ctranslate2 cannot, or finds worse translations; use engine=torch")


def check(folders: Sequence[Path], options: EngineOptions) -> None:
    """Raise NMTError for what CTranslate2 cannot do, whatever the model is."""
    for refused, problem in (
        (len(folders) > 1, f"engine=ctranslate2: {len(folders)} models, but it has no ensembles"),
        (options.device not in ("auto", "cpu"), f"device={options.device}: engine=ctranslate2 is for processors"),
        (options.constraints, "engine=ctranslate2: no search for given words"),
    ):
        require(not refused, f"{problem}; use engine=torch")
    check_search(options.decode, options.target_prefix)


def check_model(model: ModelConfig) -> None:
    """Raise NMTError for a model that CTranslate2 cannot compute."""
    width = model.d_model / model.heads
    computable = {"d_k": width, "d_v": width, "attention": "scaled_dot_product", "attention_window": None}
    for key, only in computable.items():
        problem = f"model.{key}={getattr(model, key)}: CTranslate2 computes models with {only} only; use engine=torch"
        require(getattr(model, key) == only, problem)


def why_not_automatic(folders: Sequence[Path], options: EngineOptions) -> str:
    """Why `engine=auto` does not take CTranslate2, or nothing."""
    import ctranslate2

    if options.device == "auto" and ctranslate2.get_cuda_device_count():
        return "there is a GPU"
    try:
        check(folders, options)
        description: ModelDescription = read_description(folders[0])
        if is_parser(description):
            return "the model is a parser"
        if not is_exported(folders[0]):
            check_model(ModelConfig(**description.model))
            cache_folder().mkdir(parents=True, exist_ok=True)
    except NMTError as error:
        return str(error)
    except OSError as error:
        return f"cannot write the cache, {error.filename}"
    return ""


def load(folders: Sequence[Path], options: EngineOptions, notice: Callable[[str], None]) -> "CTranslate2Engine":
    """CTranslate2 with a model directory, which is converted at its first use, or with an exported model."""
    check(folders, options)
    require_ctranslate2("engine")
    [folder], precision = folders, "default"
    if is_exported(folder):
        precision = "int8" if options.precision == "int8" else precision
    else:
        folder = converted(folder, options.precision, notice)
    return load_engine(folder, options.decode, precision, options.threads, options.scores)


def load_engine(folder: Path, config: DecodeConfig, *options: Any, **more: Any) -> "CTranslate2Engine":
    """The engine, with these options, of an exported folder, which may come from anyone.

    CTranslate2 does not check what it loads, and may crash; so it gets from memory what was checked.
    """
    from nmt.plugins.exchange.ctranslate2_engine import CTranslate2Engine
    from nmt.plugins.exchange.ctranslate2_reader import read_model

    model = read_model(folder, values=False)
    tokenizer_beside(folder, model)
    engine = CTranslate2Engine(model, config, *options, **more)
    engine.folder = folder
    return engine


def tokenizer_beside(folder: Path, model: "CTranslate2Model") -> Tokenizer:
    """The tokenizer of an exported folder; NMTError where it is that of another model."""
    tokenizer = read_tokenizer(folder)
    same = model.vocabularies == (tokenizer.vocabulary(SOURCE), tokenizer.vocabulary(TARGET))
    require(same, f"{folder}: its vocabulary is not that of tokenizer.model; export the model again")
    return tokenizer


def converted_folder(folder: Path, precision: str) -> Path:
    """The folder in our cache for a model directory's conversion to CTranslate2.

    Its name is a hash of the model's files. A conversion that lies in the model directory is not trusted: it may hold
    other weights.
    """
    parts = [__version__, CONVERSION, *(sha256(folder / name) for name in MODEL_FILES)]
    return cache_folder() / "ctranslate2" / f"{hashlib.sha256(' '.join(parts).encode()).hexdigest()}-{precision}"


def converted(folder: Path, precision: str, notice: Callable[[str], None]) -> Path:
    """The conversion of a model directory to CTranslate2 in our cache; it is written there if it is missing."""
    output = converted_folder(folder, precision)
    if not is_exported(output):
        from nmt.plugins.exchange.ctranslate2 import write

        try:
            output.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = f"cannot write {output.parent} ({error.strerror})"
            raise NMTError(f"{reason}: XDG_CACHE_HOME=FOLDER names another cache, `nmt export` needs none") from error
        notice(f"converting the model for CTranslate2, once: {output}")
        write(folder, output, precision)
    return output


def describe(engine: "CTranslate2Engine") -> tuple[Path, dict[str, str]]:
    """The file of an engine's weights, and the keys that it decides: an exported model has an arithmetic of its own."""
    return engine.folder / "model.bin", {"precision": engine.precision}
