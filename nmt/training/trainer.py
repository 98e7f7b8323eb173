"""Lightning's Trainer: its flags, its silence, and the end of the processes that it launched."""

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
    """Without Lightning's advertisements, and its warnings about what is meant here."""
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    logging.getLogger("lightning.fabric").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning, module="lightning")
        warnings.filterwarnings("ignore", category=FutureWarning, module="lightning")
        yield


def make_trainer(config: ExperimentConfig, callbacks: Sequence[Callback] = ()) -> Trainer:
    """The Lightning trainer of `config.trainer`; NMTError where a flag is wrong."""
    # Lightning would stop within an update when the time is up.
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
    # Lightning asks the other processes before each micro-batch whether SIGTERM came; Interruptions asks enough.
    trainer.fit_loop.epoch_loop._broadcast_sigterm_tensor = lambda: None  # type: ignore[method-assign]
    return trainer


def launch_flags(flags: dict[str, Any]) -> dict[str, Any]:
    """The flags of `trainer:` that Lightning is to be given as objects.

    Its own FSDP needs GPUs; this one runs on processors, too. In SLURM, its own answer to a signal would write another
    kind of checkpoint and requeue the job, where ours saves and lets the exit code tell.
    """
    objects: dict[str, Any] = {}
    if flags.get("strategy") == "fsdp":
        objects["strategy"] = Sharded(save_distributed_checkpoint=False)
    if SLURMEnvironment.detect() and not TorchElasticEnvironment.detect():
        objects["plugins"] = [SLURMEnvironment(auto_requeue=False)]
    return objects


def end_launched_processes(trainer: Trainer) -> None:
    """End those that Lightning launched beside this one, which would wait for it in vain."""
    if isinstance(trainer.strategy.launcher, _SubprocessScriptLauncher):
        trainer.strategy.launcher.kill(signal.SIGKILL)


def leave_process_group() -> None:
    """Leave it when all others have come as far: one that leaves earlier cuts them off in what they still wait for."""
    if dist.is_initialized():
        dist.gather_object(None, [None] * dist.get_world_size() if dist.get_rank() == 0 else None)
        dist.destroy_process_group()
