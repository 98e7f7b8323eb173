"""Training on a processor whose cores other programs use too."""

import time
from typing import Any

import torch
from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from rich.console import Console

from nmt.kernels import ShortWaits, seconds_waited

SECONDS_BETWEEN = 1.0
CROWDED, FREE = 0.1, 0.02
"""Share of the time for which some thread had no core: above the first, threads that wait sleep; below the second, they
stay awake again."""


class Crowding(Callback):
    """Looks now and then whether threads have cores, so that they do not wait awake for those that have none."""

    def __init__(self, console: Console) -> None:
        self.console, self.waits, self.told = console, ShortWaits(), False
        self.looked, self.waited = 0.0, dict[str, float]()

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.looked, self.waited = time.monotonic(), seconds_waited()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        passed = time.monotonic() - self.looked
        if pl_module.device.type == "cpu" and torch.get_num_threads() > 1 and passed >= SECONDS_BETWEEN:
            waited = seconds_waited()
            longest = max((waited[thread] - self.waited.get(thread, 0.0) for thread in waited), default=0.0)
            self.looked, self.waited = self.looked + passed, waited
            self.decide(longest / passed, trainer.is_global_zero)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.waits.stop()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        self.waits.stop()

    def decide(self, share: float, tell: bool) -> None:
        """Shorten or lengthen the waits by the share of the time for which some thread had no core."""
        if share > CROWDED and not self.waits.started:
            self.waits.start()
            if tell and not self.told:
                self.console.print(
                    "notice: other programs use the processor's cores; beside them fewer threads may be faster "
                    f"(OMP_NUM_THREADS={torch.get_num_threads() // 2})"
                )
            self.told = True
        elif share < FREE and self.waits.started:
            self.waits.stop()
