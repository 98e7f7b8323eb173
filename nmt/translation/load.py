"""Load a translator: its models, engine and stages."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from nmt import search
from nmt.config import JobConfig, NMTError, TranslatorOptions, shown
from nmt.extensions import EngineEntry, StageEntry, import_attribute
from nmt.files import expected_search
from nmt.registry import entries_of
from nmt.translation.identity import is_wanted
from nmt.translation.language_tags import languages
from nmt.translation.limits import Limits, limits_for
from nmt.translation.models import Models, find_models, tag_of_languages
from nmt.translation.parts import check_part
from nmt.translation.reporting import warn
from nmt.translation.stages import Stage
from nmt.translation.translator import Translator

if TYPE_CHECKING:
    from nmt.translation.devices import DeviceTranslator

Notice = Callable[[str], None]
"""Reports a message to the user."""


def stages_of(options: TranslatorOptions, models: Models | None = None) -> tuple[Stage, ...]:
    """The stages whose keys are set, in the order in which lines pass through them.

    The modules of other stages are not even imported.
    """
    models = models or find_models(options.run)
    direction = models.direction(options)
    limits = limits_for(models.descriptions, options.split, direction)
    entries = entries_of(StageEntry).values()
    stages = []
    for entry in sorted(entries, key=lambda entry: entry.order):
        if is_wanted(entry, options) or can_judge(entry, options, models):
            stages.append(entry.load()(options, models.tokenizer, limits))
    return tuple(stages)


def can_judge(entry: StageEntry, options: TranslatorOptions, models: Models) -> bool:
    """Whether a stage can add the probabilities that a command returns."""
    # An ensemble is another model than the one whose file this is.
    if not (entry.judges and options.judged) or len(models.folders) > 1:
        return False
    return (models.folders[0] / entry.file).is_file()


def needs_scores(options: TranslatorOptions) -> bool:
    """Whether the output, or a stage, needs log probabilities."""
    judges = [entry for entry in entries_of(StageEntry).values() if entry.judges]
    return options.results != "text" or any(is_wanted(entry, options) for entry in judges)


def automatic_engines(precision: str) -> list[EngineEntry]:
    """The engines that `engine=auto` may choose, best first.

    They are the engines of plugins whose library is installed, then torch.
    """
    of_plugins = []
    of_torch = []
    for entry in entries_of(EngineEntry).values():
        if precision not in entry.precisions:
            continue
        # `find_spec` looks for the library without importing it.
        if entry.why_not and find_spec(entry.module):
            of_plugins.append(entry)
        if entry.name == "torch":
            of_torch.append(entry)
    return of_plugins + of_torch


def engine_options(options: TranslatorOptions, models: Models) -> search.EngineOptions:
    compute = options.compute
    return search.EngineOptions(
        decode=expected_search(options.decode, models.descriptions[0]),
        device=compute.device,
        precision=compute.precision,
        threads=compute.threads,
        scores=needs_scores(options),
        target_prefix=options.target_prefix,
    )


def with_engine(
    options: TranslatorOptions,
    notice: Notice,
    models: Models | None = None,
) -> TranslatorOptions:
    """Replace engine=auto with the first suitable engine.

    If several are available, a notice names the choice.
    """
    compute = options.compute
    if compute.engine != "auto":
        return options
    engines = automatic_engines(compute.precision)
    if not engines:
        raise NMTError(
            f"precision={compute.precision}: no installed engine supports it; see the key engine"
        )
    # torch, which is last, unless it lacks the precision: int8 leaves only CTranslate2.
    engine = engines[-1]
    # Several devices are GPUs, for which torch is the engine.
    if len(engines) > 1 and compute.devices == 1:
        models = models or find_models(options.run)
        problems = [why_unsuitable(entry, options, models) for entry in engines[:-1]]
        if "" in problems:
            engine = engines[problems.index("")]
        reason = f" ({problems[0]})" if problems[0] else ""
        notice(f"engine={engine.name}{reason}")
    return replace(options, compute=replace(compute, engine=engine.name))


def why_unsuitable(entry: EngineEntry, options: TranslatorOptions, models: Models) -> str:
    """Why `engine=auto` does not choose an engine; empty if it does."""
    assert entry.why_not
    # Imported only now: the check may load a library that an explicit engine=torch never needs.
    why_not = import_attribute(entry.why_not)
    problem: str = why_not(models.folders, engine_options(options, models))
    if problem:
        return problem
    # A line may have more tokens than the engine has positions.
    return "split=never" if options.split == "never" else ""


def load_translator(options: TranslatorOptions, notice: Notice) -> Translator:
    """Load a translator for one model or an ensemble."""
    models = find_models(options.run)
    prefix = tag_of_languages(options, models) + options.source_prefix
    stages = stages_of(options, models)
    for stage in stages:
        for words in stage.notices:
            notice(words)
    options = with_engine(options, notice, models)
    # Weights come last, because loading them takes longest and everything else may still fail.
    load = entries_of(EngineEntry)[options.compute.engine].load()
    engine = load(models.folders, engine_options(options, models), notice)
    direction = models.direction(options)
    limits = limits_for(models.descriptions, options.split, direction)
    targets = languages(models.tokenizer)
    # Models that need the tags of both languages refuse a line without them, which says enough.
    if targets and not (prefix or options.has_tags or models.tokenizer.has_target_tags):
        notice(advice_on_targets(targets))
    return Translator(
        engine,
        models.tokenizer,
        limits_of_engine(limits, engine.longest),
        source_prefix=prefix,
        direction=direction,
        target_prefix=options.target_prefix,
        details=options.results == "tokens",
        stages=stages,
        ahead=engine.ahead,
        options=options,
        models=models,
    )


def in_languages(translator: Translator, options: TranslatorOptions) -> Translator:
    """A translator with the languages that other options name, which shares the weights.

    Raises NMTError if the model lacks one of them. The stages are made again.
    """
    models = translator.models
    assert models
    direction = models.direction(options)
    limits = replace(translator.limits, language=direction.source, target=direction.target)
    return replace(
        translator,
        source_prefix=tag_of_languages(options, models) + options.source_prefix,
        direction=direction,
        limits=limits,
        # A glossary's terms have forms that depend on the languages.
        stages=stages_of(options, models),
        options=options,
    )


def advice_on_targets(targets: list[str]) -> str:
    """The message for a command that names no target language to a model with several."""
    into = shown(", ".join(targets))
    return (
        f"the model translates into {into}: for lines without a tag, pass a target such as "
        f"target={targets[0]}"
    )


def limits_of_engine(limits: Limits, longest: int | None) -> Limits:
    """The limits with an engine that reads at most `longest` tokens with the end symbol."""
    if not limits.split or longest is None:
        return limits
    # One position is taken by the end symbol, which `longest` does not count.
    if limits.longest:
        return replace(limits, longest=min(limits.longest, longest - 1))
    return replace(limits, longest=longest - 1)


def open_translator(config: JobConfig, stack: ExitStack) -> "Translator | DeviceTranslator":
    """A job's translator, for one or more devices.

    Closing `stack` stops their processes. Raises NMTError if there is no input.
    """
    # Before loading, which takes long.
    if config.input != "-" and not Path(config.input).exists():
        raise NMTError(f"{config.input}: No such file or directory")
    check_part(config)
    if config.translator.compute.devices == 1:
        return load_translator(config.translator, warn)
    from nmt.translation.devices import on_devices  # it imports the modules for processes

    return stack.enter_context(on_devices(config))
