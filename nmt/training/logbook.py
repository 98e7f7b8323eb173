"""The records of a run: metrics.csv, the loggers that `logger` names, and environment.json."""

import csv
import io
import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lightning import Trainer
from lightning.fabric.loggers.tensorboard import TensorBoardLogger
from lightning.pytorch.loggers import WandbLogger

from nmt.errors import NMTError, how_to_install
from nmt.files import write_file
from nmt.hardware import processor, versions
from nmt.training.run_folder import read_metrics

VALIDATION_COLUMNS = ("valid_loss", "valid_perplexity", "valid_bleu", "valid_f1")
COLUMNS = (
    *("step", "loss", "perplexity", "learning_rate", "gradient_norm", "tokens_per_second", "padding", "mfu"),
    *("seconds", "flops", "cost", "skipped", *VALIDATION_COLUMNS),
)


SHARE = "share"
"""The column of a source's share in the sentences since the last report."""


def source_column(column: str, source: str) -> str:
    """The column of a figure of one of `data.sources`."""
    return f"{column}/{source}"


class Logbook:
    """metrics.csv: one row for each report. A restart keeps the rows up to the update it resumes from."""

    def __init__(self, run: Path, step: int, more: Sequence[str] = (), whole: bool = True) -> None:
        """`more` are columns of a mixture's sources. Unless `whole`, the next report covers updates of the last one."""
        self.path = run / "metrics.csv"
        self.columns = [*COLUMNS, *more]
        rows = [
            row
            for row in read_metrics(run)
            if int(row["step"]) < step or (int(row["step"]) == step and (whole or not row["loss"]))
        ]
        write_file(self.path, self.lines(dict(zip(self.columns, self.columns, strict=True)), *rows))

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
            raise NMTError(f"cannot write {self.path} ({error.strerror}): is the disk full?") from error

    def finalize(self, status: str) -> None:
        """Nothing to do: every row is already in the file."""


Logger = Logbook | TensorBoardLogger | WandbLogger


def check_installed(names: Sequence[str]) -> None:
    """NMTError where a logger needs a package that is not installed."""
    if "wandb" in names and find_spec("wandb") is None:
        raise NMTError(f"logger=wandb: it is not installed; {how_to_install('wandb')}")


def open_loggers(run: Path, step: int, config: dict[str, Any], more: Sequence[str], whole: bool) -> list[Logger]:
    """metrics.csv and the loggers of `config` (tensorboard, wandb), continued after update `step`."""
    names, loggers = config["logger"], list[Logger]([Logbook(run, step, more, whole)])
    if "tensorboard" in names:
        loggers.append(TensorBoardLogger(run, name="tensorboard", version="", purge_step=step + 1))
    if "wandb" in names:
        project = os.environ.get("WANDB_PROJECT", "uncategorized")  # what wandb itself falls back to
        loggers.append(WandbLogger(run.name, run, run.name, project=project, resume="allow", config=config))
    return loggers


def write_environment(run: Path, trainer: Trainer, devices: str, peaks: dict[str, float]) -> None:
    """Write environment.json. `peaks` are FLOP/s of matrix products, by the setting they were measured in."""
    environment = {
        **versions(),
        "platform": platform.platform(),
        "processor": processor(),
        "devices": devices,
        "world_size": trainer.world_size,
        "precision": str(trainer.precision),
        "peak_flops_per_second": peaks,
        "command": " ".join(["nmt", *sys.argv[1:]]),
    }
    write_file(run / "environment.json", json.dumps(environment, indent=2) + "\n")
