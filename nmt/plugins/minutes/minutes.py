"""`nmt train minutes=30`: choose the model, batches, learning rate and updates for a corpus, machine and time limit.

When a run begins, short trials measure speed and memory; nmt discards their models. config.yaml records the settings,
so the run is then as reproducible as any other. The optimizer, learning rate and dropout worked best for the quickstart
(docs/results.md); the other constants are first guesses.
"""

import gc
import os
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from nmt.commands import compose
from nmt.config import BatchingConfig, ExperimentConfig, ModelConfig, build, is_out_of_memory, require
from nmt.data import PreparedCorpus, open_corpus
from nmt.kernels import forget_old_kernels, keep_freed_memory
from nmt.model import described
from nmt.plugins.minutes.plugin import SETS
from nmt.plugins.minutes.trials import Pace, measured_pace
from nmt.registry import entries_of
from nmt.training import check_configuration, is_finished, list_checkpoints, make_trainer, read_config

CHOOSING_SHARE = 0.05  # maximum share of the time for trials
MINUTES = "-[0-9][0-9.e+]*min"  # the suffix of a run's name
SECONDS_BESIDE = 30  # seconds to load, validate four times and score the averaged model (small model, two cores)
LEARNING_SHARE = 0.94  # share of the remaining time for training; the rest is a reserve for validating larger models
TOKENS_PER_PARAMETER = 3.0  # target tokens that a larger model must see per parameter to be worth its size
UPDATES = 10_000  # number of updates to aim for: many small updates train a better model than a few large ones
TOKENS_PER_UPDATE = (700, 25_000)  # minimum and maximum
TOKENS_PER_WIDTH = 6  # minimum update size / d_model: below it, Muon's matrix products cost more than the layers'
HIGHEST_RATE = 0.5  # peak learning rate, in units of 1 / d_model
DROPOUT = ((12, 0.05), (24, 0.1), (60, 0.2), (np.inf, 0.3))  # (maximum passes over the corpus, dropout)
FEWEST_UPDATES = 100
MICRO_BATCH = 5000  # tokens on a CPU, where larger micro-batches are no faster


def sizes() -> Iterator[ModelConfig]:
    for name in ("tiny", "small", "base", "big"):
        yield replace(compose("train", [f"model={name}"]).model, norm="pre")


def begun(run: Path) -> dict[float, Path]:
    """Minutes -> folder, for the runs that minutes= began under this run's name."""
    name = re.escape(re.sub(f"{MINUTES}$", "", run.name))  # mine-30min -> mine
    beside = [file.parent for file in run.parent.glob("*/config.yaml")]
    runs = [folder for folder in beside if re.fullmatch(f"{name}({MINUTES})?", folder.name)]
    trees = {folder: read_config(folder) for folder in runs if list_checkpoints(folder) or (folder / "model").exists()}
    minutes = {tree.get("minutes"): folder for folder, tree in trees.items()}
    return {number: folder for number, folder in minutes.items() if isinstance(number, int | float)}


def seconds_of(config: ExperimentConfig) -> float:
    """The time for the run of this configuration, which may continue a shorter one."""
    assert config.minutes is not None
    return 60 * (config.minutes - max((x for x in begun(Path(config.run)) if x < config.minutes), default=0.0))


def settle(config: ExperimentConfig, console: Console) -> ExperimentConfig:
    """Start a run, resume the run that has these minutes, or continue the longest run in a new folder next to it."""
    assert config.minutes is not None
    minutes, corpus = config.minutes, open_corpus(Path(config.prepared))
    models = sizes() if "model" in config.minutes_settles else [config.model]
    run, runs, updates = Path(config.run), begun(Path(config.run)), 0
    if minutes in runs:
        return as_begun(config, runs[minutes])
    if spent := max(runs, default=0.0):
        before, other = runs[spent], "pass name=OTHER for a new run"
        advice = f"pass more to continue it (without init=), or {other}"
        more = spent < minutes and config.init is None
        require(more, f"{before} has already trained for minutes={spent:g}: {advice}")
        config = as_begun(config, before)
        check_configuration(before, config)
        updates, models = config.trainer.max_steps, [config.model]
        advice = f"is not finished, or its corpus has changed: pass minutes={spent:g} to finish it, or {other}"
        require(is_finished(before, 0, corpus.manifest.fingerprint), f"{before} {advice}")
        name = f"{re.sub(f'{MINUTES}$', '', run.name)}-{minutes:g}min"
        config = replace(config, run=str(run.with_name(name)), init=str(before))
        length = f"for {minutes - spent:g} minutes in {config.run}"
        console.print(f"continuing the model of {before} from its update {updates:,} {length}; {other}")
    with console.status("trying models and batches for a few seconds"):
        config = choose(config, corpus, models, seconds_of(config))
    if config.init is not None:  # a high learning rate in a short run would undo what the model has learned
        share = min(config.trainer.max_steps / max(updates, 1), 1)
        adapting = compose("train", ["optim=adapt"]).optim.learning_rate
        rate = share * HIGHEST_RATE / config.model.d_model if spent else adapting
        config = with_groups(config, optim=replace(config.optim, learning_rate=rate))
    gc.collect()  # a trial's model and trainer refer to each other and would otherwise occupy device memory
    model = config.model
    console.print(
        f"minutes={minutes:g}: model={model.name} (d_model {model.d_model}, {model.encoder_layers} + "
        f"{model.decoder_layers} layers, dropout {model.dropout}), {config.trainer.max_steps:,} updates of "
        f"{config.batching.tokens_per_update:,} tokens; saved in {config.run}/config.yaml"
    )
    return config


def choose(
    config: ExperimentConfig, corpus: PreparedCorpus, models: Iterable[ModelConfig], limit: float
) -> ExperimentConfig:
    """Set the largest model that is worth its size, batches and updates; `limit` is in seconds."""
    assert config.minutes is not None
    setting, begin, settled = f"minutes={config.minutes:g}", time.monotonic(), None
    alone = int(os.environ.get("WORLD_SIZE", 1)) == 1  # otherwise, processes could get different trial results
    require(alone, f"{setting} needs a single process: start the run with one process first")
    keep_freed_memory()  # trials measure what training will do
    forget_old_kernels()
    end, choosing, tried, tokens = begin + limit, CHOOSING_SHARE * limit, begin, 0.0
    for model in models:
        before, tried = tried, time.monotonic()
        parameters = described(model, corpus.manifest.vocabulary_size).parameters()
        needed = TOKENS_PER_PARAMETER * sum(parameter.numel() for parameter in parameters)
        # A larger model sees fewer tokens than the last in the same time, and its trial takes longer.
        if settled and (tokens < needed or 2 * tried - before - begin > choosing):
            break
        candidate = with_batches(with_groups(config, model=model), corpus, tokens=0)
        try:
            for _ in range(2):  # a second time if the update size changes, because speed depends on it
                pace, batching = measured_pace(candidate, corpus, choosing / 8), candidate.batching
                tokens = updates_until(end, pace) * pace.tokens
                candidate = with_batches(candidate, corpus, tokens * 60 * config.minutes / limit)
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
    updates, beside = updates_until(end, pace), SECONDS_BESIDE + time.monotonic() - begin
    more = (FEWEST_UPDATES * pace.seconds / LEARNING_SHARE + beside - limit) // 60 + 1
    cost = f"an update takes {pace.seconds:.2g} seconds, and trials and validation take {beside:.0f}"
    few = f"that leaves fewer than {FEWEST_UPDATES} updates; allow {more:.0f} minutes more or close other programs"
    require(updates >= FEWEST_UPDATES, f"{setting}: {cost}: {few}")
    return with_updates(config, updates)


def updates_until(end: float, pace: Pace) -> int:
    return max(1, int(LEARNING_SHARE * (end - time.monotonic() - SECONDS_BESIDE) / pace.seconds))


def as_begun(config: ExperimentConfig, run: Path) -> ExperimentConfig:
    """The configuration with the settings of a run that minutes= began."""
    saved, where = read_config(run), f"{run}/config.yaml"
    types = {name: type(getattr(config, name)) for name in config.minutes_settles}
    groups = {name: build(kind, saved.get(name, {}), where, f"{name}.") for name, kind in types.items()}
    for name in groups.keys() & SETS.keys():
        values = {key: getattr(groups[name], key) for key in SETS[name]}
        groups[name] = replace(getattr(config, name), **values)
    config = with_max_steps(config, saved.get("trainer", {}).get("max_steps"))
    return replace(config, run=str(run), init=config.init or saved.get("init"), **groups)


def with_groups(config: ExperimentConfig, **groups: Any) -> ExperimentConfig:
    """Replace only the groups that minutes= settles."""
    return replace(config, **{name: group for name, group in groups.items() if name in config.minutes_settles})


def with_batches(config: ExperimentConfig, corpus: PreparedCorpus, tokens: float) -> ExperimentConfig:
    """Set the optimizer, batch sizes and dropout for training on `tokens` target tokens."""
    require("muon" in entries_of("optimizer"), "minutes= trains with the muon optimizer, which is not installed")
    trainer, split = make_trainer(config), corpus.split("train")
    devices, longest = trainer.world_size, int(max(split.source_lengths.max(), split.target_lengths.max()))
    fewest = max(longest, TOKENS_PER_UPDATE[0], TOKENS_PER_WIDTH * config.model.d_model)
    size = int(np.clip(tokens / UPDATES, devices * fewest, devices * max(fewest, TOKENS_PER_UPDATE[1])))
    largest = max(longest, MICRO_BATCH) if trainer.strategy.root_device.type == "cpu" else size
    micro_batches = devices * max(1, size // (devices * largest))  # each has room for the longest sentence
    passes = tokens / int(split.target_lengths.sum(dtype=np.int64))
    dropout = next(share for most, share in DROPOUT if passes <= most)
    return with_groups(
        config,
        model=replace(config.model, dropout=dropout),
        optim=replace(config.optim, optimizer=config.optim.optimizer if config.init else "muon"),
        batching=BatchingConfig(tokens_per_update=size, micro_batches=micro_batches),
    )


def with_max_steps(config: ExperimentConfig, updates: int) -> ExperimentConfig:
    """Set the number of updates, and the end of a schedule that ends with them."""
    ends = config.optim.decay_steps == config.trainer.max_steps
    optim = replace(config.optim, decay_steps=updates) if ends else config.optim
    return replace(config, optim=optim, trainer=replace(config.trainer, max_steps=updates))


def with_updates(config: ExperimentConfig, updates: int) -> ExperimentConfig:
    """Set the number of updates, a learning rate that falls to 0, and when to save and validate."""
    warmup, rate = -(-updates // 12), HIGHEST_RATE / config.model.d_model
    return with_groups(
        with_max_steps(config, updates),
        optim=replace(config.optim, schedule="linear", learning_rate=rate, warmup=warmup, decay_steps=max(updates, 2)),
        # Few checkpoints: writing them takes time, and as the rate falls to 0, averaging more of them does not help.
        checkpoints=replace(config.checkpoints, every_steps=-(-updates // 25), keep=2),
        validation=replace(config.validation, every_steps=-(-updates // 4)),
    )
