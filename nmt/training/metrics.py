"""Loss, speed, utilization and cost of a run: in its logs, on a progress line in a terminal, or in lines of a log file.

Time is measured as in section 5.2, cost as in Table 2.
"""

import json
import math
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from lightning import LightningModule, Trainer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

from nmt.data import UpdateSize
from nmt.files import write_file
from nmt.hardware import processor, versions
from nmt.model import training_flops
from nmt.training.callbacks import UpdateCallback
from nmt.training.module import TranslationModule
from nmt.training.run_folder import VALIDATION_COLUMNS, open_loggers
from nmt.training.trials import peak_flops_per_second, precision_dtype, synchronize

NOTHING = UpdateSize(0, 0, 0, 0, 0, 0)
REPORT = (
    "loss {loss:.3f}  ppl {perplexity:.2f}  {tokens_per_second:,.0f} tokens/s  lr {learning_rate:.2e}  "
    "grad {gradient_norm:.2f}  padding {padding:.0%}  MFU {mfu:.0%}  {cost:.1e} FLOP"
)
"""The most important come first, because a narrow terminal cuts the line."""
REPORT_SECONDS = 10
"""Least time between two lines where there is no terminal. The last report is always printed."""
PEAKS: dict[str, float] = {}
"""Peak FLOP/s by setting, measured once in a process."""


class ReportColumn(ProgressColumn):
    """The last report, in the width that the other columns leave."""

    def render(self, task: Task) -> Text:
        return Text(task.fields["report"], no_wrap=True, overflow="ellipsis")


def clock(seconds: float | None) -> str:
    """Hours, minutes and seconds; dashes where they are unknown."""
    return "-:--:--" if seconds is None else str(timedelta(seconds=int(seconds)))


class ProgressLine:
    """Updates made, time left, and the last report; `max_seconds` is the time limit of this process."""

    def __init__(self, console: Console, max_seconds: float | None) -> None:
        self.console, self.max_seconds, self.reported = console, max_seconds, -float(REPORT_SECONDS)
        self.first: tuple[int, float] | None = None
        """The first update of this process, which takes longer than others, and the time when it ended."""
        whole = Column(no_wrap=True)  # only the report is cut where the terminal is narrow
        bar, counts = BarColumn(bar_width=20, table_column=whole), MofNCompleteColumn(table_column=whole)
        columns = TextColumn("training"), bar, counts, TextColumn("{task.fields[left]}"), ReportColumn()
        self.progress = Progress(*columns, console=console, disable=not console.is_terminal)

    def start(self, step: int, total: int) -> None:
        self.total, self.begin = total, time.monotonic()
        self.task = self.progress.add_task("", total=total, completed=step, left=clock(None), report="")
        self.progress.start()

    def left(self, step: int) -> float | None:
        """Seconds left at the rate of this process so far, validations and saving included; None: not known yet."""
        now = time.monotonic()
        self.first = self.first or (step, now)
        made, seconds = step - self.first[0], now - self.first[1]
        estimates = [seconds / made * (self.total - step)] if made else []
        if self.max_seconds is not None:
            estimates.append(max(self.max_seconds - (now - self.begin), 0.0))
        return min(estimates, default=None)

    def made(self, step: int) -> None:
        self.progress.update(self.task, completed=step, left=clock(self.left(step)))

    def report(self, step: int, metrics: dict[str, float]) -> None:
        """Show metrics."""
        text = REPORT.format(**metrics)
        self.progress.update(self.task, report=text)
        now, left = time.monotonic(), self.left(step)
        if not self.console.is_terminal and (now - self.reported >= REPORT_SECONDS or step == self.total):
            self.reported = now
            to_go = f", {clock(left)} left" if left and step != self.total else ""
            self.console.print(f"update {step:,} of {self.total:,}{to_go}: {text}")


def seconds_waited() -> float:
    """How long this thread has been ready to run and had no core; 0 where that is unknown."""
    path = Path("/proc/thread-self/schedstat")
    return int(path.read_text().split()[1]) / 1e9 if path.exists() else 0.0


def flops_of(module: TranslationModule, size: UpdateSize) -> int:
    """Floating-point operations to train on updates of this size."""
    return training_flops(module.model.config, module.model.vocabulary_size, size[:2], size[3:])


class MetricsCallback(UpdateCallback):
    """Reports loss, unsmoothed perplexity and speed of every `every` updates, and its time and cost (section 5.2)."""

    def __init__(self, config: dict[str, Any], line: ProgressLine, domains: list[str]) -> None:
        """`domains` are the parts of the validation set that have figures of their own."""
        self.run, self.config, self.line, self.console = Path(config["run"]), config, line, line.console
        self.every = int(config["trainer"]["log_every_n_steps"])
        self.columns = [f"{column}/{name}" for name in domains for column in VALIDATION_COLUMNS]
        # Over all restarts: training time (updates and saving, but neither memory check nor validation), FLOPs of the
        # model, cost (seconds x devices x sustained FLOP/s, as in Table 2), and target tokens up to the last report.
        self.seconds, self.flops, self.cost, self.tokens = 0.0, 0, 0.0, 0
        self.peaks: dict[str, float] = {}
        """Peak FLOP/s of all devices together, by setting, measured once in a run: later the machine may be busy."""
        self.interval = NOTHING
        """Size of all updates since the last report, including skipped updates, which took as long."""
        self.measured, self.elapsed = NOTHING, 0.0
        """The part of the interval that this process has made, and its training time."""
        self.loggers: list[Any] = []

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        super().on_train_start(trainer, pl_module)
        device, threads = pl_module.device, torch.get_num_threads()
        name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"{device.type} ({threads} threads)"
        self.devices = f"{trainer.world_size} x {name}"
        names = [processor()] if device.type == "cpu" else []
        key = ", ".join([self.devices, *names, str(trainer.precision), torch.get_float32_matmul_precision()])
        if key not in self.peaks:
            if key not in PEAKS:
                PEAKS[key] = peak_flops_per_second(device, precision_dtype(trainer.precision))
            self.peaks[key] = trainer.world_size * PEAKS[key]
        self.peak = self.peaks[key]
        if trainer.is_global_zero:
            environment = {
                **versions(),
                "platform": platform.platform(),
                "processor": processor(),
                "devices": self.devices,
                "world_size": trainer.world_size,
                "precision": str(trainer.precision),
                "peak_flops_per_second": self.peaks,
                "command": " ".join(["nmt", *sys.argv[1:]]),
            }
            write_file(self.run / "environment.json", json.dumps(environment, indent=2) + "\n")
            whole = self.interval == NOTHING
            self.loggers = open_loggers(self.run, trainer.global_step, self.config, self.columns, whole)
            self.line.start(trainer.global_step, trainer.max_steps)
        self.clock, self.waited, self.warned = time.monotonic(), seconds_waited(), device.type != "cpu" or threads == 1

    def on_update_end(self, trainer: Trainer, module: TranslationModule, step: int) -> None:
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
        """Report the updates since the last report; the speed is that of this process. Returns their target tokens."""
        loss, likelihood, tokens = module.total_sums().tolist()
        self.add_time()
        metrics = {
            "loss": loss / tokens if tokens else math.nan,
            "perplexity": math.exp(min(likelihood / tokens, 100)) if tokens else math.nan,
            "learning_rate": module.learning_rate(step),
            "gradient_norm": module.gradient_norm.item(),
            "tokens_per_second": self.measured.target_tokens / self.elapsed,
            "padding": self.interval.padding,
            "mfu": flops_of(module, self.measured) / self.elapsed / self.peak,
            "seconds": self.seconds,
            "flops": self.flops,
            "cost": self.cost,
            "skipped": module.skipped,
        }
        if trainer.is_global_zero:
            self.report(step, metrics)
            self.line.report(step, metrics)
            self.warn_of_other_programs()
        return int(tokens)

    def warn_of_other_programs(self) -> None:
        """Print a notice, once, if since the last report this thread had to wait for a core a tenth of the time."""
        before, self.waited = self.waited, seconds_waited()
        if not self.warned and self.waited - before > 0.1 * max(self.elapsed, 1.0):
            self.warned = True
            self.console.print(
                "notice: other programs use the processor's cores; beside them fewer threads may be faster "
                f"(OMP_NUM_THREADS={torch.get_num_threads() // 2})"
            )

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

    def state(self, module: TranslationModule) -> dict[str, Any]:
        """Fields of a checkpoint's RunState: the totals so far."""
        self.add_time()
        totals = {key: getattr(self, key) for key in ("tokens", "flops", "cost", "peaks")}
        return {
            "tokens": self.tokens + int(module.total_sums()[2]),
            "seconds": self.seconds,
            "devices": self.devices,
            "metrics": totals | {"interval": list(self.interval)},
        }

    def load(self, seconds: float, metrics: dict[str, Any]) -> None:
        vars(self).update(metrics, seconds=seconds, interval=UpdateSize(*metrics["interval"]))

    def close(self) -> None:
        self.line.progress.stop()
        for logger in self.loggers:
            logger.finalize("finished")
