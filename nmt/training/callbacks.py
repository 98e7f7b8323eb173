"""Callbacks that run once for each update, whereas Lightning counts micro-batches."""

from pathlib import Path
from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer

from nmt.data import Batch, UpdateDataModule
from nmt.errors import NMTError
from nmt.files import write_file
from nmt.training.module import TranslationModule

NAMED_LINES = 8
"""Lines of the training corpus that a message names; a file lists all of them."""


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

    def __init__(self, run: Path, updates: UpdateDataModule, every: int) -> None:
        self.run, self.updates, self.every = run, updates, every

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
        lines = [
            (planned.micro_batch, line)
            for planned in self.updates.planner.update(update)
            for line in self.updates.split.lines(planned.indices).tolist()
        ]
        path = self.run / "not_finite.tsv"
        write_file(path, "micro_batch\tline\n" + "".join(f"{micro_batch}\t{line}\n" for micro_batch, line in lines))
        named = ", ".join(f"{line:,}" for _, line in lines[:NAMED_LINES])
        raise NMTError(
            f"update {update + 1:,}: the gradient is not finite. Its {len(lines):,} sentences are lines {named} ... of "
            f"the training corpus, all listed in {path}; checkpoints are from before. Look at these lines, or pass "
            "optim.not_finite=skip, a lower optim.factor, or trainer.precision=32-true, with name=OTHER"
        )
