"""Lightning's Trainer, and callbacks per update instead of per micro-batch."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch.plugins import TorchCheckpointIO

from nmt.compat import without_sigterm_broadcast
from nmt.config import ExperimentConfig, NMTError, one_line
from nmt.data import Batch
from nmt.files import whole_file
from nmt.training.module import TranslationModule

OFF = ("enable_model_summary", "logger", "enable_checkpointing", "enable_progress_bar", "use_distributed_sampler")


class UpdateCallback(Callback):
    """Calls `on_update_end(trainer, module, step)` after each update; Lightning's own hooks run per micro-batch."""

    batch: Batch | None = None  # the last micro-batch of the last update

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if (batch_idx + 1) % trainer.accumulate_grad_batches == 0:
            self.batch = batch
            self.on_update_end(trainer, pl_module, trainer.global_step)  # type: ignore[arg-type]

    def on_update_end(self, trainer: Trainer, module: TranslationModule, step: int) -> None:
        raise NotImplementedError


class DirectCheckpointIO(TorchCheckpointIO):
    """Writes a checkpoint directly into its folder; Lightning would first copy it to memory and a temporary folder."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        with whole_file(Path(path)) as temporary:
            torch.save(checkpoint, temporary)


@contextmanager
def quiet_lightning() -> Iterator[None]:
    """Suppress Lightning's advertisements and its warnings about intentional settings."""
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    with warnings.catch_warnings():
        for category in (UserWarning, FutureWarning):
            warnings.filterwarnings("ignore", category=category, module="lightning")
        yield


def make_trainer(config: ExperimentConfig, callbacks: Sequence[Callback] = ()) -> Trainer:
    """A Lightning trainer with the flags in `config.trainer`; NMTError for an invalid flag."""
    flags: dict[str, Any] = dict.fromkeys(OFF, False)
    flags |= {key: value for key, value in vars(config.trainer).items() if value is not None}
    flags.pop("max_time", None)  # with it, Lightning would stop in the middle of an update
    flags |= {"max_epochs": -1, "limit_val_batches": 0, "callbacks": [*callbacks], "plugins": [DirectCheckpointIO()]}
    # Under SLURM, Lightning would respond to a signal by saving another kind of checkpoint and requeuing the job.
    if SLURMEnvironment.detect() and not TorchElasticEnvironment.detect():
        flags["plugins"].append(SLURMEnvironment(auto_requeue=False))
    try:
        with quiet_lightning():
            trainer = Trainer(**flags)
    except (MisconfigurationException, TypeError, ValueError, RuntimeError) as error:
        raise NMTError(f"trainer: {one_line(error)}") from error
    # On a CPU, Lightning would silently compute in bfloat16.
    if config.trainer.precision == "16-mixed" and trainer.strategy.root_device.type == "cpu":
        raise NMTError("trainer.precision=16-mixed: needs a GPU; on a CPU, omit it")
    without_sigterm_broadcast(trainer)  # CheckpointCallback exchanges signals often enough
    return trainer
