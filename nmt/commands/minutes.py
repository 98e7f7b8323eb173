"""`nmt train minutes=30`: choose the model, batches, learning rate and updates for a corpus, machine and time limit.

When a run begins, short trials measure speed and memory; nmt discards their models. config.yaml
records the settings, so the run is then as reproducible as any other. While the run trains, the
number of updates follows the speed of the machine (replan.py). The optimizer, learning rate and
dropout worked best for the quickstart (docs/results.md); the other constants are first guesses.
"""

import gc
import os
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from nmt import commands, kernels, training
from nmt.config import (
    ENDING,
    SETS,
    BatchingConfig,
    ExperimentConfig,
    ModelConfig,
    NMTError,
    OptimConfig,
    build,
    require,
)
from nmt.data import PreparedCorpus, open_corpus
from nmt.errors import is_out_of_memory
from nmt.model import described
from nmt.training import (
    TOKENS_PER_PARAMETER,
    Pace,
    Replan,
    measured_pace,
    time_limit,
    with_max_steps,
)

CHOOSING_SHARE = 0.05  # maximum share of the time for trials
VALIDATIONS = 4  # during training, if the speed does not change
UPDATES = 10_000  # number of updates to aim for: many small updates train a better model than a few large ones
TOKENS_PER_UPDATE = (700, 25_000)  # minimum and maximum
TOKENS_PER_WIDTH = (
    6  # minimum update size / d_model: below it, Muon's matrix products cost more than the layers'
)
HIGHEST_RATE = 0.5  # peak learning rate of long runs, in units of 1 / d_model
SHORT_RUN = 1500  # up to this many updates, the rate is doubled; beyond, it falls with the square root of their number
DECAY = 8.0  # peak learning rate x weight decay x updates
DROPOUT = (
    (12, 0.05),
    (24, 0.1),
    (60, 0.2),
    (np.inf, 0.3),
)  # (maximum passes over the corpus, dropout)
FEWEST_UPDATES = 10  # with fewer, the speed and the time of a validation cannot be measured
MICRO_BATCH = 5000  # tokens on a CPU, where larger micro-batches are no faster


def sizes(config: ExperimentConfig) -> Iterator[ModelConfig]:
    """The models to choose from, with the keys that the user sets."""
    problem: NMTError | None = None
    is_possible = False
    for name in ("tiny", "small", "base", "big"):
        model = replace(commands.compose("train", [f"model={name}"]).model, norm="pre")
        try:
            model = with_kept_keys(config, "model", model)
        except NMTError as error:  # for example, model.heads must divide model.d_model
            problem = error
            continue
        is_possible = True
        yield model
    if problem and not is_possible:
        raise problem


def settle(
    config: ExperimentConfig, console: Console, begin: float | None = None
) -> ExperimentConfig:
    """Start a run, resume the run that has these minutes, or continue the longest run in a new folder next to it.

    `begin` is when the command began, on the clock of time.monotonic(); None: now.
    """
    assert config.minutes is not None
    is_max_time = config.trainer.max_time is not None and not config.minutes_settles
    # trainer.max_time limits the training alone.
    Replan.started = time.monotonic() if begin is None or is_max_time else begin
    corpus = open_corpus(Path(config.prepared))
    runs = time_limit.begun(Path(config.run))
    if config.minutes in runs:
        run = runs[config.minutes]
        console.print(f"{run} was started with {setting(config)} and keeps its settings")
        return as_begun(config, run)
    spent = max(runs, default=0.0)
    updates = 0
    models: Iterable[ModelConfig] = (
        sizes(config) if "model" in config.minutes_settles else [config.model]
    )
    check_time(config)
    if spent:
        config = continued(config, corpus, runs, console)
        updates = training.read_config(Path(config.init or ""))["trainer"]["max_steps"]
        models = [config.model]
    with console.status("trying models and batches for a few seconds"):
        config = choose(config, corpus, models, time_limit.seconds_of(config))
    if (
        config.init is not None
    ):  # a high learning rate in a short run would undo what the model has learned
        share = min(config.trainer.max_steps / max(updates, 1), 1)
        width = config.model.d_model
        rate = share * HIGHEST_RATE / width if spent else adapting_rate(width)
        config = with_groups(
            config, optim=replace(config.optim, learning_rate=rate, weight_decay=0.0)
        )
    gc.collect()  # a trial's model and trainer refer to each other and would otherwise occupy device memory
    model = config.model
    kept = (
        f"; it keeps {' '.join(config.minutes_keeps)} as you set them"
        if config.minutes_keeps
        else ""
    )
    console.print(
        f"{setting(config)}: model={model.name} (d_model {model.d_model}, {model.encoder_layers} + "
        f"{model.decoder_layers} layers, dropout {model.dropout}), updates of "
        f"{config.batching.tokens_per_update:,} tokens, whose number follows the speed of this machine; "
        f"saved in {config.run}/config.yaml{kept}"
    )
    return config


def check_time(config: ExperimentConfig) -> None:
    """Raise NMTError, before the trials, if the time does not even suffice for validation."""
    limit = time_limit.seconds_of(config)
    beside = seconds_beside(limit)
    if beside >= limit:
        enough = ceil(2 * beside / 60)
        raise NMTError(
            f"{setting(config)}: starting, validation and the final score take {beside:.0f} seconds; "
            f"allow {enough} minutes"
        )


def setting(config: ExperimentConfig) -> str:
    """The option that limits the time, as the user knows it."""
    if config.trainer.max_time is not None and not config.minutes_settles:
        return f"trainer.max_time={config.trainer.max_time}"
    return f"minutes={config.minutes:g}"


def continued(
    config: ExperimentConfig,
    corpus: PreparedCorpus,
    runs: dict[float, Path],
    console: Console,
) -> ExperimentConfig:
    """The configuration that continues the longest of these runs in a new folder next to it."""
    minutes = config.minutes
    assert minutes is not None
    spent = max(runs)
    before = runs[spent]
    other = "pass name=OTHER for a new run"
    advice = f"pass more to continue it (without init=), or {other}"
    is_more = spent < minutes and config.init is None
    require(is_more, f"{before} was started with minutes={spent:g}: {advice}")
    config = as_begun(config, before)
    training.check_configuration(before, config)
    is_finished = training.is_finished(before, 0, corpus.manifest.fingerprint)
    advice = f"is not finished, or its corpus has changed: pass minutes={spent:g} to finish it, or {other}"
    require(is_finished, f"{before} {advice}")
    run = Path(config.run)
    name = f"{re.sub(f'{time_limit.MINUTES}$', '', run.name)}-{minutes:g}min"
    config = replace(config, run=str(run.with_name(name)), init=str(before))
    length = f"for {minutes - spent:g} minutes in {config.run}"
    updates = config.trainer.max_steps
    console.print(f"continuing the model of {before} from its update {updates:,} {length}; {other}")
    return config


def adapting_rate(d_model: int) -> float:
    """The peak learning rate of experiment=adapt for a model of this width."""
    words = ["optim=adapt", f"model.d_model={d_model}", "model.heads=1", "model.positions=learned"]
    rate: float = commands.compose("train", words).optim.learning_rate
    return rate


def choose(
    config: ExperimentConfig, corpus: PreparedCorpus, models: Iterable[ModelConfig], limit: float
) -> ExperimentConfig:
    """Set the largest model that is worth its size, batches and updates; `limit` is in seconds."""
    minutes = config.minutes
    assert minutes is not None
    is_alone = (
        int(os.environ.get("WORLD_SIZE", 1)) == 1
    )  # otherwise, processes could get different trial results
    require(
        is_alone, f"{setting(config)} needs a single process: start the run with one process first"
    )
    kernels.prepare()  # trials measure what training will do
    kernels.forget_old_kernels()
    settled: tuple[ExperimentConfig, Pace] | None = None
    begin = time.monotonic()
    choosing = CHOOSING_SHARE * limit
    tried = begin
    tokens = 0.0
    for model in models:
        before = tried
        tried = time.monotonic()
        parameters = described(model, corpus.manifest.vocabulary_size).parameters()
        needed = TOKENS_PER_PARAMETER * sum(parameter.numel() for parameter in parameters)
        # A larger model sees fewer tokens than the last in the same time, and its trial takes longer.
        if settled and (tokens < needed or 2 * tried - before - begin > choosing):
            break
        candidate = with_batches(with_groups(config, model=model), corpus, tokens=0)
        try:
            for _ in range(
                2
            ):  # a second time if the update size changes, because speed depends on it
                pace = measured_pace(candidate, corpus, choosing / 8)
                batching = candidate.batching
                tokens = updates_that_fit(limit, pace) * pace.tokens
                candidate = with_batches(candidate, corpus, tokens * 60 * minutes / limit)
                if candidate.batching == batching:
                    break
        except (RuntimeError, MemoryError) as error:
            if settled and is_out_of_memory(error):
                break
            raise
        if settled and tokens < needed:
            break
        settled = candidate, pace
    assert settled
    config, pace = settled
    updates = updates_that_fit(limit, pace)
    if updates < FEWEST_UPDATES:
        raise NMTError(too_few(config, corpus, pace, limit))
    return with_updates(config, updates)


def seconds_beside(limit: float) -> float:
    """The time that a run needs besides its updates: until now, for its validations and at its end."""
    validations = VALIDATIONS - 1 + time_limit.FINAL_VALIDATIONS
    spent = time.monotonic() - Replan.started
    return spent + validations * time_limit.VALIDATION_SECONDS + (1 - time_limit.AIM) * limit


def updates_that_fit(limit: float, pace: Pace) -> int:
    return max(1, int((limit - seconds_beside(limit)) / pace.seconds))


def too_few(config: ExperimentConfig, corpus: PreparedCorpus, pace: Pace, limit: float) -> str:
    """The message that the time does not suffice for a model."""
    assert config.minutes is not None
    beside = seconds_beside(limit)
    enough = config.minutes + (FEWEST_UPDATES * pace.seconds + beside - limit) / 60
    tokens = corpus.split("train").target_lengths.sum()
    passes = updates_that_fit(limit, pace) * pace.tokens / tokens
    size = f"{config.batching.tokens_per_update:,} tokens (the longest sentence has {longest_sentence(corpus):,})"
    return (
        f"{setting(config)}: an update of {size} takes {pace.seconds:.2g} seconds, and trials and validation take "
        f"{beside:.0f}: that leaves fewer than {FEWEST_UPDATES} updates ({passes:.1g} passes over the corpus); "
        f"allow {ceil(enough)} minutes or close other programs"
    )


def as_begun(config: ExperimentConfig, run: Path) -> ExperimentConfig:
    """The configuration with the settings of a run that minutes= began."""
    saved = training.read_config(run)
    where = f"{run}/config.yaml"
    updates = saved.get("trainer", {}).get("max_steps")
    begun_optim = build(OptimConfig, saved["optim"], where, "optim.")
    optim = config.optim
    if optim.schedule in ENDING and optim.end == config.trainer.max_steps:
        optim = replace(
            optim, decay_steps=begun_optim.decay_steps, decay_changes=begun_optim.decay_changes
        )
    config = replace(config, optim=optim, trainer=replace(config.trainer, max_steps=updates))
    groups: dict[str, Any] = {}
    for name in config.minutes_settles:
        before: Any = getattr(config, name)
        group: Any = build(type(before), saved.get(name, {}), where, f"{name}.")
        if name in SETS:
            group = replace(before, **{key: getattr(group, key) for key in SETS[name]})
        groups[name] = group
    config = with_groups(config, **groups)
    return replace(config, run=str(run), init=config.init or saved.get("init"))


def kept_keys(config: ExperimentConfig, group: str) -> dict[str, Any]:
    """The keys of a group that the user sets, and their values."""
    values = getattr(config, group)
    names = {item.name for item in fields(values)}
    keys = [
        key.removeprefix(f"{group}.") for key in config.minutes_keeps if key.startswith(f"{group}.")
    ]
    return {key: getattr(values, key) for key in keys if key in names}


def with_kept_keys(config: ExperimentConfig, group: str, values: Any) -> Any:
    """A group with these values, except for the keys that the user sets."""
    kept = kept_keys(config, group)
    if group == "model" and {"d_model", "heads"} & kept.keys():
        kept = {"d_k": None, "d_v": None, **kept}  # they follow from the width and the heads
    return replace(values, **kept)


def with_groups(config: ExperimentConfig, **groups: Any) -> ExperimentConfig:
    """Replace only the groups that minutes= settles, and keep the keys that the user sets."""
    settled = {name: group for name, group in groups.items() if name in config.minutes_settles}
    return replace(
        config, **{name: with_kept_keys(config, name, group) for name, group in settled.items()}
    )


def longest_sentence(corpus: PreparedCorpus) -> int:
    split = corpus.split("train")
    return max(split.source_lengths.max(), split.target_lengths.max())


def with_batches(
    config: ExperimentConfig, corpus: PreparedCorpus, tokens: float
) -> ExperimentConfig:
    """Set the optimizer, batch sizes and dropout for training on `tokens` target tokens."""
    trainer = training.make_trainer(config)
    devices = trainer.world_size
    longest = longest_sentence(corpus)
    kept = kept_keys(config, "batching")
    fewest = max(longest, TOKENS_PER_UPDATE[0], TOKENS_PER_WIDTH * config.model.d_model)
    size = int(
        np.clip(tokens / UPDATES, devices * fewest, devices * max(fewest, TOKENS_PER_UPDATE[1]))
    )
    size = kept.get("tokens_per_update", size)
    largest = max(longest, MICRO_BATCH) if trainer.strategy.root_device.type == "cpu" else size
    micro_batches = devices * max(
        1, size // (devices * largest)
    )  # each has room for the longest sentence
    micro_batches = kept.get("micro_batches", micro_batches)
    passes = tokens / corpus.split("train").target_lengths.sum()
    dropout = next(share for most, share in DROPOUT if passes <= most)
    return with_groups(
        config,
        model=replace(config.model, dropout=dropout),
        optim=replace(config.optim, optimizer=config.optim.optimizer if config.init else "muon"),
        batching=BatchingConfig(tokens_per_update=size, micro_batches=micro_batches),
    )


def with_updates(config: ExperimentConfig, updates: int) -> ExperimentConfig:
    """Set the number of updates, a learning rate that falls to 0, and when to save and validate."""
    if "optim" not in config.minutes_settles:
        config = with_max_steps(config, updates)
    config = replace(config, trainer=replace(config.trainer, max_steps=updates))
    return with_groups(
        config,
        optim=optim_for(config, updates),
        # Few checkpoints: writing them takes time, and as the rate falls to 0, averaging more of them does not help.
        checkpoints=replace(config.checkpoints, every_steps=ceil(updates / 25), keep=2),
        validation=replace(config.validation, every_steps=ceil(updates / VALIDATIONS)),
    )


def optim_for(config: ExperimentConfig, updates: int) -> OptimConfig:
    """The schedule for a number of updates, with the keys that the user sets."""
    kept = kept_keys(config, "optim")
    schedule = kept.get("schedule", "linear")
    factor = min(2.0, max(1.0, 2 * (SHORT_RUN / updates) ** 0.5))
    rate = kept.get("learning_rate") or HIGHEST_RATE * factor / config.model.d_model
    decay_steps = kept.get("decay_steps", max(updates, 2) if schedule in ENDING else None)
    return replace(
        config.optim,
        schedule=schedule,
        learning_rate=kept.get("learning_rate", rate),
        weight_decay=kept.get("weight_decay", DECAY / (rate * updates)),
        warmup=kept.get("warmup", ceil(updates / 12)),
        decay_steps=decay_steps,
        decay_changes=None,
    )
