"""Callbacks that run once for each update, whereas Lightning counts micro-batches, and a check before the first one."""

from collections.abc import Iterable
from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer
from lightning.fabric.utilities import move_data_to_device
from torch.optim import Optimizer

from nmt.config import BatchingConfig
from nmt.data import Batch, BatchPlanner, UpdateDataModule, dummy_batch
from nmt.errors import NMTError, enough_memory_or
from nmt.training.module import TranslationModule

NAMED_LINES = 8
"""Lines of the training corpus that a message names."""
Shape = tuple[int, int, int]
"""Rows, source width and target width of a micro-batch."""


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
            assert isinstance(pl_module, TranslationModule)
            self.on_update_end(trainer, pl_module, self.last_step)

    def on_update_end(self, trainer: Trainer, module: TranslationModule, step: int) -> None:
        """`step` updates have been made."""


class GradientCheck(UpdateCallback):
    """Ends a run whose gradient is not finite, and names the sentences of that update.

    Checks every `every` updates, every update on a processor, where no device has to be waited for, and before each
    checkpoint, which therefore never holds such an update.
    """

    def __init__(self, updates: UpdateDataModule, every: int) -> None:
        self.updates, self.every = updates, every

    def on_update_end(self, trainer: Trainer, module: TranslationModule, step: int) -> None:
        if module.device.type == "cpu" or step % self.every == 0 or step == trainer.max_steps:
            self.on_save_checkpoint(trainer, module, {})

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """NMTError where the gradient of an update was not finite on any device."""
        assert isinstance(pl_module, TranslationModule)
        first = trainer.strategy.reduce(pl_module.not_finite.clone(), reduce_op="max")
        assert isinstance(first, torch.Tensor)
        if (update := int(first.item())) < 0:
            return
        parts = [self.updates.split.lines(planned.indices).tolist() for planned in self.updates.planner.update(update)]
        lines = [line for part in parts for line in part]
        raise NMTError(
            f"update {update + 1:,}: the gradient is not finite. Its {len(lines):,} sentences are lines "
            f"{', '.join(f'{line:,}' for line in lines[:NAMED_LINES])} ... of the training corpus; checkpoints are "
            "from before. Look at these lines, or pass optim.not_finite=skip, a lower optim.factor, or "
            "trainer.precision=32-true, with name=OTHER"
        )


def make_resident(module: TranslationModule, optimizer: Optimizer) -> None:
    """Allocate gradients and Adam's moments, which otherwise exist only from the second update on.

    From gradients of zero, Adam makes moments of zero and does not move; the first update then finds these moments.
    """
    for parameter in module.parameters():
        parameter.grad = torch.zeros_like(parameter)
    if not optimizer.state:
        optimizer.step()
        for state in optimizer.state.values():
            state["step"].zero_()


def try_shapes(trainer: Trainer, module: TranslationModule, shapes: Iterable[Shape]) -> None:
    """A training step and its backward pass for micro-batches of these shapes, without an update."""
    sums = module.update_sums.clone()
    for shape in shapes:
        if trainer.accumulate_grad_batches == 1:
            module.zero_grad()  # as after every update; otherwise a micro-batch meets the gradients of another
        batch = move_data_to_device(dummy_batch(*shape), module.device)
        loss = trainer.strategy.training_step(batch, 0)
        trainer.strategy.backward(loss, None)  # type: ignore[arg-type]
        del loss
    module.update_sums.copy_(sums)


class MemoryCheck(Callback):
    """Tries the largest micro-batches before the first update, so that memory runs out then or never."""

    def __init__(self, planner: BatchPlanner, batching: BatchingConfig) -> None:
        self.planner, self.batching = planner, batching

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        assert isinstance(pl_module, TranslationModule)
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
