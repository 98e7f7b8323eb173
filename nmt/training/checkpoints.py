"""Checkpoints: when they are written, which are kept, and what stops a run.

`checkpoints/step=00001000.ckpt` holds plain tensors, numbers and strings; it loads with weights_only=True.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from lightning import LightningModule, Trainer
from lightning.pytorch.plugins import TorchCheckpointIO

from nmt.config import CheckpointConfig
from nmt.errors import NMTError, one_line
from nmt.storage.archive import load_plain
from nmt.storage.whole import whole_file
from nmt.training.checkpoint_content import check_content
from nmt.training.run_folder import checkpoint_path, remove_older
from nmt.training.stopping import Interruptions
from nmt.training.updates import UpdateCallback
from nmt.training.validation import Validation

FORMAT_VERSION = 1


class UnreadableCheckpoint(NMTError):
    """A checkpoint that is empty, cut or damaged, or none of ours: the one before it may be whole."""


def unreadable(path: Path, reason: str) -> UnreadableCheckpoint:
    return UnreadableCheckpoint(f"{path}: no readable checkpoint ({reason})")


def load_checkpoint(path: Path) -> dict[str, Any]:
    """A checkpoint's content, mapped from its file; its check sums are looked at.

    Raises UnreadableCheckpoint, and NMTError where there is none or it is of another format version.
    """
    if not path.is_file():
        raise NMTError(f"{path}: no such checkpoint")
    try:
        content = load_plain(path)
    except ValueError as error:
        raise unreadable(path, one_line(error)) from error
    about = content.get("nmt") if isinstance(content, dict) else None
    if not isinstance(about, dict) or "format_version" not in about:
        raise unreadable(path, "none of nmt's")
    version = about["format_version"]
    if version != FORMAT_VERSION:
        raise NMTError(
            f"{path}: format version {version}, but this nmt reads {FORMAT_VERSION}: use the nmt that wrote it"
        )
    try:
        check_content(content)
    except ValueError as error:
        raise unreadable(path, one_line(error)) from error
    return content  # type: ignore[no-any-return]


def link_or_copy(path: Path, other: Path) -> None:
    """Give a file another name, with a copy where the file system has no links."""
    try:
        other.hardlink_to(path)
    except OSError:
        shutil.copyfile(path, other)


@contextmanager
def whole_checkpoint(path: Path) -> Iterator[Path]:
    """A temporary name for a checkpoint, which gets its own when it is whole; NMTError where it cannot be written."""
    try:
        with whole_file(path) as temporary:
            yield temporary
    except NMTError as error:
        raise NMTError(
            f"{error} The checkpoints before it are whole, and the same command goes on from them"
        ) from error


class DirectCheckpointIO(TorchCheckpointIO):
    """Writes a checkpoint where it is wanted: Lightning's own takes it through memory and the system's folder for
    temporary files, which may be small, and where a killed process leaves it behind."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        with whole_checkpoint(Path(path)) as temporary:
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
    seen: dict[str, Any] = field(default_factory=dict)
    """Lengths and characters of the training pairs, as its manifest has them."""


class Checkpoints(UpdateCallback):
    """Saves every so many updates, and after the last one, what is averaged; and between them for safety.

    Which checkpoints there are is decided by updates alone (`kept`), never by the clock: one that was saved after some
    minutes, or because the run was to stop, is replaced by the next.
    """

    def __init__(
        self,
        run: Path,
        config: CheckpointConfig,
        description: RunDescription,
        validation: Validation,
        interruptions: Interruptions,
    ) -> None:
        self.run, self.config, self.description, self.validation = run, config, description, validation
        self.interruptions = interruptions
        self.stopped_by = 0
        """The number of the signal that ended the run early; 0: none did."""

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        if type(trainer.strategy.checkpoint_io) is TorchCheckpointIO:
            trainer.strategy.checkpoint_io = DirectCheckpointIO()

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        super().on_train_start(trainer, pl_module)
        self.interruptions.begin(trainer.global_step)

    def on_update_end(self, trainer: Trainer, module: LightningModule, step: int) -> None:
        wish = self.interruptions.wish(trainer, module, step)
        self.stopped_by = wish.signal or self.stopped_by
        # Lightning looks at it behind each micro-batch, so it is set at the end of an update alone.
        trainer.should_stop = trainer.should_stop or bool(wish.signal) or wish.out_of_time
        best = self.run / "checkpoints" / "best.ckpt"
        if self.validation.improved:
            # Before the other one, from which a run goes on without looking back.
            trainer.save_checkpoint(best)
        ends = trainer.should_stop or step == trainer.max_steps
        if ends or wish.save or step % self.config.every_steps == 0:
            self.save(trainer, step, best if self.validation.improved else None)

    def save(self, trainer: Trainer, step: int, same: Path | None) -> None:
        """Save this update, of which `same` may be a checkpoint already, and remove what is not to be kept."""
        path = checkpoint_path(self.run, step)
        if same is None:
            trainer.save_checkpoint(path)
        elif trainer.is_global_zero:
            with whole_checkpoint(path) as temporary:
                link_or_copy(same, temporary)
        if trainer.is_global_zero:
            remove_older(self.run, self.config)
        self.interruptions.saved()

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        checkpoint["nmt"] = {"format_version": FORMAT_VERSION, **vars(self.description)}
