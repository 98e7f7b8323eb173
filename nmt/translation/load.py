"""From model directories to a translator with the chosen engine."""

from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from nmt.config import TranslatorOptions, require, shown
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
from nmt.translation.targets import language_tag, languages
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


def load_translator(options: TranslatorOptions, notice: Callable[[str], None]) -> Translator:
    """A translator of one model directory, or of several as an ensemble.

    `notice` is called with what a user should know. Raises NMTError if parts do not belong together.
    """
    folders, descriptions, tokenizer = find_models(options.run)
    protection, terms = options.plugins.get("protection"), None
    finder = Finder(protection.protect if protection else [])
    if protection and protection.glossary:
        one = isinstance(protection.glossary, str)
        require(one, f"glossary={shown(protection.glossary)}: it takes one file; put all terms into it")
        glossary = read_glossary(protection.glossary, notice)
        terms = Terms(glossary, tokenizer, protection.terms == "soft", finder)
    if terms and terms.soft and not knows_hints(descriptions):
        notice("terms=soft: the model was not trained with data.noise.terms, and may translate the hints; terms=hard")
    options = with_engine(options, notice)
    load: Callable[..., Engine] = entries_of("engine")[options.compute.engine].load()
    engine = load(folders, engine_options(options, descriptions[0]), notice)
    found = limits(descriptions, options.split != "never")
    if found.split and engine.longest is not None:
        found.longest = min(found.longest or engine.longest, engine.longest - 1)
    if found.characters is not None and terms and terms.soft:
        found.characters |= terms.characters  # they are to be read, not copied
    if terms and not terms.soft and (unusable := terms.unusable(found.characters)):
        notice(
            f"terms=hard has no effect on {len(unusable):,} of the terms, whose characters the model does not know: "
            f"{shown(', '.join(unusable))}"
        )
    prefix = language_tag(options.target, tokenizer) + options.source_prefix
    if (known := languages(tokenizer)) and not prefix and not options.has_tags:
        into = shown(", ".join(known))
        notice(f"the model translates into {into}: lines without a tag need target={known[0]}, or so")
    scorer = engine.token_scores if options.results == "tokens" else None
    translator = Translator(engine, tokenizer, found, prefix, options.target_prefix, scorer)
    if protection and protection.protect:
        translator.protection = Protection(finder)
    translator.ahead, translator.terms = options.compute.engine == "ctranslate2", terms
    return translator


def automatic_engines(precision: str) -> list[Entry]:
    """The engines that `engine=auto` may choose: what plugins add and is installed, and torch as the last one."""
    entries = [entry for entry in entries_of("engine").values() if precision in entry.facts["precisions"]]
    ready = [entry for entry in entries if "suits" in entry.facts and find_spec(entry.facts["module"])]
    return [*ready, *(entry for entry in entries if entry.name == "torch")]


def with_engine(options: TranslatorOptions, notice: Callable[[str], None]) -> TranslatorOptions:
    """The options with an engine in place of auto, with a notice where there was a choice."""
    compute = options.compute
    if compute.engine != "auto":
        return options
    engines = automatic_engines(compute.precision)
    require(bool(engines), f"precision={compute.precision}: the engine for it is not installed; see engine")
    if len(engines) == 1 or compute.devices > 1:
        return replace(options, compute=replace(compute, engine=engines[-1].name))
    folders, reason = [find_model_directory(name) for name in options.run], ""
    needed = engine_options(options, read_description(folders[0]))
    for entry in engines:
        problem = import_attribute(entry.facts["suits"])(folders, needed) if "suits" in entry.facts else ""
        if options.split == "never" and not problem and entry.name != "torch":
            problem = "split=never"  # a line may have more tokens than the engine has positions
        if not problem:
            break
        reason = reason or f" ({problem})"
    notice(f"engine={entry.name}{reason}")
    return replace(options, compute=replace(compute, engine=entry.name))


def engine_options(options: TranslatorOptions, description: ModelDescription) -> EngineOptions:
    """What an engine has to know of the options of a translation by such a model."""
    protection = options.plugins.get("protection")
    return EngineOptions(
        expected_search(options.decode, description),
        options.compute.device,
        options.compute.precision,
        options.compute.threads,
        scores=options.results != "text",
        target_prefix=options.target_prefix,
        terms=protection is not None and protection.glossary is not None and protection.terms == "hard",
    )
