"""The settings of `minutes=` for a model and a number of updates, and the keys that the user keeps.

The optimizer, learning rate and dropout worked best for the quickstart (docs/results.md); the other
constants are first guesses.
"""

from dataclasses import fields, replace
from math import ceil
from typing import Any

import numpy as np

from nmt import commands, training
from nmt.config import ENDING, BatchingConfig, ExperimentConfig, OptimConfig
from nmt.data import PreparedCorpus
from nmt.training import time_limit, with_max_steps

UPDATES = 10_000
"""The number of updates to aim for: many small updates train a better model than few large ones."""

FEWEST_TOKENS = 700
"""The smallest update on one device."""
MOST_TOKENS = 25_000
"""The largest update on one device, as in the paper (section 5.1)."""
TOKENS_PER_WIDTH = 6
"""The smallest update / d_model: below it, Muon's matrix products cost more than the layers'."""

MICRO_BATCH = 5000
"""Tokens per micro-batch on a CPU, where larger micro-batches are no faster."""

HIGHEST_RATE = 0.5
"""The peak learning rate of long runs, in units of 1 / d_model."""
SHORT_RUN = 1500
"""Up to this many updates, the rate is doubled; beyond, it falls with the square root of them."""
DECAY = 8.0
"""Peak learning rate x weight decay x updates."""
WARMUPS = 12
"""Warm-up takes 1 / WARMUPS of a run."""

DROPOUT = ((12, 0.05), (24, 0.1), (60, 0.2))
"""(maximum passes over the corpus, dropout)."""
HIGHEST_DROPOUT = 0.3
"""The dropout for more passes than the table lists."""

SAVES = 25
"""The number of checkpoints in a run."""


def kept_keys(config: ExperimentConfig, group: str) -> dict[str, Any]:
    """The keys of a group that the user sets, and their values."""
    values = getattr(config, group)
    names = {field.name for field in fields(values)}
    kept = {}
    for key in config.minutes_keeps:
        name = key.removeprefix(f"{group}.")
        if name != key and name in names:
            kept[name] = getattr(values, name)
    return kept


def with_kept_keys(config: ExperimentConfig, group: str, values: Any) -> Any:
    """A group with these values, except for the keys that the user sets."""
    kept = kept_keys(config, group)
    if group == "model" and ("d_model" in kept or "heads" in kept):
        kept = {"d_k": None, "d_v": None, **kept}  # they follow from the width and the heads
    return replace(values, **kept)


def with_groups(config: ExperimentConfig, **groups: Any) -> ExperimentConfig:
    """Replace only the groups that minutes= settles, and keep the keys that the user sets."""
    settled = {}
    for name, values in groups.items():
        if name in config.minutes_settles:
            settled[name] = with_kept_keys(config, name, values)
    return replace(config, **settled)


def longest_sentence(corpus: PreparedCorpus) -> int:
    split = corpus.split("train")
    return max(split.source_lengths.max(), split.target_lengths.max())


def batching_for(config: ExperimentConfig, corpus: PreparedCorpus, tokens: float) -> BatchingConfig:
    """The sizes of updates and micro-batches for training on `tokens` target tokens."""
    trainer = training.make_trainer(config)
    devices = trainer.world_size
    longest = longest_sentence(corpus)
    kept = kept_keys(config, "batching")
    fewest = max(longest, FEWEST_TOKENS, TOKENS_PER_WIDTH * config.model.d_model)
    # The longest sentence must fit, even if the update becomes larger than the paper's.
    most = max(fewest, MOST_TOKENS)
    size = int(np.clip(tokens / UPDATES, devices * fewest, devices * most))
    size = kept.get("tokens_per_update", size)
    # A GPU computes few large micro-batches faster than many small ones.
    largest = size
    if trainer.strategy.root_device.type == "cpu":
        largest = max(longest, MICRO_BATCH)
    # Each micro-batch has room for the longest sentence.
    per_device = max(1, size // (devices * largest))
    micro_batches = kept.get("micro_batches", devices * per_device)
    return BatchingConfig(tokens_per_update=size, micro_batches=micro_batches)


def dropout_for(passes: float) -> float:
    """The dropout for a number of passes; more passes need more regularization."""
    for most, dropout in DROPOUT:
        if passes <= most:
            return dropout
    return HIGHEST_DROPOUT


def with_batches(
    config: ExperimentConfig, corpus: PreparedCorpus, tokens: float
) -> ExperimentConfig:
    """Set the optimizer, batch sizes and dropout for training on `tokens` target tokens."""
    # A model is adapted with the optimizer of the configuration; from scratch, Muon needs about
    # half as many tokens as Adam (docs/results.md).
    optimizer = config.optim.optimizer if config.init else "muon"
    passes = tokens / corpus.split("train").target_lengths.sum()
    return with_groups(
        config,
        model=replace(config.model, dropout=dropout_for(passes)),
        optim=replace(config.optim, optimizer=optimizer),
        batching=batching_for(config, corpus, tokens),
    )


def with_updates(config: ExperimentConfig, updates: int) -> ExperimentConfig:
    """Set the number of updates, the schedule, and when to save and validate."""
    if "optim" not in config.minutes_settles:
        config = with_max_steps(config, updates)
    config = replace(config, trainer=replace(config.trainer, max_steps=updates))
    return with_groups(
        config,
        optim=optim_for(config, updates),
        # Few checkpoints: writing them takes time, and as the rate falls to 0, averaging more of
        # them does not help.
        checkpoints=replace(config.checkpoints, every_steps=ceil(updates / SAVES), keep=2),
        validation=replace(config.validation, every_steps=ceil(updates / time_limit.VALIDATIONS)),
    )


def optim_for(config: ExperimentConfig, updates: int) -> OptimConfig:
    """The schedule for a number of updates, with the keys that the user sets.

    By default, the learning rate falls to 0 at the end.
    """
    kept = kept_keys(config, "optim")
    schedule = kept.get("schedule", "linear")
    factor = min(2.0, max(1.0, 2 * (SHORT_RUN / updates) ** 0.5))
    rate = kept.get("learning_rate") or HIGHEST_RATE * factor / config.model.d_model
    decay_steps = max(updates, 2) if schedule in ENDING else None
    return replace(
        config.optim,
        schedule=schedule,
        learning_rate=kept.get("learning_rate", rate),
        # The weights shrink by rate x decay in each update, so the product of all three is the
        # whole shrinkage of a run, whatever its length.
        weight_decay=kept.get("weight_decay", DECAY / (rate * updates)),
        warmup=kept.get("warmup", ceil(updates / WARMUPS)),
        decay_steps=kept.get("decay_steps", decay_steps),
        decay_changes=None,
    )


def adapting_rate(d_model: int) -> float:
    """The peak learning rate of experiment=adapt for a model of this width."""
    # One head and learned positions accept any width.
    words = ["optim=adapt", f"model.d_model={d_model}", "model.heads=1", "model.positions=learned"]
    rate: float = commands.compose("train", words).optim.learning_rate
    return rate


def with_gentle_rate(config: ExperimentConfig, updates_before: int | None) -> ExperimentConfig:
    """Lower the learning rate of a run that starts from a model.

    A high learning rate in a short run would undo what the model has learned. `updates_before` is
    the number of updates of the run that this one continues; None: it starts from another model.
    """
    width = config.model.d_model
    if updates_before is None:
        rate = adapting_rate(width)
    else:
        # A short continuation gets a small part of the rate; a longer one the rate of a new run.
        share = min(config.trainer.max_steps / max(updates_before, 1), 1)
        rate = share * HIGHEST_RATE / width
    # No weight decay, as in experiment=adapt.
    return with_groups(config, optim=replace(config.optim, learning_rate=rate, weight_decay=0.0))
