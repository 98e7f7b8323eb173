"""Report a run's loss, speed, time (section 5.2) and cost (Table 2) in its logs and on a terminal line."""

import csv
import io
import json
import math
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import torch
from lightning import LightningModule, Trainer
from lightning.fabric.loggers.tensorboard import TensorBoardLogger
from lightning.pytorch.loggers import WandbLogger
from rich.console import Console

from nmt import files, hardware, kernels
from nmt.config import NMTError, difference
from nmt.data import UpdateSize
from nmt.model import training_flops
from nmt.training.module import TranslationModule, UpdateCallback
from nmt.training.run_folder import read_metrics

VALIDATION_COLUMNS = ("valid_loss", "valid_perplexity", "valid_bleu", "valid_f1")
COLUMNS = (
    *(
        "step",
        "loss",
        "perplexity",
        "learning_rate",
        "gradient_norm",
        "tokens_per_second",
        "padding",
        "mfu",
    ),
    *("seconds", "flops", "cost", "skipped", *VALIDATION_COLUMNS),
)
# The most important values come first, because a narrow terminal cuts off the line.
REPORT = (
    "loss {loss:.3f}  ppl {perplexity:.2f}  {tokens_per_second:,.0f} tokens/s  lr {learning_rate:.2e}  "
    "grad {gradient_norm:.2f}  padding {padding:.0%}  MFU {mfu:.0%}  {cost:.1e} FLOP"
)
OF_BITS = (
    "torch",
    "processor",
    "threads",
    "device",
    "kernels",
)  # what may change the last bits of a sum
OF_PEAK = ("processor", "devices", "precision", "torch")  # what the peak of idle devices depends on
REPORT_SECONDS = 10  # minimum time between two lines
PEAK_SECONDS = (
    60.0  # time between two short measurements of a CPU's peak, which other programs lower
)
NOTHING = UpdateSize(0, 0, 0, 0, 0, 0)
DTYPES = {"bf16": torch.bfloat16, "16": torch.float16, "32": torch.float32, "64": torch.float64}
"""The data type of matrix products under a Trainer precision such as bf16-mixed, by its first part."""
IDLE_ROUNDS, MAX_SECONDS = 3, 3.0
"""Measure the peak until this many rounds in a row are no faster than the best so far, at most this many seconds."""


def precision_dtype(precision: str | int | None) -> torch.dtype:
    """The data type of matrix products under a Trainer precision flag such as 32-true or bf16-mixed."""
    return DTYPES[str(precision or 32).split("-")[0]]


def synchronize(device: torch.device) -> None:
    if device.type != "cpu":
        torch.accelerator.synchronize(device)


Product = tuple[Callable[..., Any], torch.Tensor]
"""A way to multiply matrices, and the matrix to multiply by itself."""


def square_products(device: torch.device, dtype: torch.dtype) -> list[Product]:
    """The kinds of matrix products that may be the fastest on a device."""
    size = 1024 if device.type == "cpu" else 8192
    factors = [torch.randn(size, size, device=device, dtype=dtype)]
    # Try float32, too: some products stay in float32, and bfloat16 without hardware support takes ten times as long.
    if device.type == "cpu" and dtype.itemsize < 4:
        factors.append(factors[0].float())
    products: list[Product] = []
    for x in factors:
        products.append((torch.mm, x))
        if kernels.has_fast_product(x, x):
            products.append((kernels.product, x))
    return products


def fastest_flops_per_second(products: list[Product], device: torch.device) -> float:
    """The FLOP/s of the fastest of these products, each computed twice."""
    least = math.inf
    for multiply, x in products * 2:
        synchronize(device)
        start = time.perf_counter()
        multiply(x, x)
        synchronize(device)
        least = min(least, time.perf_counter() - start)
    size = products[0][1].shape[0]
    return 2.0 * size**3 / least


@cache
def peak_flops_per_second(device: torch.device, dtype: torch.dtype) -> float:
    """The FLOP/s of the fastest of several square matrix products."""
    products = square_products(device, dtype)
    peak = 0.0
    idle = 0
    end = time.monotonic() + MAX_SECONDS
    while idle < IDLE_ROUNDS and time.monotonic() < end:
        speed = fastest_flops_per_second(products, device)
        idle = 0 if speed > 1.02 * peak else idle + 1
        peak = max(peak, speed)
    return peak


def devices_in_words(trainer: Trainer) -> str:
    """The number and kind of devices, such as "1 x cpu (2 threads)"."""
    device = trainer.strategy.root_device
    kind = f"{device.type} ({torch.get_num_threads()} threads)"
    if device.type == "cuda":
        kind = torch.cuda.get_device_name(device)
    return f"{trainer.world_size} x {kind}"


class Logbook:
    """metrics.csv, with one row per report. A restart keeps the rows up to the update from which it resumes.

    `more` lists the columns of domains. Unless `whole`, the report at `step` is dropped: the next repeats its updates.
    """

    def __init__(self, run: Path, step: int, more: Sequence[str] = (), whole: bool = True) -> None:
        self.path, self.columns = run / "metrics.csv", [*COLUMNS, *more]
        last = step if whole else step - 1
        rows = [
            row for row in read_metrics(run) if int(row["step"]) <= (last if row["loss"] else step)
        ]
        files.write_file(
            self.path, self.lines(dict(zip(self.columns, self.columns, strict=True)), *rows)
        )

    def lines(self, *rows: dict[str, str]) -> str:
        text = io.StringIO()
        csv.DictWriter(text, self.columns, extrasaction="ignore").writerows(rows)
        return text.getvalue()

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        row = {"step": str(step), **{key: f"{value:.6g}" for key, value in metrics.items()}}
        try:
            with self.path.open("a", newline="", encoding="utf-8") as file:
                file.write(self.lines(row))
        except OSError as error:
            raise NMTError(
                f"cannot write {self.path} ({error.strerror}): is the disk full?"
            ) from error


class ProgressLine:
    """Shows the number of updates, the time left and the last report; `max_seconds` is this process's time limit."""

    def __init__(self, console: Console, max_seconds: float | None) -> None:
        self.console, self.status = console, console.status("training")
        self.max_seconds = math.inf if max_seconds is None else max_seconds
        self.text = ""
        self.printed = self.reported = -math.inf  # seconds since the start

    def start(self, step: int, total: int) -> None:
        self.first, self.total, self.begin = step, total, time.monotonic()
        if self.console.is_terminal:
            self.status.start()

    def is_due(self) -> bool:
        """Whether there was no report yet, or none for REPORT_SECONDS."""
        return time.monotonic() - self.begin - self.reported >= REPORT_SECONDS

    def show(self, step: int, report: str = "") -> None:
        seconds, self.text = time.monotonic() - self.begin, report or self.text
        left = seconds / (step - self.first) * (self.total - step)
        left = min(left, max(self.max_seconds - seconds, 0.0))
        if report:
            self.reported = seconds
        line = (
            f"update {step:,} of {self.total:,}, {timedelta(seconds=int(left))} left: {self.text}"
        )
        if self.console.is_terminal:
            self.status.update(line[: self.console.width - 3])
        elif report and (seconds - self.printed >= REPORT_SECONDS or step == self.total):
            self.printed = seconds
            self.console.print(line)


class MetricsCallback(UpdateCallback):
    """Reports loss, unsmoothed perplexity, speed, time and cost (section 5.2) every `log_every_n_steps` updates."""

    def __init__(self, config: dict[str, Any], line: ProgressLine) -> None:
        self.run, self.config, self.line = Path(config["run"]), config, line
        self.every = int(config["trainer"]["log_every_n_steps"])
        self.columns: list[str] = []  # for domains
        # Totals across all restarts: time for updates and saving, FLOPs, cost (seconds x devices x sustained FLOP/s,
        # Table 2), and target tokens up to the last report.
        self.seconds, self.flops, self.cost, self.tokens = 0.0, 0, 0.0, 0
        self.own_seconds = 0.0  # of this process
        self.peak_measured = (
            0.0  # when the peak was measured last, on the clock of time.monotonic()
        )
        # Size and training time of all updates since the last report, including skipped ones, which take just as long.
        self.interval, self.elapsed = NOTHING, 0.0
        self.loggers: list[Any] = []  # filled only in the first process

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        device, step, name = pl_module.device, trainer.global_step, self.run.name
        self.devices = devices_in_words(trainer)
        self.dtype = precision_dtype(trainer.precision)
        self.peak = trainer.world_size * peak_flops_per_second(device, self.dtype)
        self.peak_measured = time.monotonic()
        if trainer.is_global_zero:
            environment: dict[str, Any] = {
                **hardware.versions(),
                "platform": platform.platform(),
                "processor": hardware.processor(),
                "devices": self.devices,
                "precision": str(trainer.precision),
                "threads": torch.get_num_threads(),
                "device": self.devices.partition(" x ")[2].partition(" (")[0],
                "kernels": kernels.environment_record(),
                "peak_flops_per_second": self.peak,
                "command": " ".join(["nmt", *sys.argv[1:]]),
            }
            path = self.run / "environment.json"
            before = (
                files.read_mapping(path, files.parse_json)
                if step and path.is_file()
                else environment
            )
            # An older nmt recorded less.
            recorded = [key for key in OF_BITS if key in before]
            changed = difference(
                {key: before[key] for key in recorded}, {key: environment[key] for key in recorded}
            )
            if changed:
                self.line.console.print(
                    f"notice: {changed}; from here on, the last bits of the weights may differ"
                )
            self.keep_greater_peak(environment, before)
            self.environment = environment
            self.write_environment()
            self.loggers = [Logbook(self.run, step, self.columns, whole=self.interval == NOTHING)]
            if "tensorboard" in self.config["logger"]:
                self.loggers.append(
                    TensorBoardLogger(self.run, name="tensorboard", version="", purge_step=step + 1)
                )
            if "wandb" in self.config["logger"]:
                self.loggers.append(
                    WandbLogger(name, self.run, version=name, resume="allow", config=self.config)
                )
            self.line.start(step, trainer.max_steps)
        self.clock = time.monotonic()

    def keep_greater_peak(self, environment: dict[str, Any], before: dict[str, Any]) -> None:
        """Keep the peak that the run measured before on the same devices, which may have been less busy then."""
        same = all(before.get(key) == environment[key] for key in OF_PEAK)
        recorded = before.get("peak_flops_per_second")
        if same and isinstance(recorded, int | float) and math.isfinite(recorded):
            self.peak = max(self.peak, float(recorded))
        environment["peak_flops_per_second"] = self.peak

    def write_environment(self) -> None:
        files.write_file(
            self.run / "environment.json", json.dumps(self.environment, indent=2) + "\n"
        )

    def on_update_end(self, trainer: Trainer, module: TranslationModule, step: int) -> None:
        assert self.batch
        waits = kernels.runs_ahead(module.device)
        if not waits or step % self.every == 0 or step == trainer.max_steps:
            module.check_finite()
        self.interval += self.batch.size
        self.flops += self.flops_of(module, self.batch.size)
        is_report = step % self.every == 0
        if trainer.is_global_zero and not is_report:
            # The line follows the clock; the rows of metrics.csv are the same in each repetition of a run.
            text = ""
            if self.line.is_due() and step < trainer.max_steps:
                sums = module.sums.tolist()
                text = REPORT.format(**self.measured(trainer, module, step, sums))
            self.line.show(step, text)
        if is_report:
            self.tokens += self.report_updates(trainer, module, step)
            module.sums.zero_()
            self.interval, self.elapsed = NOTHING, 0.0

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Report the remaining updates. A resumed run reports them again, together with the next ones (see Logbook)."""
        if self.interval != NOTHING:
            self.report_updates(trainer, pl_module, trainer.global_step)  # type: ignore[arg-type]
        if trainer.is_global_zero and self.peak > self.environment["peak_flops_per_second"]:
            self.environment["peak_flops_per_second"] = self.peak
            self.write_environment()

    def flops_of(self, module: TranslationModule, size: UpdateSize) -> int:
        return training_flops(module.model.config, module.model.vocabulary_size, size[:2], size[3:])

    def report_updates(self, trainer: Trainer, module: TranslationModule, step: int) -> int:
        """Report the updates since the last report and return their number of target tokens."""
        # This waits for the device, so the time that is added next includes all updates.
        sums = module.sums.tolist()
        metrics = self.measured(trainer, module, step, sums)
        self.report(step, metrics)
        if trainer.is_global_zero:
            self.line.show(step, REPORT.format(**metrics))
        return int(sums[2])

    def measure_peak_again(self, trainer: Trainer, module: TranslationModule) -> None:
        """Raise the peak if training is faster, or if a short measurement on a CPU finds a greater one."""
        self.add_time()
        device = module.device
        speed = self.flops_of(module, self.interval) / self.elapsed
        if speed > self.peak:  # other programs kept the devices busy when the peak was measured
            peak_flops_per_second.cache_clear()
            with self.paused(device):
                self.raise_peak(
                    max(speed, trainer.world_size * peak_flops_per_second(device, self.dtype))
                )
        elif device.type == "cpu" and time.monotonic() - self.peak_measured >= PEAK_SECONDS:
            with self.paused(device):
                products = square_products(device, self.dtype)
                self.raise_peak(trainer.world_size * fastest_flops_per_second(products, device))
            self.peak_measured = time.monotonic()

    def raise_peak(self, peak: float) -> None:
        """Correct the peak, and the cost of the updates that this process made."""
        if peak > self.peak:
            self.cost += self.own_seconds * (peak - self.peak)
            self.peak = peak

    def measured(
        self, trainer: Trainer, module: TranslationModule, step: int, sums: list[float]
    ) -> dict[str, float]:
        """The metrics of the updates since the last report.

        `sums` are their loss, negative log-likelihood and number of target tokens.
        """
        self.measure_peak_again(trainer, module)
        self.add_time()
        loss, likelihood, tokens = sums
        return {
            "loss": loss / tokens if tokens else math.nan,
            "perplexity": math.exp(min(likelihood / tokens, 100)) if tokens else math.nan,
            "learning_rate": module.learning_rate(step),
            "gradient_norm": module.gradient_norm.item(),
            "tokens_per_second": self.interval.target_tokens / self.elapsed,
            "padding": self.interval.padding,
            "mfu": self.flops_of(module, self.interval) / self.elapsed / self.peak,
            **{
                "seconds": self.seconds,
                "flops": self.flops,
                "cost": self.cost,
                "skipped": module.skipped,
            },
        }

    def add_time(self) -> None:
        now = time.monotonic()
        passed, self.clock = now - self.clock, now
        self.seconds += passed
        self.own_seconds += passed
        self.elapsed += passed
        self.cost += passed * self.peak

    @contextmanager
    def paused(self, device: torch.device) -> Iterator[None]:
        """Exclude the time that the block takes from training time, cost and speed."""
        synchronize(device)
        self.add_time()
        yield
        self.clock = time.monotonic()

    def report(self, step: int, metrics: dict[str, float]) -> None:
        for logger in self.loggers:
            logger.log_metrics(metrics, step)

    def state(self, module: TranslationModule) -> dict[str, Any]:
        """The fields of a checkpoint's RunState that this callback measures."""
        self.add_time()
        totals: dict[str, Any] = {"tokens": self.tokens, "flops": self.flops, "cost": self.cost}
        totals |= {"elapsed": self.elapsed, "interval": list(self.interval)}
        tokens = self.tokens + int(module.sums[2])
        return {
            "tokens": tokens,
            "seconds": self.seconds,
            "devices": self.devices,
            "metrics": totals,
        }

    def load(self, seconds: float, metrics: dict[str, Any]) -> None:
        self.seconds, self.tokens, self.flops = seconds, metrics["tokens"], metrics["flops"]
        self.cost, self.elapsed, self.interval = (
            metrics["cost"],
            metrics["elapsed"],
            UpdateSize(*metrics["interval"]),
        )

    def close(self) -> None:
        self.line.status.stop()
        for logger in self.loggers[1:]:  # metrics.csv is already complete
            logger.finalize("finished")
