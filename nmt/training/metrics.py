"""Loss, speed, utilisation and cost of a run, in the logs and on the progress line."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import torch
from lightning import LightningModule, Trainer
from rich.console import Console

from nmt.data import UpdateDataModule, UpdateSize
from nmt.hardware import processor
from nmt.model import training_flops
from nmt.training.checkpoints import RunState
from nmt.training.logbook import SHARE, VALIDATION_COLUMNS, Logger, open_loggers, source_column, write_environment
from nmt.training.module import TranslationModule
from nmt.training.peak_flops import peak_flops_per_second, precision_dtype, synchronize
from nmt.training.progress import ProgressLine
from nmt.training.updates import UpdateCallback

NOTHING = UpdateSize(0, 0, 0, 0, 0, 0)


def device_name(module: LightningModule) -> str:
    """The name of the model's device."""
    if module.device.type == "cuda":
        return torch.cuda.get_device_name(module.device)
    return f"{module.device.type} ({torch.get_num_threads()} threads)"


@cache
def peak_of(setting: str, device: torch.device, dtype: torch.dtype) -> float:
    """FLOP/s of a device, measured once in a process for each setting."""
    return peak_flops_per_second(device, dtype)


def flops_of(module: TranslationModule, size: UpdateSize) -> int:
    """Floating-point operations to train on updates of this size."""
    return training_flops(module.model.config, module.model.vocabulary_size, size[:2], size[3:])


class MetricsCallback(UpdateCallback):
    """Reports the loss, perplexity (without smoothing) and speed of every `every` updates, and the run's cost so far.

    Time is measured as in section 5.2, cost as in Table 2.
    """

    def __init__(
        self,
        run: Path,
        config: dict[str, Any],
        console: Console,
        max_seconds: float | None,
        updates: UpdateDataModule,
        domains: Sequence[str] = (),
    ) -> None:
        """`domains` are the parts of the validation set that have figures of their own."""
        self.run, self.config, self.console, self.updates = run, config, console, updates
        self.columns = [source_column(SHARE, name) for name in updates.shares(0)]
        self.columns += [source_column(column, name) for name in domains for column in VALIDATION_COLUMNS]
        self.every: int = config["trainer"]["log_every_n_steps"]
        self.seconds = 0.0
        """Training time over all restarts: updates and saving, but neither memory check nor validation."""
        self.tokens = 0
        """Target tokens trained on up to the last report."""
        self.flops = 0
        """Floating-point operations of the model so far (nmt/model/flops.py)."""
        self.cost = 0.0
        """Seconds x devices x sustained FLOP/s so far, as in the paper (Table 2, section 6.1)."""
        self.peaks: dict[str, float] = {}
        """Peak FLOP/s of all devices together in matrix products. Measured once in a run for each setting, because a
        machine that is busy when the run resumes would show a lower peak."""
        self.interval = NOTHING
        """Size of all updates since the last report, including skipped updates, which took as long."""
        self.measured, self.elapsed = NOTHING, 0.0
        """The part of the interval that this process has made, and its training time."""
        self.loggers: list[Logger] = []
        self.line = ProgressLine(console, max_seconds)

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        super().on_train_start(trainer, pl_module)
        self.devices = f"{trainer.world_size} x {device_name(pl_module)}"
        self.peak = self.find_peak(trainer, pl_module.device)
        if trainer.is_global_zero:
            write_environment(self.run, trainer, self.devices, self.peaks)
            whole = self.interval == NOTHING
            self.loggers = open_loggers(self.run, trainer.global_step, self.config, self.columns, whole)
            self.line.start(trainer.global_step, trainer.max_steps)
        self.clock = time.monotonic()

    def find_peak(self, trainer: Trainer, device: torch.device) -> float:
        """Peak FLOP/s of this setting, measured when it first occurs in this run."""
        names = [processor()] if device.type == "cpu" else []
        key = ", ".join([self.devices, *names, str(trainer.precision), torch.get_float32_matmul_precision()])
        if key not in self.peaks:
            self.peaks[key] = trainer.world_size * peak_of(key, device, precision_dtype(trainer.precision))
        return self.peaks[key]

    def on_update_end(self, trainer: Trainer, module: LightningModule, step: int) -> None:
        assert isinstance(module, TranslationModule)
        assert self.batch
        size = self.batch.size
        self.interval, self.measured = self.interval + size, self.measured + size
        self.flops += flops_of(module, size)
        if trainer.is_global_zero:
            self.line.made(step)
        if step % self.every == 0:
            self.tokens += self.report_updates(trainer, module, step)
            module.sums.zero_()
            self.interval, self.measured, self.elapsed = NOTHING, NOTHING, 0.0

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Report the last updates. A run that resumes reports them again, with the next ones (see Logbook)."""
        assert isinstance(pl_module, TranslationModule)
        if self.measured != NOTHING:
            self.report_updates(trainer, pl_module, trainer.global_step)

    def report_updates(self, trainer: Trainer, module: TranslationModule, step: int) -> int:
        """Report the updates since the last report; returns their target tokens."""
        loss, likelihood, tokens = module.total_sums().tolist()
        metrics = self.metrics_of(module, step, loss, likelihood, tokens)
        if trainer.is_global_zero:
            # Updates are planned anew for this, because no process sees all of their sentences.
            shares = self.updates.realised_shares(range((step - 1) // self.every * self.every, step))
            self.report(step, metrics | {source_column(SHARE, name): share for name, share in shares.items()})
            self.line.report(step, metrics, shares)
        return int(tokens)

    def metrics_of(
        self, module: TranslationModule, step: int, loss: float, likelihood: float, tokens: float
    ) -> dict[str, float]:
        """Metrics of the updates since the last report; the speed is that of the updates of this process."""
        self.add_time()
        interval, measured, elapsed = self.interval, self.measured, self.elapsed
        return {
            "loss": loss / tokens if tokens else math.nan,
            "perplexity": math.exp(min(likelihood / tokens, 100)) if tokens else math.nan,
            "learning_rate": module.learning_rate(step),
            "gradient_norm": module.gradient_norm.item(),
            "tokens_per_second": measured.target_tokens / elapsed,
            "padding": interval.padding,
            "mfu": flops_of(module, measured) / elapsed / self.peak,
            "seconds": self.seconds,
            "flops": self.flops,
            "cost": self.cost,
            "skipped": module.skipped,
        }

    def add_time(self) -> None:
        """Add the time since the last call."""
        now = time.monotonic()
        passed, self.clock = now - self.clock, now
        self.seconds += passed
        self.elapsed += passed
        self.cost += passed * self.peak

    @contextmanager
    def paused(self, device: torch.device) -> Iterator[None]:
        """Exclude the time within the block from training time, cost and speed."""
        synchronize(device)
        self.add_time()
        yield
        self.clock = time.monotonic()

    def report(self, step: int, metrics: dict[str, float]) -> None:
        """Write metrics into the logs, which only the first process has."""
        for logger in self.loggers:
            logger.log_metrics(metrics, step)

    def save(self, state: RunState, module: TranslationModule) -> None:
        """Put the totals so far into the state of a checkpoint."""
        self.add_time()
        state.tokens = self.tokens + int(module.total_sums()[2])
        state.seconds, state.devices = self.seconds, self.devices
        state.metrics = {
            **{"tokens": self.tokens, "flops": self.flops, "cost": self.cost, "peaks": self.peaks},
            "interval": list(self.interval),
        }

    def load(self, state: RunState) -> None:
        self.seconds = state.seconds
        self.tokens = state.metrics.get("tokens", state.tokens)  # older checkpoints counted up to the last report
        self.flops, self.cost, self.peaks = (state.metrics[key] for key in ("flops", "cost", "peaks"))
        self.interval = UpdateSize(*state.metrics["interval"])

    def close(self) -> None:
        self.line.stop()
        for logger in self.loggers:
            logger.finalize("finished")
