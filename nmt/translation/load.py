"""From model directories to a translator: the engine, the stages and the target language."""

from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from nmt.config import TranslatorOptions, require, shown
from nmt.errors import NMTError
from nmt.files import ModelDescription, expected_search, find_model_directory, read_description, within
from nmt.registry import Entry, entries_of, import_attribute
from nmt.search import Engine, EngineOptions
from nmt.text import Tokenizer, read_tokenizer, scripts_of_characters, scripts_of_language
from nmt.translation.segments import limits
from nmt.translation.translator import LANGUAGE_TAG, Notice, Stage, Translation, Translator


class Models(NamedTuple):
    """The model directories of names given for `run`, their descriptions, and their common tokenizer."""

    folders: list[Path]
    descriptions: list[ModelDescription]
    tokenizer: Tokenizer

    @property
    def source(self) -> str:
        return self.descriptions[0].source or ""

    def target(self, options: TranslatorOptions) -> str:
        """The language that is translated into; "": unknown."""
        return language_of(options.target or "") if languages(self.tokenizer) else self.descriptions[0].target or ""


def find_models(names: list[str]) -> Models:
    """The models of these names; NMTError if one is missing, or if their vocabularies differ."""
    folders = [find_model_directory(name) for name in names]
    descriptions = [read_description(folder) for folder in folders]
    for folder, description in zip(folders, descriptions, strict=True):
        if description.tokenizer != descriptions[0].tokenizer:
            raise NMTError(f"{folder} and {folders[0]} have different vocabularies: they are no ensemble")
    return Models(folders, descriptions, read_tokenizer(folders[0]))


def language_of(tag: str) -> str:
    return tag.strip("<>").removeprefix("2")


def languages(tokenizer: Tokenizer) -> list[str]:
    """The target languages that the model has tags for."""
    return [language_of(tag) for tag in tokenizer.tags if LANGUAGE_TAG.fullmatch(tag)]


def language_tag(target: str | None, tokenizer: Tokenizer) -> str:
    """The tag of a target language with a blank, or none; NMTError where the model has no such tag."""
    if not target:
        return ""
    for tag in tokenizer.tags:
        if target in (tag, tag.strip("<>"), language_of(tag)):
            return f"{tag} "
    names = ", ".join(map(language_of, tokenizer.tags))
    raise NMTError(f"target={target:.40}: the model has {names or 'no tags, as it has one target language'}")


def is_asked_for(stage: Entry, options: TranslatorOptions) -> bool:
    """False for a stage whose key has no value, so that it is not even imported."""
    group, key = stage.facts.get("key", ("", ""))
    return not key or bool(getattr(options.plugins.get(group), key, None))


def stages_of(
    options: TranslatorOptions, models: Models | None = None, notice: Notice = lambda words: None
) -> tuple[Stage, ...]:
    """The stages that these options ask for, in the order in which lines pass them."""
    _, descriptions, tokenizer = models or find_models(options.run)
    entries = [entry for entry in entries_of("stage").values() if is_asked_for(entry, options)]
    entries.sort(key=lambda entry: entry.facts["order"])
    limit = limits(descriptions, options.split != "never")
    return tuple(filter(None, (entry.load()(options, tokenizer, limit, notice) for entry in entries)))


def load_translator(options: TranslatorOptions, notice: Notice, models: Models | None = None) -> Translator:
    """A translator of one model directory, or of several as an ensemble; NMTError if parts do not belong together."""
    models = models or find_models(options.run)
    folders, descriptions, tokenizer = models
    stages = stages_of(options, models, notice)
    options = with_engine(options, notice, models)
    load: Callable[..., Engine] = entries_of("engine")[options.compute.engine].load()
    engine, limit = (
        load(folders, engine_options(options, models), notice),
        limits(descriptions, options.split != "never"),
    )
    if limit.split and engine.longest is not None:
        limit = replace(limit, longest=min(limit.longest or engine.longest, engine.longest - 1))
    prefix = language_tag(options.target, tokenizer) + options.source_prefix
    if (targets := languages(tokenizer)) and not prefix and not options.has_tags:
        into = shown(", ".join(targets))
        notice(f"the model translates into {into}: lines without a tag need target={targets[0]}, or so")
    texts, details = (prefix, options.target_prefix), options.results == "tokens"
    return Translator(engine, tokenizer, limit, *texts, details, stages, engine.ahead, options, models)


def automatic_engines(precision: str) -> list[Entry]:
    """The engines that `engine=auto` may choose: what plugins add and is installed, and torch as the last one."""
    entries = [entry for entry in entries_of("engine").values() if precision in entry.facts["precisions"]]
    ready = [entry for entry in entries if "suits" in entry.facts and find_spec(entry.facts["module"])]
    return [*ready, *(entry for entry in entries if entry.name == "torch")]


def with_engine(options: TranslatorOptions, notice: Notice, models: Models | None = None) -> TranslatorOptions:
    """The options with an engine in place of auto, with a notice where there was a choice."""
    compute = options.compute
    if compute.engine != "auto":
        return options
    engines, reasons = automatic_engines(compute.precision), list[str]()
    require(bool(engines), f"precision={compute.precision}: the engine for it is not installed; see engine")
    if len(engines) == 1 or compute.devices > 1:
        return replace(options, compute=replace(compute, engine=engines[-1].name))
    models = models or find_models(options.run)
    for entry in engines:
        suits = import_attribute(entry.facts["suits"]) if "suits" in entry.facts else lambda *engine: ""
        problem = suits(models.folders, engine_options(options, models))
        if options.split == "never" and entry.name != "torch":
            problem = problem or "split=never"  # a line may have more tokens than the engine has positions
        if not problem:
            break
        reasons.append(f" ({problem})")
    notice(f"engine={entry.name}{''.join(reasons[:1])}")
    return replace(options, compute=replace(compute, engine=entry.name))


def engine_options(options: TranslatorOptions, models: Models) -> EngineOptions:
    """What an engine has to know of the options of a translation by these models."""
    constraining = [entry for entry in entries_of("stage").values() if entry.facts.get("constrains")]
    return EngineOptions(
        expected_search(options.decode, models.descriptions[0]),
        options.compute.device,
        options.compute.precision,
        options.compute.threads,
        scores=options.results != "text",
        target_prefix=options.target_prefix,
        constraints=any(is_asked_for(entry, options) for entry in constraining),
    )


def flagger(models: Models) -> Callable[[str, Translation], list[str]]:
    finders, scripts = [entry.load() for entry in entries_of("flags").values()], target_scripts(models.descriptions)

    def flags_of(source: str, translation: Translation) -> list[str]:
        log_probabilities = translation.details.token_log_probabilities if translation.details else []
        untagged = source.removeprefix(models.tokenizer.leading_tag(source))
        return [flag for find in finders for flag in find(untagged, translation.text, scripts, log_probabilities)]

    return flags_of


def target_scripts(descriptions: list[ModelDescription]) -> frozenset[str] | None:
    """The scripts that a model writes: those of its training's targets if these are known, else of its language."""
    characters = within(descriptions[0].training, "characters", "target")
    scripts = scripts_of_characters(characters) if isinstance(characters, str) else frozenset()
    return scripts or scripts_of_language(descriptions[0].target)
