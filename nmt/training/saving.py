"""When a run is saved, which of its checkpoints are kept, and when it stops."""

from pathlib import Path
from typing import Any

from lightning import LightningModule, Trainer
from lightning.pytorch.plugins import TorchCheckpointIO

from nmt.config import CheckpointConfig
from nmt.training.checkpoints import DirectCheckpointIO, RunState
from nmt.training.metrics import MetricsCallback
from nmt.training.run_folder import checkpoint_path, remove_older
from nmt.training.stopping import Interruptions
from nmt.training.updates import UpdateCallback
from nmt.training.validation import Validation


class CheckpointCallback(UpdateCallback):
    """Saves every so many updates, and after the last one, what is averaged; and between them for safety.

    Which checkpoints there are is decided by updates alone (`kept`), never by the clock: one that was saved after some
    minutes, or because the run was to stop, is replaced by the next.
    """

    def __init__(
        self,
        run: Path,
        config: CheckpointConfig,
        state: RunState,
        metrics: MetricsCallback,
        validation: Validation,
        interruptions: Interruptions,
    ) -> None:
        self.run, self.config, self.state = run, config, state
        self.metrics, self.validation, self.interruptions = metrics, validation, interruptions
        self.stopped_by = 0
        """The number of the signal that ended the run early; 0: none did."""

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        if type(trainer.strategy.checkpoint_io) is TorchCheckpointIO:
            trainer.strategy.checkpoint_io = DirectCheckpointIO()

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        super().on_train_start(trainer, pl_module)
        self.interruptions.begin(trainer.global_step)

    def on_update_end(self, trainer: Trainer, module: LightningModule, step: int) -> None:
        wish = self.interruptions.wish(trainer, module, step)
        self.stopped_by = wish.signal or self.stopped_by
        # Lightning looks at it behind each micro-batch, so it is set at the end of an update alone.
        trainer.should_stop = trainer.should_stop or bool(wish.signal) or wish.out_of_time
        if self.validation.improved:
            # Before the other one, from which a run goes on without looking back.
            trainer.save_checkpoint(self.run / "checkpoints" / "best.ckpt")
        if trainer.should_stop or step == trainer.max_steps or wish.save or step % self.config.every_steps == 0:
            trainer.save_checkpoint(checkpoint_path(self.run, step))
            self.interruptions.saved()
            if trainer.is_global_zero:
                remove_older(self.run, self.config)

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        self.metrics.save(self.state)
        self.state.validation = self.validation.state()
        checkpoint["nmt"] = vars(self.state).copy()

    def on_load_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        state = RunState(**checkpoint["nmt"])
        self.metrics.load(state)
        self.validation.load(state.validation)
