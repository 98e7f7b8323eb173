"""Callbacks that act when an update has ended, not after each of its micro-batches."""

from typing import Any

from lightning import Callback, LightningModule, Trainer

from nmt.data.prepared import Batch


class UpdateCallback(Callback):
    """Calls `on_update_end` once after each update."""

    last_step = 0
    batch: Batch
    """The last micro-batch."""

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.last_step = trainer.global_step

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if trainer.global_step != self.last_step:
            self.last_step, self.batch = trainer.global_step, batch
            self.on_update_end(trainer, pl_module, self.last_step)

    def on_update_end(self, trainer: Trainer, module: LightningModule, step: int) -> None:
        """`step` updates have been made."""
