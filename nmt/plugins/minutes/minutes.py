"""`nmt train minutes=30`: choose the model, batches, learning rate and updates for a corpus, machine and time limit.

When a run begins, short trials measure speed and memory, and their models are discarded. config.yaml records the
settings, and from then on the run is as reproducible as any other. The optimizer, learning rate and dropout worked best
for the quickstart (docs/results.md); the other constants are first guesses.
"""

import gc
import os
import re
import time
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
from lightning.pytorch.callbacks import Timer
from rich.console import Console

from nmt.commands import compose
from nmt.config import BatchingConfig, ExperimentConfig, ModelConfig, build, is_out_of_memory, require
from nmt.data import PreparedCorpus, open_corpus
from nmt.kernels import forget_old_kernels, keep_freed_memory
from nmt.plugins.minutes.trials import Pace, Trial
from nmt.registry import entries_of
from nmt.training import check_configuration, is_finished, list_checkpoints, make_trainer, noam, read_config

CHOOSING_SHARE = 0.05  # maximum share of the time for trials
MINUTES = "-[0-9][0-9.e+]*min"  # the end of a run's name
SECONDS_BESIDE = 30  # seconds to load, validate four times and score the averaged model (a small one, on two cores)
LEARNING_SHARE = 0.94  # share of the remaining time for training; the rest is a reserve for validating larger models
TOKENS_PER_PARAMETER = 3.0  # target tokens that a larger model must see per parameter to be worth its size
UPDATES = 10_000  # number of updates to aim for: many small updates train a better model than a few large ones
TOKENS_PER_UPDATE = (700, 25_000)  # minimum and maximum
TOKENS_PER_WIDTH = 6  # minimum update size / d_model: below it, Muon's matrix products cost more than the layers'
HIGHEST_RATE = 0.5  # peak learning rate, in units of 1 / d_model
DROPOUT = ((12, 0.05), (24, 0.1), (60, 0.2), (np.inf, 0.3))  # (maximum passes over the corpus, dropout)
FEWEST_UPDATES = 100
MICRO_BATCH = 5000  # tokens on a CPU, where larger micro-batches are no faster


def settle(config: ExperimentConfig, console: Console) -> ExperimentConfig:
    """Fill in the settings that depend on the time limit and on memory (`batching.max_tokens`)."""
    keep_freed_memory()  # trials measure what training will do
    forget_old_kernels()
    corpus = open_corpus(Path(config.prepared))
    with console.status("trying models and batches for a few seconds"):
        if config.minutes is not None:
            config = settle_minutes(config, corpus, console)
        run = Path(config.run)
        saved = read_config(run) if (run / "config.yaml").exists() else {}
        if config.trainer.max_steps is None:
            config = settle_max_steps(config, corpus, saved)
        if config.batching.max_tokens is not None:
            config = replace(config, batching=settle_micro_batches(config, corpus, saved))
    gc.collect()  # a trial's model and trainer refer to each other and would otherwise occupy device memory
    return config


def sizes() -> list[ModelConfig]:
    return [replace(compose("train", [f"model={name}"]).model, norm="pre") for name in ("tiny", "small", "base", "big")]


def settle_minutes(config: ExperimentConfig, corpus: PreparedCorpus, console: Console) -> ExperimentConfig:
    """Start a run, resume the run that has these minutes, or continue the longest run in a new folder beside it."""
    assert config.minutes is not None
    minutes = config.minutes
    models = sizes() if "model" in config.minutes_settles else [config.model]
    run = Path(config.run)
    name = re.sub(f"{MINUTES}$", "", run.name)  # mine-30min -> mine
    pattern = re.compile(f"{re.escape(name)}({MINUTES})?")
    beside = [file.parent for file in run.parent.glob("*/config.yaml") if pattern.fullmatch(file.parent.name)]
    begun = {x: read_config(x).get("minutes") for x in beside if list_checkpoints(x) or (x / "model").exists()}
    runs = {number: folder for folder, number in begun.items() if isinstance(number, int | float)}
    if minutes in runs:
        return as_begun(config, runs[minutes])
    if spent := max(runs, default=0.0):
        before, other = runs[spent], "pass name=OTHER for a new run"
        advice = f"pass more to continue it (without init=), or {other}"
        more = spent < minutes and config.init is None
        require(more, f"{before} has already trained for minutes={spent:g}: {advice}")
        config = as_begun(config, before)
        check_configuration(before, config)
        updates, models = config.trainer.max_steps or 0, [config.model]
        advice = f"pass minutes={spent:g} to finish it, or {other}"
        require(is_finished(before, 0, corpus.manifest.fingerprint), f"{before} is not finished: {advice}")
        config = replace(config, run=str(run.with_name(f"{name}-{minutes:g}min")), init=str(before))
        length = f"for {minutes - spent:g} minutes in {config.run}"
        console.print(f"continuing the model of {before} from its update {updates:,} {length}; {other}")
    config = choose(config, corpus, models, 60 * (minutes - spent))
    model = config.model
    console.print(
        f"minutes={minutes:g}: model={model.name} (d_model {model.d_model}, {model.encoder_layers} + "
        f"{model.decoder_layers} layers, dropout {model.dropout}), {config.trainer.max_steps:,} updates of "
        f"{config.batching.tokens_per_update:,} tokens; saved in {config.run}/config.yaml"
    )
    return config


def choose(
    config: ExperimentConfig, corpus: PreparedCorpus, models: list[ModelConfig], limit: float
) -> ExperimentConfig:
    """Set the largest model that is worth its size, batches and updates; `limit` is in seconds."""
    assert config.minutes is not None
    setting, begin, settled = f"minutes={config.minutes:g}", time.monotonic(), None
    require_one_process(setting, "trainer.max_steps")
    end, choosing, tried = begin + limit, CHOOSING_SHARE * limit, begin
    for model in models:
        before, tried = tried, time.monotonic()
        if settled and 2 * tried - before - begin > choosing:  # a larger model's trial takes longer than the last
            break
        candidate = with_batches(with_groups(config, model=model), corpus, tokens=0)
        try:
            for _ in range(2):  # twice if the size of an update changes, because speed depends on it
                pace, batching = Trial(candidate, corpus).pace(choosing / 8), candidate.batching
                tokens = updates_until(end, pace) * pace.tokens
                candidate = with_batches(candidate, corpus, tokens * 60 * config.minutes / limit)
                if candidate.batching == batching:
                    break
        except (RuntimeError, MemoryError) as error:
            if settled and is_out_of_memory(error):
                break
            raise
        if settled and tokens < TOKENS_PER_PARAMETER * pace.parameters:
            break
        settled = candidate, pace
    assert settled
    return with_updates(settled[0], enough_updates(setting, begin, end, settled[1]))


def updates_until(end: float, pace: Pace) -> int:
    return max(1, int(LEARNING_SHARE * (end - time.monotonic() - SECONDS_BESIDE) / pace.seconds))


def enough_updates(setting: str, begin: float, end: float, pace: Pace) -> int:
    """The number of updates that fit before `end`; NMTError if there are too few."""
    updates, tried = updates_until(end, pace), time.monotonic() - begin
    cost = f"an update takes {pace.seconds:.2g} seconds, trials took {tried:.0f}, and validation needs {SECONDS_BESIDE}"
    needed = FEWEST_UPDATES * pace.seconds / LEARNING_SHARE + SECONDS_BESIDE + tried
    more = f"{-(-(needed - (end - begin)) // 60):.0f} minutes more"
    few = f"that leaves fewer than {FEWEST_UPDATES} updates; allow {more} or close other programs"
    require(updates >= FEWEST_UPDATES, f"{setting}: {cost}: {few}")
    return updates


def settle_max_steps(config: ExperimentConfig, corpus: PreparedCorpus, saved: dict[str, Any]) -> ExperimentConfig:
    """Set max_steps to the number of updates that fit in `trainer.max_time`, or to the value that a resumed run saved.

    At most an eighth of the updates are warm-up.
    """
    begin, setting = time.monotonic(), f"trainer.max_time={config.trainer.max_time}"
    updates = saved.get("trainer", {}).get("max_steps")
    if not saved:
        require_one_process(setting, "trainer.max_steps")
        limit = Timer(config.trainer.max_time).time_remaining()
        assert limit is not None
        updates = enough_updates(setting, begin, begin + limit, Trial(config, corpus).pace())
    rate = config.optim.learning_rate or noam(config.optim.warmup, config.model.d_model, config.optim.warmup)
    optim = replace(config.optim, learning_rate=rate, warmup=min(config.optim.warmup, -(-updates // 8)))
    return replace(config, optim=optim, trainer=replace(config.trainer, max_steps=updates))


def as_begun(config: ExperimentConfig, run: Path) -> ExperimentConfig:
    """The configuration with the settings of a run that minutes= began."""
    saved, where = read_config(run), f"{run}/config.yaml"
    types = {name: type(getattr(config, name)) for name in config.minutes_settles}
    groups = {name: build(kind, saved.get(name, {}), where, f"{name}.") for name, kind in types.items()}
    trainer = replace(config.trainer, max_steps=saved.get("trainer", {}).get("max_steps"))
    return replace(config, run=str(run), init=config.init or saved.get("init"), trainer=trainer, **groups)


def with_groups(config: ExperimentConfig, **groups: Any) -> ExperimentConfig:
    """Replace only the groups that minutes= settles."""
    return replace(config, **{name: group for name, group in groups.items() if name in config.minutes_settles})


def with_batches(config: ExperimentConfig, corpus: PreparedCorpus, tokens: float) -> ExperimentConfig:
    """Set the optimizer, batch sizes and dropout for training on `tokens` target tokens."""
    require("muon" in entries_of("optimizer"), "minutes= trains with the muon optimizer, which is not installed")
    trainer, longest = make_trainer(config), longest_sentence(corpus)
    devices = trainer.world_size
    fewest = max(longest, TOKENS_PER_UPDATE[0], TOKENS_PER_WIDTH * config.model.d_model)
    size = int(np.clip(tokens / UPDATES, devices * fewest, devices * max(fewest, TOKENS_PER_UPDATE[1])))
    largest = max(longest, MICRO_BATCH) if trainer.strategy.root_device.type == "cpu" else size
    micro_batches = devices * max(1, size // (devices * largest))  # each has room for the longest sentence
    passes = tokens / int(corpus.split("train").target_lengths.sum(dtype=np.int64))
    dropout = next(share for most, share in DROPOUT if passes <= most)
    return with_groups(
        config,
        model=replace(config.model, dropout=dropout),
        optim=replace(config.optim, optimizer="muon"),
        batching=BatchingConfig(tokens_per_update=size, micro_batches=micro_batches),
    )


def with_updates(config: ExperimentConfig, updates: int) -> ExperimentConfig:
    """Set the number of updates, a learning rate that falls to 0, and when to save and validate."""
    warmup, rate = -(-updates // 12), HIGHEST_RATE / config.model.d_model
    return with_groups(
        replace(config, trainer=replace(config.trainer, max_steps=updates)),
        optim=replace(config.optim, schedule="linear", learning_rate=rate, warmup=warmup, decay_steps=max(updates, 2)),
        # Few checkpoints: writing them takes time, and as the rate falls to 0, averaging more of them does not help.
        checkpoints=replace(config.checkpoints, every_steps=-(-updates // 25), keep=2),
        validation=replace(config.validation, every_steps=-(-updates // 4)),
    )


def settle_micro_batches(config: ExperimentConfig, corpus: PreparedCorpus, saved: dict[str, Any]) -> BatchingConfig:
    """Use the fewest micro-batches that `batching.max_tokens` allows or, with auto, that fit in memory."""
    batching, tokens = config.batching, config.batching.tokens_per_update
    settled = build(BatchingConfig, saved.get("batching", {}), config.run, "batching.")
    if saved and replace(settled, micro_batches=batching.micro_batches) == batching:
        return settled
    devices = make_trainer(config).world_size
    if isinstance(batching.max_tokens, int):
        fewest = -(-tokens // batching.max_tokens)
        return replace(batching, micro_batches=-(-fewest // devices) * devices)
    require_one_process("batching.max_tokens=auto", "a number")
    candidates = [devices]
    while tokens // (2 * candidates[-1]) >= longest_sentence(corpus):
        candidates.append(2 * candidates[-1])
    tried = [replace(batching, micro_batches=parts) for parts in reversed(candidates)]
    fitting = [*takewhile(Trial(config, corpus).fits, tried)]
    least = f"{tokens // candidates[-1]:,} tokens, about the longest sentence, do not fit in memory"
    require(bool(fitting), f"batching.max_tokens=auto: {least}; lower data.filters.max_tokens or use a smaller model")
    return fitting[-1]


def require_one_process(setting: str, instead: str) -> None:
    alone = int(os.environ.get("WORLD_SIZE", 1)) == 1  # otherwise, processes could get different trial results
    require(alone, f"{setting} needs a single process: start the run with one process first, or pass {instead}")


def longest_sentence(corpus: PreparedCorpus) -> int:
    split = corpus.split("train")
    return int(max(split.source_lengths.max(), split.target_lengths.max()))
