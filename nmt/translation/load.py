"""From model directories to a translator with the chosen engine."""

import hashlib
import importlib.util
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import nmt
from nmt.config import DOCUMENTS, TranslateConfig, require, shown
from nmt.errors import NMTError, how_to_install
from nmt.files import (
    ModelDescription,
    cache_folder,
    expected_search,
    find_model_directory,
    is_exported,
    read_description,
    read_tokenizer,
    sha256,
)
from nmt.plugins.protection.glossary import read_glossary
from nmt.plugins.protection.protection import Protection
from nmt.plugins.protection.terms import Terms, knows_hints
from nmt.search import Engine
from nmt.text import Finder, Tokenizer
from nmt.translation.segments import limits
from nmt.translation.targets import LANGUAGE_TAG, language_tag, languages
from nmt.translation.translator import Translator

if TYPE_CHECKING:
    from nmt.search import TorchEngine

CONVERTED_FILES = ("config.json", "tokenizer.model", "model.safetensors")
"""The files of a model directory that decide what its conversion to CTranslate2 contains."""
CONVERSION = "3"
"""Raise it whenever a conversion of the same model gets another content."""


def choose_device(name: str) -> str:
    """The device for a name; auto is cuda if there is one, else cpu. NMTError for a device that torch does not have."""
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        raise NMTError(f"device={name}: not available here ({str(error).splitlines()[0]}); use device=cpu") from error
    return name


def find_models(names: list[str]) -> tuple[list[Path], list[ModelDescription], Tokenizer]:
    """The model directories behind names given for `run`, their descriptions, and their common tokenizer.

    Raises NMTError if there is no such model, or if their vocabularies differ.
    """
    folders = [find_model_directory(name) for name in names]
    descriptions = [read_description(folder) for folder in folders]
    for folder, description in zip(folders, descriptions, strict=True):
        if description.tokenizer != descriptions[0].tokenizer:
            raise NMTError(f"{folder} and {folders[0]} have different vocabularies: they are no ensemble")
    tokenizers = [read_tokenizer(folder) for folder in folders]
    return folders, descriptions, tokenizers[0]


def load_translator(config: TranslateConfig, notice: Callable[[str], None]) -> Translator:
    """A translator of one model directory, or of several as an ensemble.

    `notice` is called with what a user should know. Raises NMTError if parts do not belong together.
    """
    folders, descriptions, tokenizer = find_models(config.run)
    glossary, finder = read_glossary(config.glossary, notice) if config.glossary else None, Finder(config.protect)
    terms = Terms(glossary, tokenizer, config.terms == "soft", finder) if glossary else None
    if config.terms == "soft" and not knows_hints(descriptions):
        notice("terms=soft: the model was not trained with data.noise.terms, and may translate the hints; terms=hard")
    config = replace(config, decode=expected_search(config.decode, descriptions[0]))
    engine: Engine
    if config.engine == "ctranslate2":
        engine = load_ctranslate2(config, folders, notice)
    else:
        engine = load_torch(config, folders)
    found = limits(descriptions, config.split != "never")
    if found.characters is not None and terms and terms.soft:
        found.characters |= terms.characters  # they are to be read, not copied
    if terms and not terms.soft and (unusable := terms.unusable(found.characters)):
        notice(
            f"terms=hard has no effect on {len(unusable):,} of the terms, whose characters the model does not know: "
            f"{shown(', '.join(unusable))}"
        )
    prefix = language_tag(config.target, tokenizer) + config.source_prefix
    tagged = config.input_format != "text" or LANGUAGE_TAG.match(config.text or "")
    if (known := languages(tokenizer)) and not prefix and not tagged:
        into = shown(", ".join(known))
        notice(f"the model translates into {into}: lines without a tag need target={known[0]}, or so")
    scorer = engine.token_scores if config.format == "jsonl" or config.format in DOCUMENTS else None
    translator = Translator(engine, tokenizer, found, prefix, config.target_prefix, scorer)
    if config.protect:
        translator.protection = Protection(finder)
    translator.ahead, translator.terms = config.engine == "ctranslate2", terms
    return translator


def load_torch(config: TranslateConfig, folders: list[Path]) -> "TorchEngine":
    """The models of these directories, on the chosen device, in the chosen arithmetic."""
    for folder in folders:
        require(
            not is_exported(folder),
            f"run={folder}: exported for another program: name the run, or translate with engine=ctranslate2",
        )
    import torch

    from nmt.files import load_model
    from nmt.kernels import keep_freed_memory
    from nmt.search import TorchEngine

    keep_freed_memory()
    device, dtype = choose_device(config.device), getattr(torch, config.precision)
    models = [load_model(folder, device).to(dtype) for folder in folders]
    return TorchEngine(models, config.decode, keeps_kernels=True)


def require_ctranslate2(key: str, value: str = "ctranslate2") -> None:
    """Raise NMTError, naming `key` and its value, unless CTranslate2 is installed."""
    if importlib.util.find_spec("ctranslate2") is None:
        raise NMTError(f"{key}={value}: CTranslate2 is not installed; {how_to_install('ctranslate2')}")


def load_ctranslate2(config: TranslateConfig, folders: list[Path], notice: Callable[[str], None]) -> Engine:
    """CTranslate2 with a model directory, which is converted at its first use, or with an exported model."""
    for refused, problem in (
        (len(folders) > 1, f"engine=ctranslate2: {len(folders)} models, but it has no ensembles"),
        (config.device not in ("auto", "cpu"), f"device={config.device}: engine=ctranslate2 is for processors"),
    ):
        require(not refused, f"{problem}; use engine=torch")
    require_ctranslate2("engine")
    from nmt.plugins.exchange.ctranslate2 import check_exported
    from nmt.plugins.exchange.ctranslate2_engine import CTranslate2Engine, check

    check(config.decode, config.target_prefix)
    [folder], precision = folders, "default"
    if is_exported(folder):
        check_exported(folder)
        precision = "int8" if config.precision == "int8" else precision
    else:
        folder = converted(folder, config.precision, notice)
    # Plain text shows no scores, but the Parquet files that Ray writes do.
    scores = config.format != "text" or config.ray.enabled
    engine = CTranslate2Engine(folder, config.decode, precision, config.threads, scores, config.vmap)
    if engine.map_beam and not engine.has_map:
        notice(f"{folder}: its vocabulary map is for decode.beam_size={engine.map_beam} at most, and is left out")
    return engine


def converted_folder(folder: Path, precision: str) -> Path:
    """The folder in our cache for a model directory's conversion to CTranslate2.

    Its name is a hash of the model's files. A conversion that lies in the model directory is not trusted: it may hold
    other weights.
    """
    parts = [nmt.__version__, CONVERSION, *(sha256(folder / name) for name in CONVERTED_FILES)]
    return cache_folder() / "ctranslate2" / f"{hashlib.sha256(' '.join(parts).encode()).hexdigest()}-{precision}"


def converted(folder: Path, precision: str, notice: Callable[[str], None]) -> Path:
    """The conversion of a model directory to CTranslate2 in our cache; it is written there if it is missing."""
    output = converted_folder(folder, precision)
    if is_exported(output):
        return output
    from nmt.plugins.exchange.ctranslate2 import write

    try:
        output.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"cannot write {output.parent} ({error.strerror})"
        raise NMTError(f"{reason}: XDG_CACHE_HOME=FOLDER names another cache, `nmt export` needs none") from error
    notice(f"converting the model for CTranslate2, once: {output}")
    write(folder, output, precision)
    return output
