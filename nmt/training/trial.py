"""Short trials for `minutes=`: the speed of a model and whether the largest batches fit in memory."""

import time
from itertools import count
from statistics import median
from typing import Any, NamedTuple

import torch
from lightning import Callback, Trainer
from lightning.fabric.utilities import move_data_to_device
from torch.optim import Optimizer

from nmt.config import ExperimentConfig
from nmt.data import BatchPlanner, PreparedCorpus, UpdateDataModule, dummy_batch
from nmt.errors import enough_memory_or
from nmt.training.loss import training_losses
from nmt.training.metrics import synchronize
from nmt.training.module import TranslationModule, make_trainer

TIMED_SECONDS = 4.0  # maximum seconds of timed training in a trial
WARM_UP = 2  # untimed updates before that


def make_resident(module: TranslationModule, optimizer: Optimizer) -> None:
    """Allocate zero gradients and Adam moments, which would otherwise exist only from the second update on."""
    for parameter in module.parameters():
        parameter.grad = torch.zeros_like(parameter)
    if not optimizer.state:
        for group in optimizer.param_groups:
            group["lr"] = 0.0  # or weight decay would change the weights; every update sets it
        optimizer.step()
        for state in optimizer.state.values():
            state.get("step", torch.zeros(())).zero_()


def try_shapes(trainer: Trainer, module: TranslationModule, planner: BatchPlanner) -> None:
    """Run a forward and a backward pass for the largest micro-batches, without an update."""
    sums = module.update_sums.clone()
    for shape in planner.largest_shapes():  # rows, source width, target width
        if trainer.accumulate_grad_batches == 1:
            module.zero_grad()  # as after every update; otherwise gradients accumulate
        loss = trainer.strategy.training_step(
            move_data_to_device(dummy_batch(*shape), module.device), 0
        )
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
        size = 2**26 + int(
            (0.2 + copies) * sum(parameter.nbytes for parameter in pl_module.parameters())
        )
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

    The trial does not compile the model, which would take longer than the trial; Replan corrects
    the number of updates.
    """
    trainer = make_trainer(config)
    data = UpdateDataModule(corpus, config)
    strategy = trainer.strategy
    device = strategy.root_device
    vocabulary = corpus.manifest.vocabulary_size
    losses = training_losses(config)
    module = TranslationModule(config.model, config.optim, vocabulary, config.seed, losses)
    module.trainer = trainer
    strategy.connect(module)
    trainer.precision_plugin.convert_module(module)
    module.to(device).on_fit_start()
    optimizer = module.configure_optimizers()
    make_resident(module, optimizer)
    tokens = list[int]()
    times = list[float]()
    for number in count():
        begin = time.monotonic()
        planned = data.planner.update(number)
        for micro_batch in planned:
            batch = move_data_to_device(data.batches.batch(micro_batch), device)
            strategy.backward(strategy.training_step(batch, 0), None)  # type: ignore[arg-type]
        optimizer.step()
        optimizer.zero_grad()
        synchronize(device)
        tokens.append(planned[0].size.target_tokens)
        times.append(time.monotonic() - begin)
        if sum(times[WARM_UP:]) > min(seconds, TIMED_SECONDS) or sum(times) > 3 * seconds:
            break
    # In the trial, one process did the work of all; dividing it saves no time on a CPU, where they share the cores.
    at_once = 1 if device.type == "cpu" else trainer.world_size
    # The median, because the first updates after a pause can take ten times as long while memory is mapped.
    return Pace(median(times[WARM_UP:] or times) / at_once, sum(tokens) / len(tokens))
