"""What a run tells of itself: metrics.csv, TensorBoard, and the progress line."""

import csv
import io
import math
import time
from pathlib import Path
from typing import Any

import torch
from lightning import LightningModule, Trainer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from nmt.errors import NMTError
from nmt.text.files import replace_file
from nmt.training.module import TranslationModule
from nmt.training.run_folder import read_metrics
from nmt.training.updates import UpdateCallback

COLUMNS = (
    "step",
    "loss",
    "perplexity",
    "learning_rate",
    "tokens_per_second",
    "seconds",
    "valid_loss",
    "valid_perplexity",
    "valid_bleu",
)


class Logbook:
    """metrics.csv: a row for each report, kept across restarts up to the update that is resumed from."""

    def __init__(self, run: Path, step: int) -> None:
        self.path = run / "metrics.csv"
        rows = [row for row in read_metrics(run) if int(row["step"]) <= step]
        replace_file(self.path, self.lines(dict(zip(COLUMNS, COLUMNS, strict=True)), *rows))

    @staticmethod
    def lines(*rows: dict[str, str]) -> str:
        text = io.StringIO()
        csv.DictWriter(text, COLUMNS).writerows(rows)
        return text.getvalue()

    def write(self, step: int, metrics: dict[str, float]) -> None:
        row = {"step": str(step), **{key: f"{value:.6g}" for key, value in metrics.items()}}
        try:
            with self.path.open("a", newline="", encoding="utf-8") as file:
                file.write(self.lines(row))
        except OSError as error:
            raise NMTError(f"cannot write {self.path} ({error.strerror}): is the disk full?") from error


def device_name(module: LightningModule) -> str:
    """What the model runs on, in words."""
    if module.device.type == "cuda":
        return torch.cuda.get_device_name(module.device)
    return f"{module.device.type} ({torch.get_num_threads()} threads)"


class Meters(UpdateCallback):
    """Loss, perplexity (without smoothing), learning rate, tokens/s and time left, every `every` updates."""

    def __init__(self, run: Path, every: int, console: Console) -> None:
        self.run, self.every, self.console = run, every, console
        self.seconds = 0.0
        """Training time so far, over all restarts."""
        self.tokens = 0
        """Target tokens trained on so far."""
        self.logbook: Logbook | None = None
        self.board: Any = None
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
        self.clock = self.last_report = time.monotonic()
        self.devices = f"{trainer.world_size} x {device_name(pl_module)}"
        if trainer.is_global_zero:
            from torch.utils.tensorboard import SummaryWriter

            self.logbook = Logbook(self.run, trainer.global_step)
            self.board = SummaryWriter(self.run / "tensorboard", purge_step=trainer.global_step + 1)
            self.task = self.progress.add_task("", total=trainer.max_steps, completed=trainer.global_step, metrics="")
            self.progress.start()

    def on_update_end(self, trainer: Trainer, module: LightningModule, step: int) -> None:
        assert isinstance(module, TranslationModule)
        if trainer.is_global_zero:
            self.progress.update(self.task, completed=step)
        if step % self.every and step != trainer.max_steps:
            return
        loss, likelihood, tokens = module.take_sums()
        now = time.monotonic()
        elapsed, self.last_report = now - self.last_report, now
        self.seconds += now - self.clock
        self.clock = now
        self.tokens += int(tokens)
        metrics = {
            "loss": loss / tokens,
            "perplexity": math.exp(min(likelihood / tokens, 100)),
            "learning_rate": module.learning_rate(step),
            "tokens_per_second": tokens / elapsed,
            "seconds": self.seconds,
        }
        self.report(step, metrics)
        if trainer.is_global_zero:
            text = "loss {loss:.3f}  ppl {perplexity:.2f}  lr {learning_rate:.2e}  {tokens_per_second:,.0f} tokens/s"
            self.progress.update(self.task, metrics=text.format(**metrics))

    def report(self, step: int, metrics: dict[str, float]) -> None:
        """Write metrics into the logs; on the first process alone."""
        if self.logbook:
            self.logbook.write(step, metrics)
            for key, value in metrics.items():
                self.board.add_scalar(key, value, step)

    def exclude(self, seconds: float) -> None:
        """Something else than training took so long: it does not count in tokens/s."""
        self.last_report += seconds

    def state_dict(self) -> dict[str, Any]:
        return {"seconds": self.seconds + time.monotonic() - self.clock, "tokens": self.tokens, "devices": self.devices}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.seconds, self.tokens = state_dict["seconds"], state_dict["tokens"]

    def close(self) -> None:
        self.progress.stop()
        if self.board:
            self.board.close()
