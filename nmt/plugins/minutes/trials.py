"""Trials: batches whose results are discarded, to measure speed or to see whether the largest batches fit in memory."""

import gc
import time
from collections.abc import Iterable
from dataclasses import replace
from itertools import count
from statistics import median
from typing import Any, NamedTuple

import torch
from lightning import Callback, Trainer
from lightning.fabric.utilities import move_data_to_device
from torch.optim import Optimizer

from nmt.config import UNK, BatchingConfig, ExperimentConfig, enough_memory_or, is_out_of_memory
from nmt.data import Batch, BatchPlanner, PreparedCorpus, UpdateDataModule, accumulation
from nmt.hardware import available_memory
from nmt.training import TranslationModule, make_trainer, synchronize

TIMED_SECONDS, WARM_UP = 4.0, 2  # maximum seconds of timed training in a trial, and untimed updates before that
HEADROOM = 1.25  # factor for max_tokens=auto: a reserve for fragmentation and for gradients in transit


def dummy_batch(rows: int, source_width: int, target_width: int) -> Batch:
    """A batch of <unk> tokens that needs as much memory as a full batch of this shape, including a padding mask."""
    target = torch.full((rows, target_width), UNK)
    return Batch(torch.full((rows, source_width), UNK), target, target, torch.arange(max(target.numel() - 1, 1)))


def make_resident(module: TranslationModule, optimizer: Optimizer) -> None:
    """Allocate zero gradients and Adam moments, which would otherwise exist only from the second update on."""
    for parameter in module.parameters():
        parameter.grad = torch.zeros_like(parameter)
    if not optimizer.state:
        optimizer.step()
        for state in optimizer.state.values():
            state.get("step", torch.zeros(())).zero_()


def try_shapes(trainer: Trainer, module: TranslationModule, shapes: Iterable[tuple[int, int, int]]) -> None:
    """Run a forward and a backward pass for each shape (rows, source width, target width), without an update."""
    sums = module.update_sums.clone()
    for shape in shapes:
        if trainer.accumulate_grad_batches == 1:
            module.zero_grad()  # as after every update; otherwise gradients accumulate
        loss = trainer.strategy.training_step(move_data_to_device(dummy_batch(*shape), module.device), 0)
        trainer.strategy.backward(loss, None)  # type: ignore[arg-type]
        del loss
    module.update_sums.copy_(sums)


class MemoryCheck(Callback):
    """Tries the largest micro-batches before the first update, so that memory runs out then or never."""

    def __init__(self, config: ExperimentConfig, planner: BatchPlanner) -> None:
        self.batching, self.planner = config.batching, planner

    def on_train_start(self, trainer: Trainer, pl_module: Any) -> None:
        tokens, micro_batches = self.batching.tokens_per_update, self.batching.micro_batches
        advice = (
            f"a micro-batch of {tokens // micro_batches:,} source and target tokens does not fit next to weights, "
            f"gradients and Adam's moments. Pass batching.micro_batches={2 * micro_batches} (smaller ones), a lower "
            f"batching.tokens_per_update={tokens}, or batching.max_tokens=auto"
        )
        # Room for threads, buffers and gaps between tensors: 64 MiB plus 5 % of weights, gradients and two moments.
        # Further gradient copies: the partial sums of an update's tree, and the gradients that another device sends.
        copies = max(trainer.accumulate_grad_batches.bit_length() - 2, 0) + (trainer.world_size > 1)
        size = 2**26 + int((0.2 + copies) * sum(parameter.nbytes for parameter in pl_module.parameters()))
        with enough_memory_or(advice):
            reserve = torch.empty(size, dtype=torch.uint8, device=pl_module.device)
            make_resident(pl_module, trainer.optimizers[0])
            try_shapes(trainer, pl_module, self.planner.largest_shapes())
            del reserve
        trainer.optimizers[0].zero_grad()


class Pace(NamedTuple):
    seconds: float  # per update
    tokens: float  # target tokens per update, without padding
    parameters: int


class Trial:
    """A model on the run's device, with gradients and optimizer state."""

    def __init__(self, config: ExperimentConfig, corpus: PreparedCorpus) -> None:
        self.config, self.corpus, self.trainer, self.grown = config, corpus, make_trainer(config), 0
        size = corpus.manifest.vocabulary_size
        self.module = TranslationModule(config.model, config.optim, size, config.seed)
        self.module.trainer = self.trainer
        self.trainer.strategy.connect(self.module)
        self.trainer.precision_plugin.convert_module(self.module)
        self.module.to(self.trainer.strategy.root_device).on_fit_start()
        self.optimizer = self.module.configure_optimizers()
        make_resident(self.module, self.optimizer)

    def fits(self, batching: BatchingConfig) -> bool:
        """True if the largest micro-batches, enlarged by HEADROOM, fit in memory."""
        before, split = available_memory(), self.corpus.split("train")
        if self.module.device.type == "cpu" and 2 * HEADROOM * self.grown > before:
            return False  # on a CPU, running out of memory kills the process instead of raising an error
        self.trainer.accumulate_grad_batches = accumulation(batching.micro_batches, self.trainer.world_size)
        larger = replace(batching, tokens_per_update=int(HEADROOM * batching.tokens_per_update))
        try:
            planner = BatchPlanner(split.source_lengths, split.target_lengths, larger, seed=1)
            try_shapes(self.trainer, self.module, planner.largest_shapes())
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            return False
        finally:
            self.optimizer.zero_grad(set_to_none=False)
            gc.collect()
        self.grown = max(self.grown, before - available_memory())
        return True

    def pace(self, seconds: float = TIMED_SECONDS) -> Pace:
        """Train for some seconds; the first updates, which compile kernels and allocate memory, do not count."""
        data, strategy = UpdateDataModule(self.corpus, self.config), self.trainer.strategy
        tokens, times = list[int](), list[float]()
        for number in count():
            begin = time.monotonic()
            planned = data.planner.update(number)
            for micro_batch in planned:
                batch = move_data_to_device(data.batches.batch(micro_batch), self.module.device)
                strategy.backward(strategy.training_step(batch, 0), None)  # type: ignore[arg-type]
            self.optimizer.step()
            self.optimizer.zero_grad()
            synchronize(self.module.device)
            tokens.append(planned[0].size.target_tokens)
            times.append(time.monotonic() - begin)
            if sum(times[WARM_UP:]) > min(seconds, TIMED_SECONDS) or sum(times) > 3 * seconds:
                break
        parameters = sum(parameter.numel() for parameter in self.module.parameters())
        # In the trial, one process did the work of all; dividing it saves no time on a CPU, where they share the cores.
        at_once = 1 if self.module.device.type == "cpu" else self.trainer.world_size
        # The median, because the first updates after a pause can take ten times as long while memory is mapped.
        return Pace(median(times[WARM_UP:] or times) / at_once, sum(tokens) / len(tokens), parameters)
