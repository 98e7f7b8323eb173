"""Lightning's Trainer with the settings of `nmt train`."""

import logging
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from lightning import Callback, Trainer
from lightning.fabric.plugins.environments.cluster_environment import ClusterEnvironment
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment
from lightning.fabric.utilities.exceptions import MisconfigurationException

from nmt import compat
from nmt.config import ExperimentConfig, NMTError, TrainerConfig, in_words, one_line
from nmt.errors import SameForAll
from nmt.training.checkpoint_io import checkpoint_io
from nmt.training.launcher import is_task_of_slurm

REPLACED_PARTS = (
    "enable_model_summary",
    "logger",
    "enable_checkpointing",
    "enable_progress_bar",
    "use_distributed_sampler",
)
"""Flags of Lightning's Trainer that are False, because nmt has its own of each.

Callbacks report and save, and the planner shares out the batches.
"""

NOT_FOR_LIGHTNING = ("max_time", "compile", "reduction")
"""Options of `trainer` that nmt does not pass on.

Lightning has no `compile` and no `reduction`. With its own `max_time`, it would stop in the middle
of an update.
"""


@contextmanager
def quiet_lightning() -> Iterator[None]:
    """Suppress Lightning's advertisements and its warnings about intentional settings."""
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    with warnings.catch_warnings():
        for category in (UserWarning, FutureWarning):
            warnings.filterwarnings("ignore", category=category, module="lightning")
        yield


def check_devices(trainer: TrainerConfig) -> None:
    """Raise NMTError for devices that this machine lacks; Lightning's messages give no advice."""
    gpus = {"cuda": torch.cuda.is_available, "gpu": torch.accelerator.is_available}
    is_available = gpus.get(trainer.accelerator)
    if is_available and not is_available():
        raise NMTError(
            f"trainer.accelerator={trainer.accelerator}: torch {torch.__version__} finds no GPU; "
            "install a version of torch for your GPU, or pass trainer.accelerator=cpu"
        )
    is_on_cpu = trainer.accelerator == "cpu" or not torch.accelerator.is_available()
    names_gpus = trainer.devices == -1 or isinstance(trainer.devices, list)
    if is_on_cpu and names_gpus:
        raise NMTError(
            f"trainer.devices={in_words(trainer.devices)}: is for GPUs; "
            "on a CPU, pass a number of processes"
        )


def trainer_flags(trainer: TrainerConfig) -> dict[str, Any]:
    """The arguments of Lightning's Trainer, without callbacks."""
    flags: dict[str, Any] = dict.fromkeys(REPLACED_PARTS, False)
    for name, value in vars(trainer).items():
        # None means that Lightning's own default applies.
        if value is not None and name not in NOT_FOR_LIGHTNING:
            flags[name] = value
    flags["max_epochs"] = -1  # only max_steps ends training
    flags["limit_val_batches"] = 0  # the callback `Validation` validates
    flags["plugins"] = []
    if TorchElasticEnvironment.detect():
        return flags
    # Under SLURM, Lightning would respond to a signal by saving another kind of checkpoint and
    # requeuing the job.
    if is_task_of_slurm():
        flags["plugins"].append(SLURMEnvironment(auto_requeue=False))
    # In the shell of salloc, Lightning would look for a rank that only srun sets.
    elif "SLURM_NTASKS" in os.environ:
        flags["plugins"].append(LightningEnvironment())
    return flags


def check_tasks(trainer: Trainer, environments: Sequence[ClusterEnvironment]) -> None:
    """Raise SameForAll unless SLURM starts a task for each device.

    Lightning itself compares them only when training starts.
    """
    for environment in environments:
        try:
            environment.validate_settings(trainer.num_devices, trainer.num_nodes)
        except ValueError as error:
            raise SameForAll(f"trainer: {one_line(error)}") from error


def make_trainer(config: ExperimentConfig, callbacks: Sequence[Callback] = ()) -> Trainer:
    """A Lightning trainer with the flags in `config.trainer`; NMTError for an invalid flag."""
    check_devices(config.trainer)
    flags = trainer_flags(config.trainer)
    try:
        with quiet_lightning():
            trainer = Trainer(**flags, callbacks=[*callbacks])
    except (MisconfigurationException, TypeError, ValueError, RuntimeError) as error:
        raise NMTError(f"trainer: {one_line(error)}") from error
    if trainer.world_size > 1:
        check_tasks(trainer, flags["plugins"])
    device = trainer.strategy.root_device
    trainer.strategy.checkpoint_io = checkpoint_io(device)
    # On a CPU, Lightning would silently compute in bfloat16.
    if config.trainer.precision == "16-mixed" and device.type == "cpu":
        raise NMTError("trainer.precision=16-mixed: needs a GPU; on a CPU, omit it")
    compat.without_sigterm_broadcast(trainer)  # CheckpointCallback exchanges signals often enough
    return trainer
