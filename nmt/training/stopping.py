"""Signals, trainer.max_time and minutes end a run early, or have it saved. All processes agree on the update."""

import signal
import time
from dataclasses import dataclass
from types import FrameType

import torch
from lightning import LightningModule, Trainer

from nmt.data.datamodule import STOPPING

ASK_SECONDS = 0.5
"""Processes that train together ask one another about so often: to ask is to wait for the device."""


@dataclass
class Wish:
    """A request to stop or to save at the end of an update."""

    signal: int = 0
    """The number of the signal that asked the run to stop; 0: none did."""
    out_of_time: bool = False
    save: bool = False


class Interruptions:
    """Signals, and times that are up, since training started or was last saved."""

    def __init__(self, save_minutes: float | None, max_seconds: float | None) -> None:
        self.save_minutes, self.max_seconds = save_minutes, max_seconds
        self.signal = 0
        # Those from before training: Lightning sets its own, and takes them back, in between.
        self.handlers = {number: signal.getsignal(number) for number in STOPPING}

    def begin(self, step: int) -> None:
        """Training starts behind this update; from now on signals are remembered."""
        self.start = self.last_save = time.monotonic()
        self.asked, self.next_question = (step, self.start), step + 1
        """The update at which the processes last asked one another, and when; the update at which they ask again."""
        for number in self.handlers:
            signal.signal(number, self.on_signal)

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Remember the first signal until the update has ended; a second one ends the process as usual."""
        self.signal = number
        signal.signal(number, self.handlers[signal.Signals(number)])

    def restore_handlers(self) -> None:
        for number, handler in self.handlers.items():
            signal.signal(number, handler)

    def saved(self) -> None:
        self.last_save = time.monotonic()

    def own_wish(self, now: float) -> Wish:
        return Wish(
            self.signal,
            self.max_seconds is not None and now - self.start >= self.max_seconds,
            self.save_minutes is not None and now - self.last_save >= 60 * self.save_minutes,
        )

    def wish(self, trainer: Trainer, module: LightningModule, step: int) -> Wish:
        """The wishes of all processes at the end of this update; the same on each of them."""
        now = time.monotonic()
        own = self.own_wish(now)
        if trainer.world_size == 1:
            return own
        if step < self.next_question:
            return Wish()
        update_seconds = (now - self.asked[1]) / (step - self.asked[0])
        values = torch.tensor([own.signal, own.out_of_time, own.save, update_seconds], device=module.device)
        agreed = trainer.strategy.reduce(values, reduce_op="max")
        assert isinstance(agreed, torch.Tensor)
        number, out_of_time, save, slowest = agreed.tolist()
        self.asked, self.next_question = (step, now), step + max(1, int(ASK_SECONDS / max(slowest, 1e-6)))
        return Wish(int(number), bool(out_of_time), bool(save))
