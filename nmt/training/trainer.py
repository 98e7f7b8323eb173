"""Lightning's Trainer: its flags, its log messages, and the processes that it launches."""

import logging
import signal
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch.distributed as dist
from lightning import Callback, Trainer
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch.strategies.launchers.subprocess_script import _SubprocessScriptLauncher

from nmt.config import ExperimentConfig
from nmt.config.trainer import check_precision
from nmt.errors import NMTError, one_line
from nmt.training.strategies import Sharded


@contextmanager
def quiet_lightning() -> Iterator[None]:
    """Suppress Lightning's advertisements, and its warnings about intended settings."""
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    logging.getLogger("lightning.fabric").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning, module="lightning")
        warnings.filterwarnings("ignore", category=FutureWarning, module="lightning")
        yield


def make_trainer(config: ExperimentConfig, callbacks: Sequence[Callback] = ()) -> Trainer:
    """The Lightning trainer of `config.trainer`; NMTError where a flag is wrong."""
    # With max_time, Lightning would stop in the middle of an update.
    flags = {key: value for key, value in config.trainer.items() if value is not None and key != "max_time"}
    try:
        with quiet_lightning():
            trainer = Trainer(
                **{"enable_model_summary": False, **flags, **launch_flags(flags)},
                max_epochs=-1,
                callbacks=list(callbacks),
                logger=False,
                enable_checkpointing=False,
                enable_progress_bar=False,
                use_distributed_sampler=False,
                limit_val_batches=0,
            )
    except (MisconfigurationException, TypeError, ValueError, RuntimeError) as error:
        raise NMTError(f"trainer: {one_line(error)}") from error
    check_precision(config.trainer["precision"], on_processor=trainer.strategy.root_device.type == "cpu")
    # Lightning asks all processes before each micro-batch for a SIGTERM; CheckpointCallback asks often enough.
    trainer.fit_loop.epoch_loop._broadcast_sigterm_tensor = lambda: None  # type: ignore[method-assign]
    return trainer


def launch_flags(flags: dict[str, Any]) -> dict[str, Any]:
    """The flags that Lightning takes as objects."""
    objects: dict[str, Any] = {}
    if flags.get("strategy") == "fsdp":  # Lightning's own needs GPUs; ours also runs on processors
        objects["strategy"] = Sharded(save_distributed_checkpoint=False)
    # In SLURM, Lightning would answer a signal with a checkpoint of another kind, and requeue the job.
    if SLURMEnvironment.detect() and not TorchElasticEnvironment.detect():
        objects["plugins"] = [SLURMEnvironment(auto_requeue=False)]
    return objects


def end_launched_processes(trainer: Trainer) -> None:
    """Kill the processes that Lightning launched beside this one, which would wait for it forever."""
    if isinstance(trainer.strategy.launcher, _SubprocessScriptLauncher):
        trainer.strategy.launcher.kill(signal.SIGKILL)


def leave_process_group() -> None:
    """Leave the process group when all processes have come here: leaving earlier would break their communication."""
    if dist.is_initialized():
        dist.gather_object(None, [None] * dist.get_world_size() if dist.get_rank() == 0 else None)
        dist.destroy_process_group()
