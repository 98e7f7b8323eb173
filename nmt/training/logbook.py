"""Where metrics are written: metrics.csv always, and by Lightning's loggers what `logger` names beside it."""

import csv
import io
import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lightning.fabric.loggers.tensorboard import TensorBoardLogger
from lightning.pytorch.loggers import WandbLogger

from nmt.errors import NMTError, how_to_install
from nmt.storage.whole import write_file
from nmt.training.run_folder import read_metrics

COLUMNS = (
    *("step", "loss", "perplexity", "learning_rate", "gradient_norm", "tokens_per_second", "padding", "mfu"),
    *("seconds", "flops", "cost", "skipped", "valid_loss", "valid_perplexity", "valid_bleu", "valid_f1"),
)


class Logbook:
    """metrics.csv: a row for each report, kept across restarts up to the update that is resumed from."""

    def __init__(self, run: Path, step: int) -> None:
        self.path = run / "metrics.csv"
        rows = [row for row in read_metrics(run) if int(row["step"]) <= step]
        write_file(self.path, self.lines(dict(zip(COLUMNS, COLUMNS, strict=True)), *rows))

    @staticmethod
    def lines(*rows: dict[str, str]) -> str:
        text = io.StringIO()
        csv.DictWriter(text, COLUMNS, extrasaction="ignore").writerows(rows)
        return text.getvalue()

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        row = {"step": str(step), **{key: f"{value:.6g}" for key, value in metrics.items()}}
        try:
            with self.path.open("a", newline="", encoding="utf-8") as file:
                file.write(self.lines(row))
        except OSError as error:
            raise NMTError(f"cannot write {self.path} ({error.strerror}): is the disk full?") from error

    def finalize(self, status: str) -> None:
        """Each row is in the file already."""


Logger = Logbook | TensorBoardLogger | WandbLogger


def check_installed(names: Sequence[str]) -> None:
    """NMTError where a logger needs a package that is not there."""
    if "wandb" in names and find_spec("wandb") is None:
        raise NMTError(f"logger=wandb: it is not installed; {how_to_install('wandb')}")


def open_loggers(names: Sequence[str], run: Path, step: int, config: dict[str, Any]) -> list[Logger]:
    """metrics.csv and what is named (tensorboard, wandb), to go on behind update `step`."""
    loggers: list[Logger] = [Logbook(run, step)]
    if "tensorboard" in names:
        loggers.append(TensorBoardLogger(run, name="tensorboard", version="", purge_step=step + 1))
    if "wandb" in names:
        project = os.environ.get("WANDB_PROJECT", "uncategorized")  # what wandb itself falls back to
        loggers.append(WandbLogger(run.name, run, run.name, project=project, resume="allow", config=config))
    return loggers
