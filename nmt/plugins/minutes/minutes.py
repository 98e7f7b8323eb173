"""`nmt train minutes=30`: choose the model, batches, learning rate and updates for a corpus, machine and time limit.

When a run begins, short trials measure speed and memory; nmt discards their models. After warm-up, the number of
updates is adjusted once, because trials are short and other programs may start or end. config.yaml records the
settings, so the run is then as reproducible as any other. The optimizer, learning rate and dropout worked best for the
quickstart (docs/results.md); the other constants are first guesses.
"""

import gc
import os
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import torch
import yaml
from lightning import Callback, Trainer
from lightning.fabric.utilities import move_data_to_device
from rich.console import Console
from torch.optim import Optimizer

from nmt import commands, files, kernels, registry, training
from nmt.config import BatchingConfig, ExperimentConfig, ModelConfig, build, require
from nmt.data import BatchPlanner, PreparedCorpus, UpdateDataModule, dummy_batch, open_corpus
from nmt.errors import enough_memory_or, is_out_of_memory
from nmt.model import described
from nmt.plugins.minutes.plugin import SETS

CHOOSING_SHARE = 0.05  # maximum share of the time for trials
MINUTES = "-[0-9][0-9.e+]*min"  # the suffix of a run's name
SECONDS_BESIDE = 30  # seconds to load, validate four times and score the averaged model (small model, two cores)
LEARNING_SHARE = 0.95  # share of the remaining time for training; the rest is for larger models' validation and delays
TOKENS_PER_PARAMETER = 3.0  # target tokens that a larger model must see per parameter to be worth its size
UPDATES = 10_000  # number of updates to aim for: many small updates train a better model than a few large ones
TOKENS_PER_UPDATE = (700, 25_000)  # minimum and maximum
TOKENS_PER_WIDTH = 6  # minimum update size / d_model: below it, Muon's matrix products cost more than the layers'
HIGHEST_RATE = 0.5  # peak learning rate of long runs, in units of 1 / d_model
SHORT_RUN = 1500  # up to this many updates, the rate is doubled; beyond, it falls with the square root of their number
DECAY = 8.0  # peak learning rate x weight decay x updates
DROPOUT = ((12, 0.05), (24, 0.1), (60, 0.2), (np.inf, 0.3))  # (maximum passes over the corpus, dropout)
FEWEST_UPDATES = 100
MICRO_BATCH = 5000  # tokens on a CPU, where larger micro-batches are no faster


def sizes() -> Iterator[ModelConfig]:
    for name in ("tiny", "small", "base", "big"):
        yield replace(commands.compose("train", [f"model={name}"]).model, norm="pre")


def begun(run: Path) -> dict[float, Path]:
    """Minutes -> folder, for the runs that minutes= began under this run's name."""
    name = re.escape(re.sub(f"{MINUTES}$", "", run.name))  # mine-30min -> mine
    beside = [file.parent for file in run.parent.glob("*/config.yaml")]
    runs = [folder for folder in beside if re.fullmatch(f"{name}({MINUTES})?", folder.name)]
    trees = {
        folder: training.read_config(folder)
        for folder in runs
        if training.list_checkpoints(folder) or (folder / "model").exists()
    }
    minutes = {tree.get("minutes"): folder for folder, tree in trees.items()}
    return {number: folder for number, folder in minutes.items() if isinstance(number, int | float)}


def seconds_of(config: ExperimentConfig) -> float:
    """The time for the run of this configuration, which may continue a shorter one."""
    assert config.minutes is not None
    return 60 * (config.minutes - max((x for x in begun(Path(config.run)) if x < config.minutes), default=0.0))


def settle(config: ExperimentConfig, console: Console) -> ExperimentConfig:
    """Start a run, resume the run that has these minutes, or continue the longest run in a new folder next to it."""
    assert config.minutes is not None
    Replan.started = time.monotonic()
    minutes, corpus = config.minutes, open_corpus(Path(config.prepared))
    models = sizes() if "model" in config.minutes_settles else [config.model]
    run, runs, updates = Path(config.run), begun(Path(config.run)), 0
    if minutes in runs:
        console.print(f"{runs[minutes]} was started with minutes={minutes:g} and keeps its settings")
        return as_begun(config, runs[minutes])
    if spent := max(runs, default=0.0):
        before, other = runs[spent], "pass name=OTHER for a new run"
        advice = f"pass more to continue it (without init=), or {other}"
        more = spent < minutes and config.init is None
        require(more, f"{before} was started with minutes={spent:g}: {advice}")
        config = as_begun(config, before)
        training.check_configuration(before, config)
        updates, models = config.trainer.max_steps, [config.model]
        advice = f"is not finished, or its corpus has changed: pass minutes={spent:g} to finish it, or {other}"
        require(training.is_finished(before, 0, corpus.manifest.fingerprint), f"{before} {advice}")
        name = f"{re.sub(f'{MINUTES}$', '', run.name)}-{minutes:g}min"
        config = replace(config, run=str(run.with_name(name)), init=str(before))
        length = f"for {minutes - spent:g} minutes in {config.run}"
        console.print(f"continuing the model of {before} from its update {updates:,} {length}; {other}")
    with console.status("trying models and batches for a few seconds"):
        config = choose(config, corpus, models, seconds_of(config))
    if config.init is not None:  # a high learning rate in a short run would undo what the model has learned
        share = min(config.trainer.max_steps / max(updates, 1), 1)
        adapting = commands.compose("train", ["optim=adapt"]).optim.learning_rate
        rate = share * HIGHEST_RATE / config.model.d_model if spent else adapting
        config = with_groups(config, optim=replace(config.optim, learning_rate=rate, weight_decay=0.0))
    gc.collect()  # a trial's model and trainer refer to each other and would otherwise occupy device memory
    model, size = config.model, config.batching.tokens_per_update
    passes = config.trainer.max_steps * size / corpus.split("train").target_lengths.sum(dtype=np.int64)
    setting = f"minutes={minutes:g}" if config.minutes_settles else f"trainer.max_time={config.trainer.max_time}"
    console.print(
        f"{setting}: model={model.name} (d_model {model.d_model}, {model.encoder_layers} + "
        f"{model.decoder_layers} layers, dropout {model.dropout}), {config.trainer.max_steps:,} updates of "
        f"{size:,} tokens ({passes:.1f} passes over the corpus); saved in {config.run}/config.yaml"
    )
    return config


def choose(
    config: ExperimentConfig, corpus: PreparedCorpus, models: Iterable[ModelConfig], limit: float
) -> ExperimentConfig:
    """Set the largest model that is worth its size, batches and updates; `limit` is in seconds."""
    minutes = config.minutes
    assert minutes is not None
    setting = f"minutes={minutes:g}" if config.minutes_settles else f"trainer.max_time, {limit:g} seconds"
    begin, settled = time.monotonic(), None
    alone = int(os.environ.get("WORLD_SIZE", 1)) == 1  # otherwise, processes could get different trial results
    require(alone, f"{setting} needs a single process: start the run with one process first")
    kernels.prepare()  # trials measure what training will do
    kernels.forget_old_kernels()
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
    updates, beside = updates_until(end, pace), SECONDS_BESIDE + time.monotonic() - begin
    enough = minutes + (FEWEST_UPDATES * pace.seconds / LEARNING_SHARE + beside - limit) / 60
    size = f"{config.batching.tokens_per_update:,} tokens (the longest sentence has {longest_sentence(corpus):,})"
    cost = f"an update of {size} takes {pace.seconds:.2g} seconds, and trials and validation take {beside:.0f}"
    few = f"that leaves fewer than {FEWEST_UPDATES} updates; allow {ceil(enough)} minutes or close other programs"
    require(updates >= FEWEST_UPDATES, f"{setting}: {cost}: {few}")
    return with_updates(config, updates)


def updates_until(end: float, pace: "Pace") -> int:
    return max(1, int(LEARNING_SHARE * (end - time.monotonic() - SECONDS_BESIDE) / pace.seconds))


def as_begun(config: ExperimentConfig, run: Path) -> ExperimentConfig:
    """The configuration with the settings of a run that minutes= began."""
    saved, where = training.read_config(run), f"{run}/config.yaml"
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


def longest_sentence(corpus: PreparedCorpus) -> int:
    split = corpus.split("train")
    return int(max(split.source_lengths.max(), split.target_lengths.max()))


def with_batches(config: ExperimentConfig, corpus: PreparedCorpus, tokens: float) -> ExperimentConfig:
    """Set the optimizer, batch sizes and dropout for training on `tokens` target tokens."""
    require("muon" in registry.entries_of("optimizer"), "minutes= needs the muon optimizer, which is not installed")
    trainer, split = training.make_trainer(config), corpus.split("train")
    devices, longest = trainer.world_size, longest_sentence(corpus)
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
    rate = HIGHEST_RATE * min(2.0, max(1.0, 2 * (SHORT_RUN / updates) ** 0.5)) / config.model.d_model
    keys = {"schedule": "linear", "learning_rate": rate, "weight_decay": DECAY / (rate * updates)}
    return with_groups(
        with_max_steps(config, updates),
        optim=replace(config.optim, **keys, warmup=-(-updates // 12), decay_steps=max(updates, 2)),
        # Few checkpoints: writing them takes time, and as the rate falls to 0, averaging more of them does not help.
        checkpoints=replace(config.checkpoints, every_steps=-(-updates // 25), keep=2),
        validation=replace(config.validation, every_steps=-(-updates // 4)),
    )


TIMED_SECONDS, WARM_UP = 4.0, 2  # maximum seconds of timed training in a trial, and untimed updates before that


def make_resident(module: training.TranslationModule, optimizer: Optimizer) -> None:
    """Allocate zero gradients and Adam moments, which would otherwise exist only from the second update on."""
    for parameter in module.parameters():
        parameter.grad = torch.zeros_like(parameter)
    if not optimizer.state:
        for group in optimizer.param_groups:
            group["lr"] = 0.0  # or weight decay would change the weights; every update sets it
        optimizer.step()
        for state in optimizer.state.values():
            state.get("step", torch.zeros(())).zero_()


def try_shapes(trainer: Trainer, module: training.TranslationModule, planner: BatchPlanner) -> None:
    """Run a forward and a backward pass for the largest micro-batches, without an update."""
    sums = module.update_sums.clone()
    for shape in planner.largest_shapes():  # rows, source width, target width
        if trainer.accumulate_grad_batches == 1:
            module.zero_grad()  # as after every update; otherwise gradients accumulate
        loss = trainer.strategy.training_step(move_data_to_device(dummy_batch(*shape), module.device), 0)
        trainer.strategy.backward(loss, None)  # type: ignore[arg-type]
        del loss
    module.update_sums.copy_(sums)


class MemoryCheck(Callback):
    """Tries the largest micro-batches before the first update, so that memory runs out then or never."""

    def __init__(self, config: ExperimentConfig, planner: BatchPlanner, metrics: Any) -> None:
        self.batching, self.planner = config.batching, planner

    def on_train_start(self, trainer: Trainer, pl_module: Any) -> None:
        tokens, micro_batches = self.batching.tokens_per_update, self.batching.micro_batches
        advice = (
            f"a micro-batch of {tokens // micro_batches:,} source and target tokens does not fit next to weights, "
            f"gradients and Adam's moments. Pass batching.micro_batches={2 * micro_batches} (smaller ones) or a lower "
            f"batching.tokens_per_update={tokens}"
        )
        # Room for threads, buffers and gaps between tensors: 64 MiB plus 5 % of weights, gradients and two moments.
        # Further gradient copies: the partial sums of an update's tree.
        copies = max(trainer.accumulate_grad_batches.bit_length() - 2, 0)
        size = 2**26 + int((0.2 + copies) * sum(parameter.nbytes for parameter in pl_module.parameters()))
        with enough_memory_or(advice):
            reserve = torch.empty(size, dtype=torch.uint8, device=pl_module.device)
            make_resident(pl_module, trainer.optimizers[0])
            try_shapes(trainer, pl_module, self.planner)
            del reserve
        trainer.optimizers[0].zero_grad()


class Pace(NamedTuple):
    seconds: float  # per update
    tokens: float  # target tokens per update, without padding


def measured_pace(config: ExperimentConfig, corpus: PreparedCorpus, seconds: float) -> Pace:
    """Train a model for some seconds; the first updates, which build kernels and allocate memory, do not count.

    The trial does not compile the model, which would take longer than the trial; Replan corrects the number of updates.
    """
    trainer, data = training.make_trainer(config), UpdateDataModule(corpus, config)
    strategy, device = trainer.strategy, trainer.strategy.root_device
    vocabulary, losses = corpus.manifest.vocabulary_size, training.training_losses(config)
    module = training.TranslationModule(config.model, config.optim, vocabulary, config.seed, losses)
    module.trainer = trainer
    strategy.connect(module)
    trainer.precision_plugin.convert_module(module)
    module.to(device).on_fit_start()
    optimizer = module.configure_optimizers()
    make_resident(module, optimizer)
    tokens, times = list[int](), list[float]()
    for number in count():
        begin = time.monotonic()
        planned = data.planner.update(number)
        for micro_batch in planned:
            batch = move_data_to_device(data.batches.batch(micro_batch), device)
            strategy.backward(strategy.training_step(batch, 0), None)  # type: ignore[arg-type]
        optimizer.step()
        optimizer.zero_grad()
        training.synchronize(device)
        tokens.append(planned[0].size.target_tokens)
        times.append(time.monotonic() - begin)
        if sum(times[WARM_UP:]) > min(seconds, TIMED_SECONDS) or sum(times) > 3 * seconds:
            break
    # In the trial, one process did the work of all; dividing it saves no time on a CPU, where they share the cores.
    at_once = 1 if device.type == "cpu" else trainer.world_size
    # The median, because the first updates after a pause can take ten times as long while memory is mapped.
    return Pace(median(times[WARM_UP:] or times) / at_once, sum(tokens) / len(tokens))


TOLERANCE = 0.05  # relative change in the number of updates that is worth making
LATE = 1.2  # print a notice if a run is expected to take this many times as long as planned


class Replan(training.UpdateCallback):
    """Changes the number of updates at most once, at the end of warm-up, which does not depend on this number."""

    started = 0.0  # when the command began to settle the run, on the clock of time.monotonic()

    def __init__(self, config: ExperimentConfig, planner: BatchPlanner, metrics: training.MetricsCallback) -> None:
        self.config, self.metrics, self.is_late = config, metrics, False
        self.limit = seconds_of(config) if config.minutes is not None else 0.0
        self.before, self.first = 0.0, (0, 0.0)

    def on_load_checkpoint(self, trainer: Trainer, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        self.before = checkpoint["nmt"]["seconds"]

    def on_update_end(self, trainer: Trainer, module: training.TranslationModule, step: int) -> None:
        now, (first, begin), config = time.monotonic(), self.first, self.config
        if self.limit and not first and step >= module.optim.warmup // 2:
            self.first = step, now  # ignore the updates before it, which compile kernels
        if not first:
            return
        spent, pace, planned = self.before + now - self.started, (now - begin) / (step - first), trainer.max_steps
        if step == module.optim.warmup and module.optim.decay_steps == planned:
            left = LEARNING_SHARE * (self.limit - SECONDS_BESIDE) - spent
            updates = trainer.strategy.broadcast(max(step + int(left / pace), 2 * step))
            if abs(updates - planned) > TOLERANCE * planned:
                self.change(trainer, module, updates)
        elif step % config.checkpoints.every_steps == 0 and not self.is_late:
            end = spent + pace * (planned - step)
            self.is_late = end > LATE * self.limit
            if self.is_late:
                self.metrics.line.console.print(
                    f"notice: other programs are slowing this run down; it will take about {end / 60:.0f} minutes "
                    f"instead of {self.limit / 60:.3g}. To get a model, press Ctrl-C and run `nmt average {config.run}`"
                )

    def change(self, trainer: Trainer, module: training.TranslationModule, updates: int) -> None:
        config, line, tree = with_max_steps(self.config, updates), self.metrics.line, self.metrics.config
        line.console.print(f"warm-up shows that {updates:,} updates fit in the time, not {trainer.max_steps:,}")
        trainer.fit_loop.epoch_loop.max_steps = line.total = updates
        module.optim, self.config = config.optim, config
        tree["trainer"]["max_steps"], tree["optim"]["decay_steps"] = updates, config.optim.decay_steps
        if trainer.is_global_zero:
            text = yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)
            files.write_file(self.metrics.run / "config.yaml", text)
