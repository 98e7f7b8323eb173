"""What a run tells of itself: loss, speed, utilisation and cost, in the logs and on the progress line."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import Timer
from rich.console import Console

from nmt.data.planning import UpdateSize
from nmt.hardware import processor
from nmt.model.flops import training_flops
from nmt.training.environment import write_environment
from nmt.training.logbook import Logger, open_loggers
from nmt.training.module import TranslationModule
from nmt.training.peak_flops import peak_flops_per_second, precision_dtype, synchronize
from nmt.training.progress import ProgressLine
from nmt.training.updates import UpdateCallback

NOTHING = UpdateSize(0, 0, 0, 0, 0, 0)


def device_name(module: LightningModule) -> str:
    """What the model runs on, in words."""
    if module.device.type == "cuda":
        return torch.cuda.get_device_name(module.device)
    return f"{module.device.type} ({torch.get_num_threads()} threads)"


class Interval(NamedTuple):
    """What has been trained on since the last report; a rejected update counts, for it took its time."""

    size: UpdateSize = NOTHING
    flops: int = 0

    def with_update(self, size: UpdateSize, flops: int) -> "Interval":
        return Interval(self.size + size, self.flops + flops)


class MetricsCallback(UpdateCallback):
    """Reports every `every` updates: the loss and perplexity (without smoothing) of these updates, and their cost.

    Seconds of an update are section 5.2's, cost is Table 2's.
    """

    def __init__(self, run: Path, every: int, console: Console, loggers: list[str], config: dict[str, Any]) -> None:
        self.run, self.every, self.console, self.names, self.config = run, every, console, loggers, config
        self.seconds = 0.0
        """Training time so far, over all restarts: of updates, and of saving them, without rehearsal and validation."""
        self.tokens = 0
        """Target tokens trained on so far."""
        self.flops = 0
        """Floating-point operations that the model needed so far (nmt/model/flops.py)."""
        self.cost = 0.0
        """Seconds x devices x sustained FLOP/s so far, as the paper reckons (Table 2, section 6.1)."""
        self.peaks: dict[str, float] = {}
        """FLOP/s that all devices together show in matrix products: measured once in a run for each setting, so that
        a machine that is busy when a run goes on does not change what it is measured against."""
        self.interval = Interval()
        self.measured, self.elapsed = Interval(), 0.0
        """The part of the interval that this process has made, and the training time that it took."""
        self.loggers: list[Logger] = []
        self.line = ProgressLine(console, Timer(config["trainer"]["max_time"]).time_remaining())

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        super().on_train_start(trainer, pl_module)
        self.devices = f"{trainer.world_size} x {device_name(pl_module)}"
        self.peak = self.find_peak(trainer, pl_module.device)
        if trainer.is_global_zero:
            write_environment(self.run, trainer, self.devices, self.peaks)
            self.loggers = open_loggers(self.names, self.run, trainer.global_step, self.config)
            self.line.start(trainer.global_step, trainer.max_steps)
        self.clock = time.monotonic()

    def find_peak(self, trainer: Trainer, device: torch.device) -> float:
        """What this setting showed when it was first met in this run."""
        beneath = [processor()] if device.type == "cpu" else []
        setting = [self.devices, *beneath, str(trainer.precision), torch.get_float32_matmul_precision()]
        key = ", ".join(setting)
        if key not in self.peaks:
            self.peaks[key] = trainer.world_size * peak_flops_per_second(device, precision_dtype(trainer.precision))
        return self.peaks[key]

    def on_update_end(self, trainer: Trainer, module: LightningModule, step: int) -> None:
        assert isinstance(module, TranslationModule)
        self.count(module, self.batch.size)
        if trainer.is_global_zero:
            self.line.made(step)
        if step % self.every and step != trainer.max_steps:
            return
        metrics = self.metrics(module, step)
        self.report(step, metrics)
        if trainer.is_global_zero:
            self.line.report(step, metrics)

    def count(self, module: TranslationModule, size: UpdateSize) -> None:
        model = module.model
        flops = training_flops(model.config, model.vocabulary_size, size[:2], size[3:])
        self.interval, self.measured = (part.with_update(size, flops) for part in (self.interval, self.measured))
        self.flops += flops

    def metrics(self, module: TranslationModule, step: int) -> dict[str, float]:
        """Of the updates since the last report; its speed is that of those which this process has made."""
        loss, likelihood, tokens = module.take_sums()
        self.add_time()
        size, (measured, flops), elapsed = self.interval.size, self.measured, self.elapsed
        self.interval, self.measured, self.elapsed = Interval(), Interval(), 0.0
        self.tokens += int(tokens)
        return {
            "loss": loss / tokens if tokens else math.nan,
            "perplexity": math.exp(min(likelihood / tokens, 100)) if tokens else math.nan,
            "learning_rate": module.learning_rate(step),
            "gradient_norm": module.gradient_norm.item(),
            "tokens_per_second": measured.target_tokens / elapsed,
            "padding": size.padding,
            "mfu": flops / elapsed / self.peak,
            "seconds": self.seconds,
            "flops": self.flops,
            "cost": self.cost,
            "skipped": module.skipped,
        }

    def add_time(self) -> None:
        """Count the time since the clock was last looked at."""
        now = time.monotonic()
        passed, self.clock = now - self.clock, now
        self.seconds += passed
        self.elapsed += passed
        self.cost += passed * self.peak

    @contextmanager
    def paused(self, device: torch.device) -> Iterator[None]:
        """What goes on within is no training: it counts neither in time and cost nor in speed."""
        synchronize(device)
        self.add_time()
        yield
        self.clock = time.monotonic()

    def report(self, step: int, metrics: dict[str, float]) -> None:
        """Write metrics into the logs; on the first process alone."""
        for logger in self.loggers:
            logger.write(step, metrics)

    def state_dict(self) -> dict[str, Any]:
        self.add_time()
        state = {key: getattr(self, key) for key in ("seconds", "tokens", "flops", "cost", "devices")}
        return {
            **state,
            "peaks": list(map(list, self.peaks.items())),
            "interval_size": list(self.interval.size),
            "interval_flops": self.interval.flops,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for key in ("seconds", "tokens", "flops", "cost"):
            setattr(self, key, state_dict[key])
        self.peaks = dict(state_dict.get("peaks", []))  # there was none in the first checkpoints
        self.interval = Interval(UpdateSize(*state_dict["interval_size"]), state_dict["interval_flops"])

    def close(self) -> None:
        self.line.stop()
        for logger in self.loggers:
            logger.close()
