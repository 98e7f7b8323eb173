"""What a run tells of itself: loss, speed, utilisation and cost, in the logs and on the progress line."""

import math
import time
from pathlib import Path
from typing import Any, NamedTuple

import torch
from lightning import LightningModule, Trainer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from nmt.data.planning import UpdateSize
from nmt.model.flops import training_flops
from nmt.training.environment import write_environment
from nmt.training.logbook import Logger, open_loggers
from nmt.training.module import TranslationModule
from nmt.training.peak import matrix_product_peak, precision_dtype
from nmt.training.updates import UpdateCallback

NOTHING = UpdateSize(0, 0, 0, 0, 0, 0)
LINE = (
    "loss {loss:.3f}  ppl {perplexity:.2f}  lr {learning_rate:.2e}  grad {gradient_norm:.2f}  "
    "{tokens_per_second:,.0f} tokens/s  padding {padding:.0%}  MFU {mfu:.0%}  {cost:.1e} FLOP"
)


def device_name(module: LightningModule) -> str:
    """What the model runs on, in words."""
    if module.device.type == "cuda":
        return torch.cuda.get_device_name(module.device)
    return f"{module.device.type} ({torch.get_num_threads()} threads)"


class Interval(NamedTuple):
    """What has been trained on since the last report; a rejected update counts, for it took its time."""

    size: UpdateSize = NOTHING
    flops: int = 0


class Meters(UpdateCallback):
    """Reports every `every` updates: the loss and perplexity (without smoothing) of these updates, and their cost.

    Seconds of an update are section 5.2's, cost is Table 2's.
    """

    def __init__(self, run: Path, every: int, console: Console, loggers: list[str], config: dict[str, Any]) -> None:
        self.run, self.every, self.console, self.names, self.config = run, every, console, loggers, config
        self.seconds = 0.0
        """Training time so far, over all restarts."""
        self.tokens = 0
        """Target tokens trained on so far."""
        self.flops = 0
        """Floating-point operations that the model needed so far (nmt/model/flops.py)."""
        self.cost = 0.0
        """Seconds x devices x sustained FLOP/s so far, as the paper reckons (Table 2, section 6.1)."""
        self.interval = Interval()
        self.loggers: list[Logger] = []
        self.progress = Progress(
            TextColumn("training"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[metrics]}"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        super().on_train_start(trainer, pl_module)
        dtype = precision_dtype(trainer.precision)
        self.peak = trainer.world_size * matrix_product_peak(pl_module.device, dtype)
        """FLOP/s that all devices together show in matrix products."""
        self.clock = self.last_report = time.monotonic()
        self.devices = f"{trainer.world_size} x {device_name(pl_module)}"
        if trainer.is_global_zero:
            write_environment(self.run, trainer, self.devices)
            self.loggers = open_loggers(self.names, self.run, trainer.global_step, self.config)
            self.task = self.progress.add_task("", total=trainer.max_steps, completed=trainer.global_step, metrics="")
            self.progress.start()

    def on_update_end(self, trainer: Trainer, module: LightningModule, step: int) -> None:
        assert isinstance(module, TranslationModule)
        self.count(module, self.batch.size)
        if trainer.is_global_zero:
            self.progress.update(self.task, completed=step)
        if step % self.every and step != trainer.max_steps:
            return
        metrics = self.metrics(module, step)
        self.report(step, metrics)
        if trainer.is_global_zero:
            self.progress.update(self.task, metrics=LINE.format(**metrics))

    def count(self, module: TranslationModule, size: UpdateSize) -> None:
        model = module.model
        flops = training_flops(model.config, model.vocabulary_size, size[:2], size[3:])
        self.interval = Interval(self.interval.size + size, self.interval.flops + flops)
        self.flops += flops

    def metrics(self, module: TranslationModule, step: int) -> dict[str, float]:
        """Of the updates since the last report."""
        loss, likelihood, tokens = module.take_sums()
        now = time.monotonic()
        elapsed, self.last_report = now - self.last_report, now
        (size, flops), self.interval = self.interval, Interval()
        self.add_time(now)
        self.tokens += int(tokens)
        return {
            "loss": loss / tokens if tokens else math.nan,
            "perplexity": math.exp(min(likelihood / tokens, 100)) if tokens else math.nan,
            "learning_rate": module.learning_rate(step),
            "gradient_norm": module.gradient_norm.item(),
            "tokens_per_second": tokens / elapsed,
            "padding": size.padding,
            "mfu": flops / elapsed / self.peak,
            "seconds": self.seconds,
            "flops": self.flops,
            "cost": self.cost,
            "skipped": module.skipped,
        }

    def add_time(self, now: float) -> None:
        self.seconds += now - self.clock
        self.cost += (now - self.clock) * self.peak
        self.clock = now

    def report(self, step: int, metrics: dict[str, float]) -> None:
        """Write metrics into the logs; on the first process alone."""
        for logger in self.loggers:
            logger.write(step, metrics)

    def exclude(self, seconds: float) -> None:
        """Something else than training took so long: it does not count in tokens/s and utilisation."""
        self.last_report += seconds

    def state_dict(self) -> dict[str, Any]:
        self.add_time(time.monotonic())
        state = {key: getattr(self, key) for key in ("seconds", "tokens", "flops", "cost", "devices")}
        return {**state, "interval_size": list(self.interval.size), "interval_flops": self.interval.flops}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for key in ("seconds", "tokens", "flops", "cost"):
            setattr(self, key, state_dict[key])
        self.interval = Interval(UpdateSize(*state_dict["interval_size"]), state_dict["interval_flops"])

    def close(self) -> None:
        self.progress.stop()
        for logger in self.loggers:
            logger.close()
