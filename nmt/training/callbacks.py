"""Callbacks that run once for each update, whereas Lightning counts micro-batches, and a check before the first one."""

from collections.abc import Iterable
from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer
from lightning.fabric.utilities import move_data_to_device
from torch.optim import Optimizer

from nmt.config import BatchingConfig
from nmt.data import Batch, BatchPlanner, dummy_batch
from nmt.errors import enough_memory_or
from nmt.training.module import TranslationModule


class UpdateCallback(Callback):
    """Calls `on_update_end` once after each update."""

    last_step = 0
    batch: Batch | None = None
    """The last micro-batch of the last update; None before the first update of this process."""

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.last_step = trainer.global_step

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if trainer.global_step != self.last_step:
            self.last_step, self.batch = trainer.global_step, batch
            self.on_update_end(trainer, pl_module, self.last_step)  # type: ignore[arg-type]

    def on_update_end(self, trainer: Trainer, module: TranslationModule, step: int) -> None:
        """`step` updates have been made."""


def make_resident(module: TranslationModule, optimizer: Optimizer) -> None:
    """Allocate gradients and Adam's moments, which otherwise exist only from the second update on.

    From gradients of zero, Adam makes moments of zero and does not move; the first update then finds these moments.
    """
    for parameter in module.parameters():
        parameter.grad = torch.zeros_like(parameter)
    if not optimizer.state:
        optimizer.step()
        for state in optimizer.state.values():
            state.get("step", torch.zeros(())).zero_()


def try_shapes(trainer: Trainer, module: TranslationModule, shapes: Iterable[tuple[int, int, int]]) -> None:
    """A training step and its backward pass for micro-batches of (rows, source and target width), without an update."""
    sums = module.update_sums.clone()
    for shape in shapes:
        if trainer.accumulate_grad_batches == 1:
            module.zero_grad()  # as after every update; otherwise a micro-batch meets the gradients of another
        loss = trainer.strategy.training_step(move_data_to_device(dummy_batch(*shape), module.device), 0)
        trainer.strategy.backward(loss, None)  # type: ignore[arg-type]
        del loss
    module.update_sums.copy_(sums)


class MemoryCheck(Callback):
    """Tries the largest micro-batches before the first update, so that memory runs out then or never."""

    def __init__(self, planner: BatchPlanner, batching: BatchingConfig) -> None:
        self.planner, self.batching = planner, batching

    def on_train_start(self, trainer: Trainer, pl_module: Any) -> None:
        tokens, micro_batches = self.batching.tokens_per_update, self.batching.micro_batches
        advice = (
            f"a micro-batch of {tokens // micro_batches:,} source and as many target tokens does not fit beside "
            f"weights, gradients and Adam's moments. Pass batching.micro_batches={2 * micro_batches} (smaller ones), "
            f"a lower batching.tokens_per_update={tokens}, or batching.max_tokens=auto"
        )
        # For threads, buffers and gaps between tensors: 64 MiB, and 5 % of weights, gradients, and two moments.
        size = 2**26 + sum(parameter.nbytes for parameter in pl_module.parameters()) // 5
        with enough_memory_or(advice):
            reserve = torch.empty(size, dtype=torch.uint8, device=pl_module.device)
            make_resident(pl_module, trainer.optimizers[0])
            try_shapes(trainer, pl_module, self.planner.largest_shapes())
            del reserve
        trainer.optimizers[0].zero_grad()
