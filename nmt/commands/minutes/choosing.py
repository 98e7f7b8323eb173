"""Short trials choose the largest model that is worth its size, its batches and its updates."""

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import ceil

from nmt import commands, kernels
from nmt.commands.minutes.settings import (
    longest_sentence,
    with_batches,
    with_groups,
    with_kept_keys,
    with_updates,
)
from nmt.config import ExperimentConfig, ModelConfig, NMTError
from nmt.data import PreparedCorpus
from nmt.errors import is_out_of_memory
from nmt.model import described
from nmt.training import TOKENS_PER_PARAMETER, Pace, measured_pace, time_limit

CHOOSING_SHARE = 0.05
"""The maximum share of the time for trials."""

TRIAL_SHARE = 1 / 8
"""The share of the trial time for one measurement."""

FEWEST_UPDATES = 10
"""With fewer, the speed and the time of a validation cannot be measured."""

MODELS = ("tiny", "small", "base", "big")
"""The sizes to choose from, in ascending order."""


@dataclass
class Candidate:
    """A model with its batches, and what its trial measured."""

    config: ExperimentConfig
    pace: Pace
    tokens: float
    """The target tokens that the model sees in the time of the run."""


def sizes(config: ExperimentConfig) -> Iterator[ModelConfig]:
    """The models to choose from, with the keys that the user sets."""
    problem: NMTError | None = None
    is_possible = False
    for name in MODELS:
        # Pre-norm layers learn more in a short run, as in conf/experiment/laptop.yaml.
        model = replace(commands.compose("train", [f"model={name}"]).model, norm="pre")
        try:
            model = with_kept_keys(config, "model", model)
        except NMTError as error:  # for example, model.heads must divide model.d_model
            problem = error
            continue
        is_possible = True
        yield model
    if problem and not is_possible:
        # Only if the user's keys fit no size; otherwise the sizes that they fit are enough.
        raise problem


def choose(
    config: ExperimentConfig, corpus: PreparedCorpus, models: Iterable[ModelConfig], limit: float
) -> ExperimentConfig:
    """Set the largest model that is worth its size, batches and updates.

    `limit` is the time of the run in seconds. Raises NMTError if it is too short for the smallest
    model.
    """
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        # The trials of several processes could have different results.
        raise NMTError(
            f"{time_limit.setting(config)} needs a single process: "
            "start the run with one process first"
        )
    kernels.prepare()  # trials measure what training will do
    kernels.forget_old_kernels()
    chosen = largest_worth_its_size(config, corpus, models, limit)
    updates = updates_that_fit(limit, chosen.pace)
    if updates < FEWEST_UPDATES:
        raise NMTError(too_few(chosen, corpus, limit))
    return with_updates(chosen.config, updates)


def largest_worth_its_size(
    config: ExperimentConfig, corpus: PreparedCorpus, models: Iterable[ModelConfig], limit: float
) -> Candidate:
    """Try the models, from small to large, until one would see too few tokens for its size."""
    chosen: Candidate | None = None
    choosing = CHOOSING_SHARE * limit
    first_trial = time.monotonic()
    last_trial = first_trial
    for model in models:
        now = time.monotonic()
        needed = TOKENS_PER_PARAMETER * parameters_of(model, corpus)
        if chosen:
            # A larger model sees fewer tokens than the last in the same time, and its trial takes
            # longer.
            is_too_large = chosen.tokens < needed
            # As if the next trial took as long as the last one, which is a lower limit.
            soonest_end = now + (now - last_trial)
            if is_too_large or soonest_end - first_trial > choosing:
                break
        last_trial = now
        try:
            candidate = tried(with_groups(config, model=model), corpus, limit)
        except (RuntimeError, MemoryError) as error:
            # The last size that fits is good enough; if none does, the user must know.
            if chosen and is_out_of_memory(error):
                break
            raise
        if chosen and candidate.tokens < needed:
            break
        chosen = candidate
    assert chosen
    return chosen


def parameters_of(model: ModelConfig, corpus: PreparedCorpus) -> int:
    # Without storage, because only their number matters.
    parameters = described(model, corpus.manifest.vocabulary_size).parameters()
    return sum(parameter.numel() for parameter in parameters)


def tried(config: ExperimentConfig, corpus: PreparedCorpus, limit: float) -> Candidate:
    """Measure the speed of a model, and choose its batches by that."""
    minutes = config.minutes
    assert minutes is not None
    seconds = CHOOSING_SHARE * limit * TRIAL_SHARE
    # The smallest updates first: how many tokens fit is known only after a measurement.
    config = with_batches(config, corpus, tokens=0)
    # A second time if the update size changes, because speed depends on it.
    for _ in range(2):
        pace = measured_pace(config, corpus, seconds)
        tokens = updates_that_fit(limit, pace) * pace.tokens
        batching = config.batching
        # The dropout is that for all the time that the run and those before it take.
        config = with_batches(config, corpus, tokens * 60 * minutes / limit)
        if config.batching == batching:
            break
    return Candidate(config, pace, tokens)


def updates_that_fit(limit: float, pace: Pace) -> int:
    """The number of updates that fit into `limit` seconds, at least 1."""
    return max(1, int((limit - time_limit.seconds_beside(limit)) / pace.seconds))


def too_few(candidate: Candidate, corpus: PreparedCorpus, limit: float) -> str:
    """The message that the time is too short for a model."""
    config = candidate.config
    pace = candidate.pace
    assert config.minutes is not None
    beside = time_limit.seconds_beside(limit)
    missing = FEWEST_UPDATES * pace.seconds + beside - limit
    enough = config.minutes + missing / 60
    tokens = corpus.split("train").target_lengths.sum()
    passes = updates_that_fit(limit, pace) * pace.tokens / tokens
    return (
        f"{time_limit.setting(config)}: an update of {config.batching.tokens_per_update:,} tokens "
        f"(the longest sentence has {longest_sentence(corpus):,}) "
        f"takes {pace.seconds:.2g} seconds, and trials and validation take {beside:.0f}: "
        f"that leaves fewer than {FEWEST_UPDATES} updates "
        f"({passes:.1g} passes over the corpus); "
        f"allow {ceil(enough)} minutes or close other programs"
    )
