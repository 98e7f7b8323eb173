"""Find the models that a command names, and load what translates with them: an engine, stages, flags."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nmt import data, search
from nmt.config import JobConfig, NMTError, TranslatorOptions, facts_of_kind, require, shown
from nmt.files import (
    ModelDescription,
    expected_search,
    find_model_directory,
    read_description,
    within,
)
from nmt.registry import Entry, entries_of, import_attribute
from nmt.text import (
    Tokenizer,
    did_you_mean,
    match_language,
    read_tokenizer,
    scripts_of_characters,
    scripts_of_language,
    with_code,
)
from nmt.translation.foreign import is_left_as_it_is
from nmt.translation.job import warn
from nmt.translation.segments import limits
from nmt.translation.translator import LANGUAGE_TAG, Notice, Stage, Translation, Translator

if TYPE_CHECKING:
    from nmt.translation.devices import DeviceTranslator

COPIED = "copied_source"


class Models(NamedTuple):
    """The model directories that `run` names, their descriptions, and their common tokenizer."""

    folders: list[Path]
    descriptions: list[ModelDescription]
    tokenizer: Tokenizer

    def target(self, options: TranslatorOptions) -> str:
        """The target language; empty if it is unknown."""
        codes = languages(self.tokenizer)
        if not codes:
            return self.descriptions[0].target or ""
        target = language_of(options.target or "")
        return match_language(target, codes) or target


def find_models(names: list[str]) -> Models:
    """Find models by name; NMTError if one is missing or their vocabularies differ."""
    folders = [find_model_directory(name) for name in names]
    descriptions = [read_description(folder) for folder in folders]
    for folder, description in zip(folders, descriptions, strict=True):
        same = description.tokenizer == descriptions[0].tokenizer
        require(
            same,
            f"{folder} and {folders[0]} have different vocabularies: they cannot form an ensemble",
        )
    return Models(folders, descriptions, read_tokenizer(folders[0]))


def language_of(tag: str) -> str:
    return tag.strip("<>").removeprefix("2")


def languages(tokenizer: Tokenizer) -> list[str]:
    """The target languages that the model has tags for."""
    return [language_of(tag) for tag in tokenizer.tags if LANGUAGE_TAG.fullmatch(tag)]


def find_tag(target: str, tokenizer: Tokenizer) -> str | None:
    """The tag that a user means by 2fr, <2fr>, fr, FR, fra or fr-CA; None if the model has no such tag."""
    for tag in tokenizer.tags:
        if target in (tag, tag.strip("<>"), language_of(tag)):
            return tag
    code = match_language(language_of(target), languages(tokenizer))
    return next((tag for tag in tokenizer.tags if language_of(tag) == code), None)


def language_tag(target: str | None, tokenizer: Tokenizer) -> str:
    """The tag of a target language and a space, or "" for None; NMTError if the model has no such tag."""
    if not target:
        return ""
    tag = find_tag(target, tokenizer)
    if tag is None:
        names = ", ".join(map(language_of, tokenizer.tags))
        hint = did_you_mean(language_of(target), languages(tokenizer))
        problem = f"{hint} The model supports {names}" if hint else f"the model supports {names}"
        raise NMTError(f"target={target:.40}: {problem}")
    return f"{tag} "


def tag_of_target(options: TranslatorOptions, models: Models) -> str:
    """Like `language_tag`, but a model with a single target language also accepts that language, without a tag."""
    target = options.target
    if not target or languages(models.tokenizer) or find_tag(target, models.tokenizer):
        return language_tag(target, models.tokenizer)
    about = models.descriptions[0]
    if match_language(language_of(target), [about.target]):
        return ""
    direction = f"translates from {with_code(about.source)} to {with_code(about.target)}"
    hint = did_you_mean(language_of(target), filter(None, [about.target]))
    advice = hint or "omit target, or name another model"
    raise NMTError(f"target={target:.40}: {options.run[0]} {direction}; {advice}")


def stages_of(options: TranslatorOptions, models: Models | None = None) -> tuple[Stage, ...]:
    """The stages whose keys are set, in the order in which lines pass through them; others are not even imported."""
    _, descriptions, tokenizer = models or find_models(options.run)
    limit, stages = limits(descriptions, options.split != "never"), list[Stage]()
    for entry in sorted(entries_of("stage").values(), key=lambda entry: entry.facts["order"]):
        group, key = entry.facts.get("key", ("", ""))
        if not key or getattr(options.plugins.get(group), key, None):
            stages.append(entry.load()(options, tokenizer, limit))
    return tuple(stages)


def automatic_engines(precision: str) -> list[Entry]:
    """The engines that `engine=auto` may choose, best first: plugin engines whose library is installed, then torch."""
    entries = [
        entry for entry in entries_of("engine").values() if precision in entry.facts["precisions"]
    ]
    ready = [
        entry for entry in entries if "suits" in entry.facts and find_spec(entry.facts["module"])
    ]
    return [*ready, *(entry for entry in entries if entry.name == "torch")]


def engine_options(options: TranslatorOptions, models: Models) -> search.EngineOptions:
    decode, compute = expected_search(options.decode, models.descriptions[0]), options.compute
    arguments = options.results != "text", options.target_prefix
    return search.EngineOptions(
        decode, compute.device, compute.precision, compute.threads, *arguments
    )


def with_engine(
    options: TranslatorOptions, notice: Notice, models: Models | None = None
) -> TranslatorOptions:
    """Replace engine=auto with the first suitable engine; if several are available, a notice names the choice."""
    compute = options.compute
    if compute.engine != "auto":
        return options
    engines = automatic_engines(compute.precision)
    require(
        bool(engines),
        f"precision={compute.precision}: no installed engine supports it; see the key engine",
    )
    *others, engine = engines
    if others and compute.devices == 1:
        models, problems = models or find_models(options.run), list[str]()
        for entry in others:
            problem = import_attribute(entry.facts["suits"])(
                models.folders, engine_options(options, models)
            )
            # With split=never, a line may have more tokens than the engine has positions.
            problems.append(problem or "split=never" * (options.split == "never"))
        engine = next(
            (entry for entry, problem in zip(others, problems, strict=True) if not problem), engine
        )
        notice(f"engine={engine.name}" + (f" ({problems[0]})" if problems[0] else ""))
    return replace(options, compute=replace(compute, engine=engine.name))


def load_translator(options: TranslatorOptions, notice: Notice) -> Translator:
    """Load a translator for one model or an ensemble."""
    models = folders, descriptions, tokenizer = find_models(options.run)
    prefix = tag_of_target(options, models) + options.source_prefix
    stages, options = stages_of(options, models), with_engine(options, notice, models)
    load: Callable[..., search.Engine] = entries_of("engine")[options.compute.engine].load()
    engine = load(folders, engine_options(options, models), notice)
    limit = limits(descriptions, options.split != "never")
    if limit.split and engine.longest is not None:
        limit = replace(limit, longest=min(limit.longest or engine.longest, engine.longest - 1))
    if (targets := languages(tokenizer)) and not prefix and not options.has_tags:
        into = shown(", ".join(targets))
        notice(
            f"the model translates into {into}: for lines without a tag, pass a target such as target={targets[0]}"
        )
    return Translator(
        engine,
        tokenizer,
        limit,
        source_prefix=prefix,
        target_prefix=options.target_prefix,
        details=options.results == "tokens",
        stages=stages,
        ahead=engine.ahead,
        options=options,
        models=models,
    )


def open_translator(config: JobConfig, stack: ExitStack) -> "Translator | DeviceTranslator":
    """A job's translator, for one or more devices; NMTError if there is no input. Closing `stack` stops processes."""
    require(
        config.input == "-" or Path(config.input).exists(),
        f"{config.input}: No such file or directory",
    )
    if config.translator.compute.devices == 1:
        return load_translator(config.translator, warn)
    from nmt.translation.devices import on_devices  # needs the modules of processes

    return stack.enter_context(on_devices(config))


def best_translations(translator: Translator, lines: list[str]) -> list[str]:
    return [best.text for best, *_ in translator.translate(lines)]


@dataclass(frozen=True)
class CorpusKind:
    """How to translate and score a kind of corpus; taken from the facts of a plugin's "corpus" entry."""

    translate: Callable[[Translator, list[str]], list[str]] = best_translations
    metric: str = "bleu"
    column: str = "valid_bleu"  # in metrics.csv


def kind_of_corpus(corpus: "data.PreparedCorpus") -> CorpusKind:
    facts = facts_of_kind(corpus.manifest.content["data"]["kind"])
    if "translate" not in facts:
        return CorpusKind()
    return CorpusKind(import_attribute(facts["translate"]), facts["metric"], facts["column"])


def flagger(models: Models) -> Callable[[str, Translation], list[str]]:
    """A function that returns flags for likely failures, given a line and its translation."""
    from nmt.flags import flags as find_flags  # compiles patterns that few translations need

    scripts = target_scripts(models.descriptions)
    source_language = models.descriptions[0].source
    target_language = models.descriptions[0].target or ""

    def flags_of(source: str, translation: Translation) -> list[str]:
        log_probabilities = (
            translation.details.token_log_probabilities if translation.details else []
        )
        untagged = source.removeprefix(models.tokenizer.leading_tag(source))
        text = translation.text
        flags = find_flags(untagged, text, scripts, log_probabilities, target_language)
        # They know only the target language, in which the whole line may be written.
        if COPIED not in flags and is_left_as_it_is(untagged, text, source_language):
            flags.append(COPIED)
        return flags

    return flags_of


def target_scripts(descriptions: list[ModelDescription]) -> frozenset[str] | None:
    """The writing systems of the training targets or, if these are unknown, of the target language."""
    characters = within(descriptions[0].training, "characters", "target")
    scripts = scripts_of_characters(characters) if isinstance(characters, str) else frozenset()
    return scripts or scripts_of_language(descriptions[0].target)
