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
"""The share of a run's time that trials may take; what they take is lost for training."""

TRIAL_SHARE = 1 / 8
"""The share of the time for trials that one measurement takes.

So there is time to measure each of the four sizes twice.
"""

FEWEST_UPDATES = 10
"""With fewer, the speed and the time of a validation cannot be measured."""

MODELS = ("tiny", "small", "base", "big")
"""The sizes to choose from, in ascending order."""


@dataclass
class Candidate:
    """A model with its batches, and what its trial measured."""

    config: ExperimentConfig
    """Has this model and the batches that suit its speed."""
    pace: Pace
    """The tokens and seconds of an update."""
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
    """The largest model that sees enough tokens for its size in `limit` seconds.

    A model needs TOKENS_PER_PARAMETER target tokens for each parameter. `models` come from small to
    large; trials measure how many tokens they see. The smallest model is chosen if none sees
    enough, or if the time for trials ends. Raises the error if it does not fit into memory.
    """
    trials_begin = time.monotonic()
    remaining = iter(models)
    smallest = next(remaining)
    last_trial_begin = time.monotonic()
    chosen = tried(with_groups(config, model=smallest), corpus, limit)
    for model in remaining:
        now = time.monotonic()
        # A larger model sees fewer tokens in the same time, and its trial takes longer. So the last
        # trial already tells that some models are too large or would take too long to try.
        needed = TOKENS_PER_PARAMETER * parameters_of(model, corpus)
        if chosen.tokens < needed:
            break
        last_trial_seconds = now - last_trial_begin
        soonest_end = now + last_trial_seconds
        if soonest_end - trials_begin > CHOOSING_SHARE * limit:
            break
        last_trial_begin = now
        try:
            candidate = tried(with_groups(config, model=model), corpus, limit)
        except (RuntimeError, MemoryError) as error:
            # The last size that fits is good enough.
            if is_out_of_memory(error):
                break
            raise
        if candidate.tokens < needed:
            break
        chosen = candidate
    return chosen


def parameters_of(model: ModelConfig, corpus: PreparedCorpus) -> int:
    # `described` allocates no memory for them.
    parameters = described(model, corpus.manifest.vocabulary_size).parameters()
    return sum(parameter.numel() for parameter in parameters)


def tried(config: ExperimentConfig, corpus: PreparedCorpus, limit: float) -> Candidate:
    """Measure the speed of a model, and choose its batches and dropout by that.

    `limit` is the time of the run in seconds.
    """
    minutes = config.minutes
    assert minutes is not None
    seconds = CHOOSING_SHARE * limit * TRIAL_SHARE
    # The smallest updates first: how many tokens fit is known only after a measurement.
    config = with_batches(config, corpus, tokens=0)
    # A second time if the update size changes, because speed depends on it.
    for _ in range(2):
        pace = measured_pace(config, corpus, seconds)
        tokens = updates_that_fit(limit, pace) * pace.tokens
        measured_batching = config.batching
        # `minutes` also counts the runs that this one continues, `limit` only this one. Dropout
        # follows from all the tokens that the model sees.
        tokens_of_all_runs = tokens * 60 * minutes / limit
        config = with_batches(config, corpus, tokens_of_all_runs)
        if config.batching == measured_batching:
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
