"""From model directories to a translator with the chosen engine."""

from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from nmt.config import TranslateConfig, documents, require, shown
from nmt.errors import NMTError
from nmt.files import (
    ModelDescription,
    expected_search,
    find_model_directory,
    read_description,
    read_tokenizer,
)
from nmt.plugins.protection.glossary import read_glossary
from nmt.plugins.protection.protection import Protection
from nmt.plugins.protection.terms import Terms, knows_hints
from nmt.registry import Entry, entries_of, import_attribute
from nmt.search import Engine, EngineOptions
from nmt.text import Finder, Tokenizer
from nmt.translation.segments import limits
from nmt.translation.targets import LANGUAGE_TAG, language_tag, languages
from nmt.translation.translator import Translator

CONVERTED_FILES = ("config.json", "tokenizer.model", "model.safetensors")
"""The files of a model directory that decide what its conversion to CTranslate2 contains."""


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
    config = with_engine(config, notice)
    load: Callable[..., Engine] = entries_of("engine")[config.engine].load()
    engine = load(folders, engine_options(config, descriptions[0]), notice)
    found = limits(descriptions, config.split != "never")
    if found.split and engine.longest is not None:
        found.longest = min(found.longest or engine.longest, engine.longest - 1)
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
    scorer = engine.token_scores if config.format == "jsonl" or config.format in documents() else None
    translator = Translator(engine, tokenizer, found, prefix, config.target_prefix, scorer)
    if config.protect:
        translator.protection = Protection(finder)
    translator.ahead, translator.terms = config.engine == "ctranslate2", terms
    return translator


def automatic_engines(precision: str) -> list[Entry]:
    """The engines that `engine=auto` may choose: what plugins add and is installed, and torch as the last one."""
    entries = [entry for entry in entries_of("engine").values() if precision in entry.facts["precisions"]]
    ready = [entry for entry in entries if "suits" in entry.facts and find_spec(entry.facts["module"])]
    return [*ready, *(entry for entry in entries if entry.name == "torch")]


def with_engine(config: TranslateConfig, notice: Callable[[str], None]) -> TranslateConfig:
    """The options with an engine in place of auto, with a notice where there was a choice."""
    if config.engine != "auto":
        return config
    engines = automatic_engines(config.precision)
    require(bool(engines), f"precision={config.precision}: the engine for it is not installed; see engine")
    if len(engines) == 1 or config.ray.enabled or config.devices > 1:
        return replace(config, engine=engines[-1].name)
    folders, reason = [find_model_directory(name) for name in config.run], ""
    options = engine_options(config, read_description(folders[0]))
    for entry in engines:
        problem = import_attribute(entry.facts["suits"])(folders, options) if "suits" in entry.facts else ""
        if config.split == "never" and not problem and entry.name != "torch":
            problem = "split=never"  # a line may have more tokens than the engine has positions
        if not problem:
            break
        reason = reason or f" ({problem})"
    notice(f"engine={entry.name}{reason}")
    return replace(config, engine=entry.name)


def engine_options(config: TranslateConfig, description: ModelDescription) -> EngineOptions:
    """What an engine has to know of the options of a translation by such a model."""
    return EngineOptions(
        expected_search(config.decode, description),
        config.device,
        config.precision,
        config.threads,
        # Plain text shows no scores, but the Parquet files that Ray writes do.
        scores=config.format != "text" or config.ray.enabled,
        target_prefix=config.target_prefix,
        terms=bool(config.glossary) and config.terms == "hard",
    )
