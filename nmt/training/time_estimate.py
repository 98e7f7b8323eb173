"""How long a training will take, said before its first update."""

import time
from collections.abc import Iterator
from itertools import count

from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from rich.console import Console

from nmt.data import BatchPlanner
from nmt.training.memory_check import try_shapes
from nmt.training.module import TranslationModule
from nmt.training.peak_flops import synchronize

TIMED_SECONDS = 3.0
WORTHWHILE_UPDATES = 100
"""The time of fewer updates is not told: they are soon made."""
LONG_SECONDS = 6 * 3600.0
"""To a training on a processor that takes longer, a shorter one is offered."""


def in_words(seconds: float) -> str:
    """A rough duration: `about 25 minutes`."""
    for unit, size in (("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 1.5 * size:
            return f"about {seconds / size:.{int(seconds < 9.5 * size and unit != 'minutes')}f} {unit}"
    return f"about {max(seconds, 2):.0f} seconds"


def shapes_from(planner: BatchPlanner, update: int) -> Iterator[tuple[int, int, int]]:
    """Rows, source width and target width of the micro-batches of this update and those after it."""
    for number in count(update):
        for batch in planner.update(number):
            source, target = (lengths[batch.indices] for lengths in (planner.source_lengths, planner.target_lengths))
            yield len(batch.indices), int(source.max()), int(target.max())


class TimeEstimate(Callback):
    """Times the next micro-batches, without learning from them, and tells how long all updates will take.

    Validation, saving and the optimizer's steps are not counted: they take little beside the rest.
    """

    def __init__(self, planner: BatchPlanner, console: Console, max_seconds: float | None) -> None:
        """The process ends after `max_seconds`, if that comes first."""
        self.planner, self.console, self.max_seconds = planner, console, max_seconds

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        assert isinstance(pl_module, TranslationModule)
        left = trainer.max_steps - trainer.global_step
        if left < WORTHWHILE_UPDATES:
            return
        per_update = self.planner.micro_batches / trainer.world_size * self.seconds_per_micro_batch(trainer, pl_module)
        trainer.optimizers[0].zero_grad()
        seconds, more = left * per_update, ""
        if self.max_seconds is not None and self.max_seconds < seconds:
            more = f"; trainer.max_time stops it after {in_words(self.max_seconds)}"
        elif pl_module.device.type == "cpu" and seconds > LONG_SECONDS:
            more = "; on a processor, experiment=laptop takes half an hour or so"
        if trainer.is_global_zero:
            self.console.print(f"{in_words(seconds)} for {left:,} updates, {1 / per_update:,.2g} a second{more}")

    def seconds_per_micro_batch(self, trainer: Trainer, module: TranslationModule) -> float:
        """Their mean. The first one is not timed: kernels and memory are made for it."""
        shapes = shapes_from(self.planner, trainer.global_step)
        try_shapes(trainer, module, [next(shapes)])
        begin, seconds, made = time.monotonic(), 0.0, 0
        while not trainer.strategy.reduce_boolean_decision(seconds > TIMED_SECONDS):
            try_shapes(trainer, module, [next(shapes)])
            synchronize(module.device)
            seconds, made = time.monotonic() - begin, made + 1
        return seconds / made
