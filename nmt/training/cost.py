"""Time (section 5.2) and cost (section 6.1, Table 2) of training."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lightning import Trainer

from nmt.data import UpdateSize
from nmt.model import Transformer, training_flops, work_of
from nmt.training.module import TranslationModule
from nmt.training.peak import (
    fastest_flops_per_second,
    peak_flops_per_second,
    precision_dtype,
    square_products,
    synchronize,
)

PEAK_SECONDS = 60.0
"""Seconds between two short measurements of a CPU's peak, which other programs lower."""

NOTHING = UpdateSize(0, 0, 0, 0, 0, 0)


def update_flops(model: Transformer, size: UpdateSize) -> int:
    """The total FLOPs of updates whose sizes add up to this size."""
    tokens = (size.source_tokens, size.target_tokens)
    pairs = (size.encoder_pairs, size.decoder_pairs, size.cross_pairs)
    return training_flops(model.config, model.vocabulary_size, tokens, pairs, work_of(model))


class TrainingCost:
    """Measures the time (section 5.2) and cost (Table 2) of updates and of saving.

    Validation does not count. The cost is the training time times the number of devices times the
    FLOP/s that a device sustains (section 6.1), measured with its fastest matrix products.
    """

    def __init__(self) -> None:
        # Totals across all restarts.
        self.seconds = 0.0
        self.flops = 0
        self.cost = 0.0
        self.process_seconds = 0.0  # training time of this process
        # Size and training time of all updates since the last report, including skipped ones, which
        # take just as long.
        self.interval = NOTHING
        self.interval_seconds = 0.0
        self.peak = 0.0  # FLOP/s of all devices together
        self.peak_measured = 0.0  # when it was measured last, on the clock of time.monotonic()
        self.clock = 0.0  # when time was added last, on the same clock

    def measure_peak(self, trainer: Trainer, module: TranslationModule) -> None:
        """Measure the peak before training."""
        self.model = module.model
        self.device = module.device
        self.processes = trainer.world_size
        self.dtype = precision_dtype(trainer.precision)
        self.peak = self.processes * peak_flops_per_second(self.device, self.dtype)
        self.peak_measured = time.monotonic()

    def start_clock(self) -> None:
        self.clock = time.monotonic()

    def add_time(self) -> None:
        """Add the time that has passed since the last call to all sums."""
        now = time.monotonic()
        passed = now - self.clock
        self.clock = now
        self.seconds += passed
        self.process_seconds += passed
        self.interval_seconds += passed
        self.cost += passed * self.peak

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Exclude the time that the block takes from training time, cost and speed."""
        # The time of kernels that are still queued belongs to training.
        synchronize(self.device)
        self.add_time()
        yield
        self.start_clock()

    def add_update(self, size: UpdateSize) -> None:
        self.interval += size
        self.flops += update_flops(self.model, size)

    def start_interval(self) -> None:
        """Forget the updates since the last report."""
        self.interval = NOTHING
        self.interval_seconds = 0.0

    def speed(self) -> float:
        """The FLOP/s since the last report."""
        return update_flops(self.model, self.interval) / self.interval_seconds

    def measure_peak_again(self) -> None:
        """Raise the peak if training, or a short measurement on a CPU, is faster."""
        self.add_time()
        speed = self.speed()
        if speed > self.peak:
            # Other programs kept the devices busy when the peak was measured.
            peak_flops_per_second.cache_clear()
            with self.paused():
                peak = self.processes * peak_flops_per_second(self.device, self.dtype)
                self.raise_peak(max(speed, peak))
        elif self.device.type == "cpu" and time.monotonic() - self.peak_measured >= PEAK_SECONDS:
            with self.paused():
                products = square_products(self.device, self.dtype)
                self.raise_peak(self.processes * fastest_flops_per_second(products, self.device))
            self.peak_measured = time.monotonic()

    def raise_peak(self, peak: float) -> None:
        """Correct the peak if it is higher, and the cost of the updates that this process made."""
        if peak > self.peak:
            # Only for this process: earlier processes may have run on other devices.
            self.cost += self.process_seconds * (peak - self.peak)
            self.peak = peak

    def state(self) -> dict[str, Any]:
        """The state to store in a checkpoint, apart from `seconds`."""
        return {
            "flops": self.flops,
            "cost": self.cost,
            "elapsed": self.interval_seconds,
            "interval": list(self.interval),
        }

    def load(self, seconds: float, state: dict[str, Any]) -> None:
        self.seconds = seconds
        self.flops = state["flops"]
        self.cost = state["cost"]
        self.interval_seconds = state["elapsed"]
        self.interval = UpdateSize(*state["interval"])
