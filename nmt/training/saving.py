"""When a run saves a checkpoint, and when it stops early."""

import os
import signal
import time
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any

from lightning import LightningModule, Trainer

from nmt.config import CheckpointConfig, NMTError
from nmt.data import STOPPING
from nmt.training.callback import UpdateCallback
from nmt.training.checkpoint_io import DirectCheckpointIO
from nmt.training.checkpoints import RunState
from nmt.training.environments import has_other_environment
from nmt.training.machine import devices_in_words
from nmt.training.module import REQUESTS, TranslationModule
from nmt.training.run_folder import prune
from nmt.training.validation import Validation

AGREEMENT_UPDATES = 10
"""Several GPUs check only this often whether to stop or save, because a check waits for the GPU."""


@dataclass
class Requests:
    """Actions after an update. The processes add up their requests, so that all act alike."""

    save: bool = False
    time_is_up: bool = False
    signals: tuple[bool, ...] = (False,) * len(STOPPING)
    """Whether to stop for each of the signals."""

    @property
    def stop(self) -> bool:
        return self.time_is_up or any(self.signals)

    def flags(self) -> list[bool]:
        """The requests as flags, one for each of TranslationModule's sums for requests."""
        return [self.save, self.time_is_up, *self.signals]

    @classmethod
    def of_counts(cls, counts: list[float]) -> "Requests":
        """The requests of any process; `counts` are the sums of the processes' flags."""
        save, time_is_up, *signals = [count > 0 for count in counts]
        return cls(save, time_is_up, tuple(signals))


class CheckpointCallback(UpdateCallback):
    """Saves checkpoints for averaging and, at time intervals, for safety; stops runs on request."""

    def __init__(
        self,
        config: CheckpointConfig,
        state: RunState,
        validation: Validation,
        max_seconds: float | None,
    ) -> None:
        self.config = config
        self.state = state
        self.validation = validation
        self.max_seconds = max_seconds
        self.metrics = validation.metrics
        self.run = validation.metrics.run
        self.signal = 0  # the last signal sent to this process; 0: none
        self.stopped_by = 0  # the signal that stopped the run early, in any process; 0: none
        # Signal handlers from before training. Lightning installs its own and restores these
        # afterwards.
        self.handlers = {number: signal.getsignal(number) for number in STOPPING}

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        # Each process has looked for the newest checkpoint by itself. If they load different ones,
        # their updates would not match, and training would hang or diverge.
        ours = str(trainer.ckpt_path)
        if trainer.strategy.broadcast(ours) != ours:
            raise NMTError(
                f"{self.run}: the processes see different checkpoints; "
                "all nodes must share this folder"
            )

    def catch_signals(self, *arguments: Any) -> None:
        # Lightning has installed its own handlers by now, which these replace.
        for number in self.handlers:
            signal.signal(number, self.on_signal)
        self.start = time.monotonic()
        self.last_save = self.start

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        # The current update finishes first; a second signal stops the process as usual.
        self.signal = number
        if not self.metrics.line.console.quiet:
            # Not `print`, which may already be running in the code that the signal interrupted.
            os.write(
                2, b"stopping after this update; a second signal stops at once, without saving\n"
            )
        # The next signal of this kind finds the handler from before training.
        signal.signal(number, self.handlers[signal.Signals(number)])

    def restore_handlers(self) -> None:
        for number, handler in self.handlers.items():
            signal.signal(number, handler)

    def our_requests(self) -> Requests:
        """The requests of this process now."""
        now = time.monotonic()
        requests = Requests(signals=tuple(self.signal == number for number in STOPPING))
        minutes = self.config.every_minutes
        if minutes is not None:
            requests.save = now - self.last_save >= 60 * minutes
        if self.max_seconds is not None:
            requests.time_is_up = now - self.start >= self.max_seconds
        return requests

    def on_after_backward(self, trainer: Trainer, pl_module: Any) -> None:
        """Add requests to the sums that the processes exchange with the gradients.

        That way, all processes stop after the same update without another exchange.
        """
        if trainer.world_size == 1:
            return
        for place, requested in enumerate(self.our_requests().flags(), start=-REQUESTS):
            if requested:
                # Any positive count is a request. Lightning calls callbacks before the module's
                # hook of the same name, which exchanges these sums.
                pl_module.update_sums[place] = 1

    def agreed_requests(self, trainer: Trainer, module: TranslationModule, step: int) -> Requests:
        """The requests that all processes follow after update `step`."""
        if trainer.world_size == 1:
            return self.our_requests()
        # Reading the counts waits for the device: free on a CPU, not on a GPU that runs behind.
        if module.device.type == "cpu" or step % AGREEMENT_UPDATES == 0:
            return Requests.of_counts(module.requests.tolist())
        return Requests()

    def on_update_end(self, trainer: Trainer, module: TranslationModule, step: int) -> None:
        requests = self.agreed_requests(trainer, module, step)
        self.stopped_by = 0
        for number, sent in zip(STOPPING, requests.signals, strict=True):
            if sent:
                self.stopped_by = number
                break
        # Lightning reads should_stop after every micro-batch, so set it only here, at the end of an
        # update.
        trainer.should_stop = trainer.should_stop or requests.stop
        if self.validation.improved:
            # Save best.ckpt first: a run killed after the regular checkpoint would resume without
            # saving best.ckpt.
            trainer.save_checkpoint(self.run / "checkpoints" / "best.ckpt")
        # A run that stops always saves, so that no update is lost.
        is_last = trainer.should_stop or step == trainer.max_steps
        if is_last or requests.save or step % self.config.every_steps == 0:
            path = self.run / "checkpoints" / f"step={step:08d}.ckpt"
            # No checkpoint is removed before the one that replaces it is on disk.
            trainer.save_checkpoint(path, storage_options=partial(prune, self.run, self.config))
            self.last_save = time.monotonic()

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        # The models are averaged from the files, so all of them must be on disk.
        self.writer(trainer).finish()

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        # The second interrupt raises KeyboardInterrupt. After any other error, the write continues.
        if isinstance(exception, KeyboardInterrupt):
            self.writer(trainer).abandon()

    def writer(self, trainer: Trainer) -> DirectCheckpointIO:
        writer = trainer.strategy.checkpoint_io
        assert isinstance(writer, DirectCheckpointIO)
        return writer

    def on_save_checkpoint(
        self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        assert isinstance(pl_module, TranslationModule)
        pl_module.check_finite()  # so that no checkpoint contains a non-finite update
        checkpoint["nmt"] = {
            **vars(self.state),
            # These replace the placeholders that RunState has for tokens, seconds and devices.
            **self.metrics.state(pl_module),
            "validation": {"best": self.validation.best, "worse": self.validation.worse},
        }

    def on_load_checkpoint(
        self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        state = checkpoint["nmt"]
        # From the entry "nmt", which is checked when it is read, not from callbacks' own entries.
        self.metrics.load(state["seconds"], state["metrics"])
        self.validation.best = state["validation"]["best"]
        self.validation.worse = state["validation"]["worse"]
        self.record_move(trainer, state, checkpoint["global_step"])

    def record_move(self, trainer: Trainer, before: dict[str, Any], update: int) -> None:
        """Add `update` to `moved` if the run continues in another environment.

        `before` is the entry "nmt" of the checkpoint of that update.
        """
        self.state.moved = [*before.get("moved", [])]
        now = {**vars(self.state), "devices": devices_in_words(trainer)}
        if has_other_environment(before, now):
            self.state.moved.append(update)
