"""Where metrics are written: metrics.csv always, and what `logger` names beside it."""

import csv
import io
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from nmt.errors import NMTError, how_to_install
from nmt.storage.whole import write_file
from nmt.training.run_folder import read_metrics

COLUMNS = (
    "step",
    "loss",
    "perplexity",
    "learning_rate",
    "gradient_norm",
    "tokens_per_second",
    "padding",
    "mfu",
    "seconds",
    "flops",
    "cost",
    "skipped",
    "valid_loss",
    "valid_perplexity",
    "valid_bleu",
    "valid_f1",
)


class Logger(Protocol):
    """Takes metrics as they come."""

    def write(self, step: int, metrics: dict[str, float]) -> None: ...

    def close(self) -> None: ...


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

    def write(self, step: int, metrics: dict[str, float]) -> None:
        row = {"step": str(step), **{key: f"{value:.6g}" for key, value in metrics.items()}}
        try:
            with self.path.open("a", newline="", encoding="utf-8") as file:
                file.write(self.lines(row))
        except OSError as error:
            raise NMTError(f"cannot write {self.path} ({error.strerror}): is the disk full?") from error

    def close(self) -> None:
        pass


class TensorBoard:
    """Curves in the run's tensorboard folder."""

    def __init__(self, run: Path, step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(run / "tensorboard", purge_step=step + 1)

    def write(self, step: int, metrics: dict[str, float]) -> None:
        for key, value in metrics.items():
            self.writer.add_scalar(key, value, step)

    def close(self) -> None:
        self.writer.close()


class WeightsAndBiases:
    """A run of the same name in Weights & Biases, resumed where it was; WANDB_PROJECT and WANDB_MODE are obeyed."""

    def __init__(self, run: Path, step: int, config: dict[str, Any]) -> None:
        import wandb

        self.run = wandb.init(name=run.name, id=run.name, resume="allow", dir=run, config=config)

    def write(self, step: int, metrics: dict[str, float]) -> None:
        self.run.log(metrics, step=step)

    def close(self) -> None:
        self.run.finish()


def check_installed(names: Sequence[str]) -> None:
    """NMTError where a logger needs a package that is not there."""
    if "wandb" in names and find_spec("wandb") is None:
        raise NMTError(f"logger=wandb: it is not installed; {how_to_install('wandb')}")


def open_loggers(names: Sequence[str], run: Path, step: int, config: dict[str, Any]) -> list[Logger]:
    """metrics.csv and what is named: csv, tensorboard, wandb."""
    loggers: list[Logger] = [Logbook(run, step)]
    if "tensorboard" in names:
        loggers.append(TensorBoard(run, step))
    if "wandb" in names:
        loggers.append(WeightsAndBiases(run, step, config))
    return loggers
