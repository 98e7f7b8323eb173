"""From model directories to a translator: the engine, the stages and the target language."""

from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from nmt.config import JobConfig, TranslatorOptions, require, shown
from nmt.errors import NMTError
from nmt.files import ModelDescription, expected_search, find_model_directory, read_description, within
from nmt.registry import Entry, entries_of, import_attribute
from nmt.search import Engine, EngineOptions
from nmt.text import Tokenizer, read_tokenizer, scripts_of_characters, scripts_of_language
from nmt.translation.segments import Limits, limits
from nmt.translation.stages import LANGUAGE_TAG, Stage
from nmt.translation.translator import Translator


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


def language_of(tag: str) -> str:
    return tag.strip("<>").removeprefix("2")


def languages(tokenizer: Tokenizer) -> list[str]:
    """The target languages that the model has tags for."""
    return [language_of(tag) for tag in tokenizer.tags if LANGUAGE_TAG.fullmatch(tag)]


def language_tag(target: str | None, tokenizer: Tokenizer) -> str:
    """The tag of a target language with a blank, or none; NMTError where the model has no such tag."""
    if not target:
        return ""
    tags = [tag for tag in tokenizer.tags if target in (tag, tag.strip("<>"), language_of(tag))]
    if not tags:
        names = ", ".join(map(language_of, tokenizer.tags))
        raise NMTError(f"target={target:.40}: the model has {names or 'no tags, as it has one target language'}")
    return f"{tags[0]} "


def target_language(config: JobConfig) -> str:
    """The language that is translated into, or "" where a model does not say it."""
    _, descriptions, tokenizer = find_models(config.translator.run)
    return language_of(config.translator.target or "") if languages(tokenizer) else descriptions[0].target or ""


def source_language(config: JobConfig) -> str:
    """The language that is translated from, or "" where a model does not say it."""
    return find_models(config.translator.run)[1][0].source or ""


def target_scripts(descriptions: list[ModelDescription]) -> frozenset[str] | None:
    """The scripts that a model writes: those of its training's targets if these are known, else of its language."""
    characters = within(descriptions[0].training, "characters", "target")
    scripts = scripts_of_characters(characters) if isinstance(characters, str) else frozenset()
    return scripts or scripts_of_language(descriptions[0].target)


def make_stages(
    options: TranslatorOptions, tokenizer: Tokenizer, limits: Limits, notice: Callable[[str], None]
) -> tuple[Stage, ...]:
    """The stages that these options ask for, in the order in which lines pass them."""
    entries = sorted(entries_of("stage").values(), key=lambda entry: entry.facts["order"])
    stages = [entry.load()(options, tokenizer, limits, notice) for entry in entries]
    return tuple(stage for stage in stages if stage)


def stages_of(options: TranslatorOptions) -> tuple[Stage, ...]:
    """The stages, without a model."""
    _, descriptions, tokenizer = find_models(options.run)
    return make_stages(options, tokenizer, limits(descriptions, options.split != "never"), lambda words: None)


def load_translator(options: TranslatorOptions, notice: Callable[[str], None]) -> Translator:
    """A translator of one model directory, or of several as an ensemble.

    `notice` is called with what a user should know. Raises NMTError if parts do not belong together.
    """
    folders, descriptions, tokenizer = find_models(options.run)
    limit = limits(descriptions, options.split != "never")
    stages = make_stages(options, tokenizer, limit, notice)
    options = with_engine(options, notice)
    load: Callable[..., Engine] = entries_of("engine")[options.compute.engine].load()
    engine = load(folders, engine_options(options, descriptions[0]), notice)
    if limit.split and engine.longest is not None:
        limit = replace(limit, longest=min(limit.longest or engine.longest, engine.longest - 1))
    prefix = language_tag(options.target, tokenizer) + options.source_prefix
    if (targets := languages(tokenizer)) and not prefix and not options.has_tags:
        into = shown(", ".join(targets))
        notice(f"the model translates into {into}: lines without a tag need target={targets[0]}, or so")
    details = options.results == "tokens"
    return Translator(engine, tokenizer, limit, prefix, options.target_prefix, details, stages, engine.ahead)


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
    engines, reasons = automatic_engines(compute.precision), list[str]()
    require(bool(engines), f"precision={compute.precision}: the engine for it is not installed; see engine")
    if len(engines) == 1 or compute.devices > 1:
        return replace(options, compute=replace(compute, engine=engines[-1].name))
    folders = [find_model_directory(name) for name in options.run]
    needed = engine_options(options, read_description(folders[0]))
    for entry in engines:
        problem = import_attribute(entry.facts["suits"])(folders, needed) if "suits" in entry.facts else ""
        if options.split == "never" and not problem and entry.name != "torch":
            problem = "split=never"  # a line may have more tokens than the engine has positions
        if not problem:
            break
        reasons.append(f" ({problem})")
    notice(f"engine={entry.name}{''.join(reasons[:1])}")
    return replace(options, compute=replace(compute, engine=entry.name))


def engine_options(options: TranslatorOptions, description: ModelDescription) -> EngineOptions:
    """What an engine has to know of the options of a translation by such a model."""
    facts = [entry.facts["constrains"] for entry in entries_of("stage").values() if "constrains" in entry.facts]
    return EngineOptions(
        expected_search(options.decode, description),
        options.compute.device,
        options.compute.precision,
        options.compute.threads,
        scores=options.results != "text",
        target_prefix=options.target_prefix,
        constraints=any(getattr(options.plugins.get(group), key, None) for group, key in facts),
    )
