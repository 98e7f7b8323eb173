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
from lightning import Trainer
from lightning.fabric.utilities import move_data_to_device
from lightning.pytorch.callbacks import Timer

from nmt.config import BatchingConfig, ExperimentConfig, ModelConfig, build, shown
from nmt.data import PreparedCorpus, UpdateDataModule, batch_of
from nmt.errors import NMTError, is_out_of_memory
from nmt.training.micro_batches import Trial
from nmt.training.peak_flops import synchronize
from nmt.training.processes import require_one_process
from nmt.training.run_folder import read_config
from nmt.training.schedule import noam
from nmt.training.trainer import make_trainer

TIMED_SECONDS = 4.0
"""Of training with each size."""
WARM_UP = 2
"""Updates."""
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
    """What a short training has shown."""

    seconds: float
    """For an update."""
    tokens: float
    """Target tokens in an update, padding not counted."""
    parameters: int


def settle_minutes(
    config: ExperimentConfig, run: Path, corpus: PreparedCorpus, sizes: Sequence[ModelConfig]
) -> ExperimentConfig:
    """The configuration for `config.minutes`: another number of updates, and the groups of `config.minutes_settles`.

    `sizes` are the models to choose from, smallest first. NMTError where the run was begun with another time.
    """
    assert config.minutes is not None
    if (run / "config.yaml").exists():
        return as_begun(config, run)
    require_one_process(f"minutes={config.minutes:g}", "trainer.max_steps")
    begin, settled = time.monotonic(), None
    end = begin + 60 * config.minutes

    def updates_left(pace: Pace) -> int:
        return max(1, int(LEARNING_SHARE * (end - time.monotonic() - SECONDS_BESIDE) / pace.seconds))

    for model in sizes if "model" in config.minutes_settles else [config.model]:
        candidate = with_batches(with_groups(config, model=model), corpus, tokens=0)
        try:
            # Twice, because the speed depends on the size of an update, which depends on the speed.
            for _ in range(2):
                pace = measured(candidate, corpus)
                tokens = updates_left(pace) * pace.tokens
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
    updates = updates_left(settled[1])
    check_enough(f"minutes={config.minutes:g}", updates, settled[1].seconds, time.monotonic() - begin)
    return with_updates(settled[0], updates)


def check_enough(setting: str, updates: int, seconds: float, tried: float) -> None:
    """NMTError where too few updates fit into the time of `setting`."""
    if updates < FEWEST_UPDATES:
        raise NMTError(
            f"{setting}: at {seconds:.2g} seconds for an update, after {tried:.0f} seconds of trying and "
            f"{SECONDS_BESIDE} for loading and validation, fewer than {FEWEST_UPDATES} updates are left, which learn "
            "nothing: pass more time, or end other programs"
        )


def settle_max_steps(config: ExperimentConfig, run: Path, corpus: PreparedCorpus) -> ExperimentConfig:
    """The configuration with as many updates as fit in `trainer.max_time`.

    The warm-up takes at most an eighth of them, to the same highest rate. The number of updates is measured when a run
    begins, and read from config.yaml when it resumes.
    """
    max_time = config.trainer.max_time
    if (run / "config.yaml").exists():
        updates = read_config(run).get("trainer", {}).get("max_steps")
    else:
        require_one_process(f"trainer.max_time={max_time}", "trainer.max_steps")
        limit, begin = Timer(max_time).time_remaining(), time.monotonic()
        assert limit is not None
        pace = measured(config, corpus)
        tried = time.monotonic() - begin
        updates = int(LEARNING_SHARE * (limit - tried - SECONDS_BESIDE) / pace.seconds)
        check_enough(f"trainer.max_time={max_time}", updates, pace.seconds, tried)
    rate = config.optim.learning_rate or noam(config.optim.warmup, config.model.d_model, config.optim.warmup)
    optim = replace(config.optim, learning_rate=rate, warmup=min(config.optim.warmup, -(-updates // 8)))
    return replace(config, optim=optim, trainer=replace(config.trainer, max_steps=updates))


def as_begun(config: ExperimentConfig, run: Path) -> ExperimentConfig:
    """The configuration with what was settled when its run began."""
    saved = read_config(run)
    if saved.get("minutes") != config.minutes:
        raise NMTError(
            f"{run} began with minutes={shown(saved.get('minutes'))}, and its learning rate ends then: "
            "pass name=OTHER for a new run"
        )
    kinds = {name: type(getattr(config, name)) for name in config.minutes_settles}
    groups = {
        name: build(kind, saved.get(name, {}), str(run / "config.yaml"), f"{name}.") for name, kind in kinds.items()
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
    each = max(longest, MICRO_BATCH) if on_processor(trainer) else size
    micro_batches = devices * max(1, size // (devices * each))  # none is too small for the longest sentence
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
    rate = HIGHEST_RATE / config.model.d_model
    optim = replace(config.optim, schedule="linear", learning_rate=rate, decay_steps=None)
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
            batch = move_data_to_device(batch_of(data.batches, micro_batch), trial.module.device)
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
    at_once = 1 if on_processor(trainer) else trainer.world_size
    return Pace(seconds / len(sizes) / at_once, sum(sizes) / len(sizes), parameters)


def on_processor(trainer: Trainer) -> bool:
    return bool(trainer.strategy.root_device.type == "cpu")
