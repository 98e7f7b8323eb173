"""The base class of callbacks that run once per update."""

from typing import Any

from lightning import Callback, LightningModule, Trainer

from nmt.data import Batch
from nmt.training.module import TranslationModule


class UpdateCallback(Callback):
    """Calls `on_update_end` after each update; Lightning's own hooks run after each micro-batch."""

    batch: Batch | None = None
    """This process's last micro-batch of the last update; None before the first update."""

    def on_train_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        # max_epochs=-1 makes a run a single epoch, so batch_idx counts all its micro-batches, also
        # those before a restart (see TranslationModule.on_load_checkpoint).
        if (batch_idx + 1) % trainer.accumulate_grad_batches == 0:
            self.batch = batch
            self.on_update_end(trainer, pl_module, trainer.global_step)  # type: ignore[arg-type]

    def on_update_end(self, trainer: Trainer, module: TranslationModule, step: int) -> None:
        """`step` is the number of the update that was just made, counted from 1."""
        raise NotImplementedError
