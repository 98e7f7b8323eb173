"""minutes=30: the model, the batches, the learning rate and the updates that suit a corpus, this machine and this time.

They are settled when a run begins, by short trainings of models that are thrown away. config.yaml has them, and from
then on the run is as exact as any other. Optimizer, rate and dropout are what was best for the quickstart
(docs/benchmarks.md); the other constants are a first choice, from the recipes' settings.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from lightning.fabric.utilities import move_data_to_device
from lightning.pytorch.callbacks import Timer
from rich.console import Console

from nmt.commands import compose
from nmt.config import BatchingConfig, ExperimentConfig, ModelConfig, build, shown
from nmt.data import PreparedCorpus, UpdateDataModule, open_corpus
from nmt.errors import NMTError, is_out_of_memory
from nmt.training import Trial, make_trainer, noam, read_config, require_one_process, settle_precision, synchronize

SIZES = ("tiny", "small", "base", "big")
TIMED_SECONDS, WARM_UP = 4.0, 2
"""Seconds of training with each size, after so many updates that are not timed."""
CHOOSING_SHARE = 0.2
"""Of the time; then no larger size is tried."""
SECONDS_BESIDE = 30
"""For loading, four validations, and the score of the average, of a small model on two cores."""
LEARNING_SHARE = 0.94
"""Of the time that is left then; the rest is for the same with larger models."""
TOKENS_PER_PARAMETER = 3.0
"""A larger model pays where it sees so many target tokens for each of its parameters."""
UPDATES = 10_000
"""So many small updates learn more than few large ones, but no smaller ones than TOKENS_PER_UPDATE."""
TOKENS_PER_UPDATE = (700, 25_000)
TOKENS_PER_WIDTH = 6
"""No smaller updates than this times d_model, or Muon's own products would cost more than those of the layers."""
HIGHEST_RATE = 0.5
"""Times d_model^-1."""
DROPOUT = ((12, 0.05), (24, 0.1), (60, 0.2), (np.inf, 0.3))
"""Passes over the corpus, and the dropout for up to so many."""
FEWEST_UPDATES = 100
MICRO_BATCH = 5000
"""Tokens of a micro-batch on a processor, where larger ones are no faster; at most twice as many."""


class Pace(NamedTuple):
    """Seconds for an update, its target tokens (padding not counted), and the model's parameters."""

    seconds: float
    tokens: float
    parameters: int


def settle(config: ExperimentConfig, console: Console) -> ExperimentConfig:
    """The configuration with what suits the time that was given, as minutes= or as trainer.max_time."""
    if config.trainer.precision == "auto":  # the models are tried in it
        config = settle_precision(config, console)
    corpus, begins = open_corpus(Path(config.prepared)), not (Path(config.run) / "config.yaml").exists()
    if config.minutes is None:
        with console.status("timing"):
            return settle_max_steps(config, corpus)
    sizes = [replace(compose("train", [f"model={name}"]).model, norm="pre") for name in SIZES]
    if begins:
        console.print(f"minutes={config.minutes:g}: choosing a model and its batches by short trainings")
    with console.status("choosing"):
        config = settle_minutes(config, corpus, sizes)
    if begins:
        model = config.model
        console.print(
            f"minutes={config.minutes:g}: model={model.name} (d_model {model.d_model}, {model.encoder_layers} + "
            f"{model.decoder_layers} layers, dropout {model.dropout}), {config.trainer.max_steps:,} updates of "
            f"{config.batching.tokens_per_update:,} tokens; {config.run}/config.yaml has them"
        )
    return config


def settle_minutes(config: ExperimentConfig, corpus: PreparedCorpus, sizes: Sequence[ModelConfig]) -> ExperimentConfig:
    """The configuration for `config.minutes`; `sizes` are the models to choose from, smallest first."""
    assert config.minutes is not None
    if (Path(config.run) / "config.yaml").exists():
        return as_begun(config)
    require_one_process(f"minutes={config.minutes:g}", "trainer.max_steps")
    begin, settled = time.monotonic(), None
    end = begin + 60 * config.minutes
    for model in sizes if "model" in config.minutes_settles else [config.model]:
        candidate = with_batches(with_groups(config, model=model), corpus, tokens=0)
        try:
            # Twice, because the speed depends on the size of an update, which depends on the speed.
            for _ in range(2):
                pace = measured(candidate, corpus)
                tokens = updates_until(end, pace) * pace.tokens
                candidate = with_batches(candidate, corpus, tokens)
        except (RuntimeError, MemoryError) as error:
            if settled and is_out_of_memory(error):
                break
            raise
        if settled and tokens < TOKENS_PER_PARAMETER * pace.parameters:
            break
        settled = candidate, pace
        if time.monotonic() - begin > CHOOSING_SHARE * (end - begin):
            break
    assert settled
    updates = enough_updates(f"minutes={config.minutes:g}", begin, end, settled[1])
    return with_updates(settled[0], updates)


def updates_until(end: float, pace: Pace) -> int:
    return max(1, int(LEARNING_SHARE * (end - time.monotonic() - SECONDS_BESIDE) / pace.seconds))


def enough_updates(setting: str, begin: float, end: float, pace: Pace) -> int:
    """The updates until `end`; NMTError where too few fit into the time of `setting`."""
    if (updates := updates_until(end, pace)) < FEWEST_UPDATES:
        raise NMTError(
            f"{setting}: at {pace.seconds:.2g} seconds for an update, after {time.monotonic() - begin:.0f} seconds of "
            f"trying and {SECONDS_BESIDE} for loading and validation, fewer than {FEWEST_UPDATES} updates are left, "
            "which learn nothing: pass more time, or end other programs"
        )
    return updates


def settle_max_steps(config: ExperimentConfig, corpus: PreparedCorpus) -> ExperimentConfig:
    """The configuration with as many updates as fit in `trainer.max_time`, an eighth of them for warm-up at most.

    The number of updates is measured when a run begins, and read from config.yaml when it resumes.
    """
    max_time, begin, run = config.trainer.max_time, time.monotonic(), Path(config.run)
    if (run / "config.yaml").exists():
        updates = read_config(run).get("trainer", {}).get("max_steps")
    else:
        require_one_process(f"trainer.max_time={max_time}", "trainer.max_steps")
        limit = Timer(max_time).time_remaining()
        assert limit is not None
        pace = measured(config, corpus)
        updates = enough_updates(f"trainer.max_time={max_time}", begin, begin + limit, pace)
    rate = config.optim.learning_rate or noam(config.optim.warmup, config.model.d_model, config.optim.warmup)
    optim = replace(config.optim, learning_rate=rate, warmup=min(config.optim.warmup, -(-updates // 8)))
    return replace(config, optim=optim, trainer=replace(config.trainer, max_steps=updates))


def as_begun(config: ExperimentConfig) -> ExperimentConfig:
    """The configuration with what was settled when its run began."""
    saved = read_config(Path(config.run))
    if saved.get("minutes") != config.minutes:
        raise NMTError(
            f"{config.run} began with minutes={shown(saved.get('minutes'))}, and its learning rate ends then: "
            "pass name=OTHER for a new run"
        )
    groups = {
        name: build(type(getattr(config, name)), saved.get(name, {}), f"{config.run}/config.yaml", f"{name}.")
        for name in config.minutes_settles
    }
    max_steps = saved.get("trainer", {}).get("max_steps")
    return with_groups(replace(config, trainer=replace(config.trainer, max_steps=max_steps)), **groups)


def with_groups(config: ExperimentConfig, **groups: Any) -> ExperimentConfig:
    """The configuration with those of the groups that minutes= settles."""
    return replace(config, **{name: group for name, group in groups.items() if name in config.minutes_settles})


def with_batches(config: ExperimentConfig, corpus: PreparedCorpus, tokens: float) -> ExperimentConfig:
    """Optimizer, batches, and the dropout of a settled model, for learning from so many target tokens."""
    split, trainer = corpus.split("train"), make_trainer(config)
    devices = trainer.world_size
    longest = int(max(split.source_lengths.max(), split.target_lengths.max()))
    fewest = max(longest, TOKENS_PER_UPDATE[0], TOKENS_PER_WIDTH * config.model.d_model)
    size = int(np.clip(tokens / UPDATES, devices * fewest, devices * max(fewest, TOKENS_PER_UPDATE[1])))
    largest = max(longest, MICRO_BATCH) if trainer.strategy.root_device.type == "cpu" else size
    micro_batches = devices * max(1, size // (devices * largest))  # none is too small for the longest sentence
    passes = tokens / int(split.target_lengths.sum(dtype=np.int64))
    dropout = next(share for most, share in DROPOUT if passes <= most)
    return with_groups(
        config,
        model=replace(config.model, dropout=dropout),
        optim=replace(config.optim, optimizer="adam" if config.trainer.strategy == "fsdp" else "muon"),
        batching=BatchingConfig(tokens_per_update=size, micro_batches=micro_batches),
    )


def with_updates(config: ExperimentConfig, updates: int) -> ExperimentConfig:
    """So many updates, with a learning rate that falls to 0 and an average of the last of them."""
    optim = replace(
        config.optim, schedule="linear", learning_rate=HIGHEST_RATE / config.model.d_model, decay_steps=None
    )
    return with_groups(
        replace(config, trainer=replace(config.trainer, max_steps=updates)),
        optim=replace(optim, warmup=-(-updates // 12), decay_steps=max(updates, 2)),
        # Few, because writing them takes time, too; at a rate that falls to 0, an average of many is no better.
        checkpoints=replace(config.checkpoints, every_steps=-(-updates // 25), keep=2),
        validation=replace(config.validation, every_steps=-(-updates // 4)),
    )


def measured(config: ExperimentConfig, corpus: PreparedCorpus) -> Pace:
    """Train a model for some seconds; the first updates, for which kernels and memory are made, do not count."""
    trainer, data = make_trainer(config), UpdateDataModule(corpus, config)
    trial = Trial(config, corpus.manifest.vocabulary_size, trainer)
    sizes, begin, seconds = list[int](), time.monotonic(), 0.0
    for number in count(-WARM_UP):
        if number == 0:
            begin = time.monotonic()
        planned = data.planner.update(number + WARM_UP)
        for micro_batch in planned:
            batch = move_data_to_device(data.batches.batch(micro_batch), trial.module.device)
            trainer.strategy.backward(trainer.strategy.training_step(batch, 0), None)  # type: ignore[arg-type]
        trial.optimizer.step()
        trial.optimizer.zero_grad()
        synchronize(trial.module.device)
        if number >= 0:
            sizes.append(planned[0].size.target_tokens)
            seconds = time.monotonic() - begin
        if seconds > TIMED_SECONDS:
            break
    parameters = sum(parameter.numel() for parameter in trial.module.parameters())
    # Here one process has done the work of all; on a processor, they share its cores.
    at_once = 1 if trainer.strategy.root_device.type == "cpu" else trainer.world_size
    return Pace(seconds / len(sizes) / at_once, sum(sizes) / len(sizes), parameters)
