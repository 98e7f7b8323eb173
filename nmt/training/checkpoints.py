"""Checkpoints: when they are written, which are kept, and what stops a run.

`checkpoints/step=00001000.ckpt` holds plain tensors, numbers and strings; it loads with weights_only=True.
"""

import pickle
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from lightning import LightningModule, Trainer
from lightning.pytorch.plugins import TorchCheckpointIO

from nmt.config import CheckpointConfig
from nmt.errors import NMTError, one_line
from nmt.training.run_folder import list_checkpoints
from nmt.training.updates import UpdateCallback
from nmt.training.validation import Validation

FORMAT_VERSION = 1
# Ctrl-C, a scheduler's end, and the signals by which SLURM announces one. Not every system has them all.
STOPPING = [number for number in signal.Signals if number.name in ("SIGINT", "SIGTERM", "SIGUSR1", "SIGUSR2")]


def load_checkpoint(path: Path) -> dict[str, Any]:
    """A checkpoint's content; NMTError where it cannot be read or is none of ours."""
    if not path.is_file():
        raise NMTError(f"{path}: no such checkpoint")
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
        version = content["nmt"]["format_version"]
    except (OSError, EOFError, RuntimeError, LookupError, TypeError, pickle.UnpicklingError) as error:
        reason = one_line(error)
        raise NMTError(f"{path}: no readable checkpoint ({reason}); remove it to go on from the one before") from error
    if version != FORMAT_VERSION:
        raise NMTError(
            f"{path}: format version {version}, but this nmt reads {FORMAT_VERSION}: use the nmt that wrote it"
        )
    return content  # type: ignore[no-any-return]


def remove_older(run: Path, keep: int) -> None:
    """Remove the checkpoints before the last `keep`."""
    for path in list_checkpoints(run)[:-keep]:
        path.unlink(missing_ok=True)


def remove_leftovers(run: Path, keep: int) -> None:
    """Remove what a killed process did not get to: temporary files, and the checkpoints before the last `keep`."""
    remove_older(run, keep)
    for names in ("checkpoints/*.tmp", ".config.yaml-*", ".metrics.csv-*", ".model-*"):
        for path in run.glob(names):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


@contextmanager
def renamed_when_whole(path: Path) -> Iterator[Path]:
    """A temporary name for a checkpoint, which gets its own when it is written; NMTError where it cannot be."""
    temporary = path.with_suffix(".tmp")
    temporary.unlink(missing_ok=True)
    try:
        yield temporary
        temporary.rename(path)
    except (OSError, RuntimeError) as error:  # torch reports a full disk as RuntimeError
        temporary.unlink(missing_ok=True)
        raise NMTError(
            f"cannot write {path} ({one_line(error)}): is the disk full? "
            "The checkpoints before it are whole, and the same command goes on from them"
        ) from error


def link_or_copy(path: Path, other: Path) -> None:
    """Give a file another name, with a copy where the file system has no links."""
    try:
        other.hardlink_to(path)
    except OSError:
        shutil.copyfile(path, other)


class DirectCheckpointIO(TorchCheckpointIO):
    """Writes a checkpoint where it is wanted: Lightning's own takes it through memory and the system's folder for
    temporary files, which may be small, and where a killed process leaves it behind."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        with renamed_when_whole(Path(path)) as temporary:
            torch.save(checkpoint, temporary)


@dataclass
class RunDescription:
    """What a checkpoint tells of the run it belongs to."""

    config: dict[str, Any]
    vocabulary_size: int
    source: str
    target: str
    tokenizer: str
    """SHA-256 of the tokenizer."""
    corpus: str
    """Fingerprint of the prepared corpus."""


class Checkpoints(UpdateCallback):
    """Saves by minutes or updates, keeps the last ones, and ends a run that is asked to stop by a signal."""

    def __init__(
        self, run: Path, config: CheckpointConfig, description: RunDescription, validation: Validation
    ) -> None:
        self.run, self.config, self.description, self.validation = run, config, description, validation
        self.folder = run / "checkpoints"
        self.last_save = time.monotonic()
        self.last_saved = 0
        """The update of the last checkpoint."""
        self.interim: list[int] = []
        """Updates that were saved only because the run was to stop: the next checkpoint takes their place.

        So the same checkpoints are averaged however often a run was stopped.
        """
        self.signal: int | None = None
        # Those from before training: Lightning sets its own, and takes them back, in between.
        self.handlers = {number: signal.getsignal(number) for number in STOPPING}

    def path(self, step: int) -> Path:
        return self.folder / f"step={step:08d}.ckpt"

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        if type(trainer.strategy.checkpoint_io) is TorchCheckpointIO:
            trainer.strategy.checkpoint_io = DirectCheckpointIO()

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        super().on_train_start(trainer, pl_module)
        self.last_save, self.last_saved = time.monotonic(), trainer.global_step
        for number in self.handlers:
            signal.signal(number, self.on_signal)

    def state_dict(self) -> dict[str, Any]:
        return {"interim": self.interim}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.interim = state_dict["interim"]

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Remember the first signal until the update has ended; a second one ends the process as usual."""
        self.signal = number
        signal.signal(number, self.handlers[signal.Signals(number)])

    def restore_handlers(self) -> None:
        for number, handler in self.handlers.items():
            signal.signal(number, handler)

    def on_update_end(self, trainer: Trainer, module: LightningModule, step: int) -> None:
        minutes = self.config.every_minutes
        stop = self.signal or 0
        due = minutes is not None and time.monotonic() - self.last_save >= 60 * minutes
        if trainer.world_size > 1:
            # Clocks and signals differ between ranks; all save, and stop, at the same update, with the same exit code.
            signal_and_due = torch.tensor([stop, due], device=module.device)
            stop, due = trainer.strategy.reduce(signal_and_due, reduce_op="max").tolist()
        due = due or bool(self.config.every_steps and step % self.config.every_steps == 0)
        due = due or trainer.should_stop or step == trainer.max_steps
        best = self.folder / "best.ckpt"
        if self.validation.improved:
            # Before the other one, from which a run goes on without looking back.
            trainer.save_checkpoint(best)
        if due or stop:
            self.save_last(trainer, step, not due, best if self.validation.improved else None)
        if stop:
            self.signal = stop
            trainer.should_stop = True

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Save what trainer.max_time and its like have ended, too."""
        # All processes must agree: one that looked at the disk might come before the first one's renaming.
        if trainer.global_step != self.last_saved:
            self.save_last(trainer, trainer.global_step, interim=True)

    def save_last(self, trainer: Trainer, step: int, interim: bool, same: Path | None = None) -> None:
        """Save this update, of which `same` may be a checkpoint, and remove what is beyond the last `keep`."""
        path = self.path(step)
        replaced, self.interim = self.interim, [*self.interim, *([step] if interim else [])]
        if same is None:
            trainer.save_checkpoint(path)
        elif trainer.is_global_zero:
            with renamed_when_whole(path) as temporary:
                link_or_copy(same, temporary)
        if trainer.is_global_zero:
            for update in replaced:
                self.path(update).unlink(missing_ok=True)
            remove_older(self.run, self.config.keep)
        self.interim = [step] if interim else []
        self.last_save, self.last_saved = time.monotonic(), step

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        checkpoint["nmt"] = {"format_version": FORMAT_VERSION, **vars(self.description)}
