"""When a run is saved, which of its checkpoints are kept, and when it stops."""

import signal
import time
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist
from lightning import LightningModule, Trainer
from lightning.pytorch.plugins import TorchCheckpointIO

from nmt.config import CheckpointConfig
from nmt.data import STOPPING
from nmt.errors import SameForAll
from nmt.training.checkpoints import DirectCheckpointIO, RunState
from nmt.training.module import TranslationModule
from nmt.training.run_folder import checkpoint_path, remove_older
from nmt.training.updates import UpdateCallback
from nmt.training.validation import Validation

AGREEMENT_SECONDS = 0.5
"""Approximate time between two agreements of the processes on stopping and saving. Each one waits for the device."""


class CheckpointCallback(UpdateCallback):
    """Saves the checkpoints that will be averaged, and others in between for safety; stops the run early on request.

    Only the number of the update decides which checkpoints are kept (`kept`), never the clock: one that was saved
    after some minutes, or because the run had to stop, is replaced by the next.
    """

    def __init__(
        self, config: CheckpointConfig, state: RunState, validation: Validation, max_seconds: float | None
    ) -> None:
        self.config, self.state, self.validation, self.max_seconds = config, state, validation, max_seconds
        self.metrics, self.run = validation.metrics, validation.metrics.run
        self.signal = 0
        """The last signal that this process was sent; 0: none."""
        self.stopped_by = 0
        """The signal that ended the run early; 0: none."""
        # The handlers from before training. Lightning sets its own in the meantime, and restores these.
        self.handlers = {number: signal.getsignal(number) for number in STOPPING}

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        if type(trainer.strategy.checkpoint_io) is TorchCheckpointIO:
            trainer.strategy.checkpoint_io = DirectCheckpointIO()
        self.check_shared_filesystem(trainer)

    def check_shared_filesystem(self, trainer: Trainer) -> None:
        """NMTError on all processes where one of them would resume from another checkpoint than the others."""
        seen = [str(trainer.ckpt_path)] * trainer.world_size
        if dist.is_initialized():
            dist.all_gather_object(seen, str(trainer.ckpt_path))
        if len(set(seen)) > 1:
            raise SameForAll(
                f"the processes do not see the same checkpoints in {self.run}: "
                "all nodes need the same folder there, on a file system that they share"
            )

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        super().on_train_start(trainer, pl_module)
        self.start = self.last_save = time.monotonic()
        self.agreed_step, self.agreed_time, self.next_agreement = self.last_step, self.start, self.last_step + 1
        for number in self.handlers:
            signal.signal(number, self.on_signal)

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Remember a signal until the update has ended; a second one ends the process as usual."""
        self.signal = number
        signal.signal(number, self.handlers[signal.Signals(number)])

    def restore_handlers(self) -> None:
        for number, handler in self.handlers.items():
            signal.signal(number, handler)

    def requests(self, trainer: Trainer, module: LightningModule, step: int) -> tuple[int, bool, bool]:
        """The signal to stop for (0: none), whether time is up, and whether to save: the same on every process."""
        now, minutes = time.monotonic(), self.config.every_minutes
        out_of_time = self.max_seconds is not None and now - self.start >= self.max_seconds
        save = minutes is not None and now - self.last_save >= 60 * minutes
        if trainer.world_size == 1:
            return self.signal, out_of_time, save
        if step < self.next_agreement:
            return 0, False, False
        update_seconds = (now - self.agreed_time) / (step - self.agreed_step)
        own = torch.tensor([self.signal, out_of_time, save, update_seconds], device=module.device)
        agreed = trainer.strategy.reduce(own, reduce_op="max")
        assert isinstance(agreed, torch.Tensor)
        number, out_of_time, save, slowest = agreed.tolist()
        self.agreed_step, self.agreed_time = step, now
        self.next_agreement = step + max(1, int(AGREEMENT_SECONDS / max(slowest, 1e-6)))
        return int(number), bool(out_of_time), bool(save)

    def on_update_end(self, trainer: Trainer, module: LightningModule, step: int) -> None:
        number, out_of_time, save = self.requests(trainer, module, step)
        self.stopped_by = number or self.stopped_by
        # Lightning reads should_stop after every micro-batch, so it is only set here, at the end of an update.
        trainer.should_stop = trainer.should_stop or bool(number) or out_of_time
        if self.validation.improved:
            # Before the regular checkpoint: a run resumes from that one, and would not save this one again.
            trainer.save_checkpoint(self.run / "checkpoints" / "best.ckpt")
        if trainer.should_stop or step == trainer.max_steps or save or step % self.config.every_steps == 0:
            trainer.save_checkpoint(checkpoint_path(self.run, step))
            self.last_save = time.monotonic()
            if trainer.is_global_zero:
                remove_older(self.run, self.config)

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        assert isinstance(pl_module, TranslationModule)
        self.metrics.save(self.state, pl_module)
        self.state.validation = self.validation.state()
        checkpoint["nmt"] = vars(self.state).copy()

    def on_load_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        state = RunState(**checkpoint["nmt"])
        self.metrics.load(state)
        self.validation.load(state.validation)
