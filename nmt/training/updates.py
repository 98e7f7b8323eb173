"""Where training stands: Lightning counts micro-batches, everything else here counts updates."""

from typing import Any

from lightning import Callback, LightningModule, Trainer

from nmt.data.prepared import Batch


class UpdateCallback(Callback):
    """Calls `on_update_end` once after each update."""

    last_step = 0
    batch: Batch | None = None
    """The last micro-batch of the last update; None before this process has made one."""

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


class MicroBatchCount(Callback):
    """Keeps Lightning's count of micro-batches where the stream of updates is.

    Lightning steps the optimizer whenever its count, which checkpoints hold, is a multiple of those that are
    accumulated. The stream begins with the first micro-batch of update `global_step`, so the count must be that of
    whole updates, by the number of devices of now.
    """

    def on_load_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        done = checkpoint["global_step"] * trainer.accumulate_grad_batches
        progress = checkpoint["loops"]["fit_loop"]["epoch_loop.batch_progress"]
        for counts in (progress["total"], progress["current"]):
            counts.update(dict.fromkeys(counts, done))

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Batch, batch_idx: int) -> None:
        """`batch_idx` is Lightning's count; the micro-batch must be the one of that number."""
        update, number = divmod(batch_idx, trainer.accumulate_grad_batches)
        due = trainer.global_step, number * trainer.world_size + trainer.global_rank
        assert update == trainer.global_step, f"update {update} is counted where {trainer.global_step} is due"
        assert (batch.update, batch.micro_batch) == due, f"{batch.update, batch.micro_batch} came where {due} is due"
