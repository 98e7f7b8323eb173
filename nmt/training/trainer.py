"""Lightning's Trainer, and the processes that train together."""

import logging
import os
import re
import signal
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import torch
import torch.distributed as dist
from lightning import Callback, Trainer
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch.plugins import TorchCheckpointIO

from nmt.compat import launched_processes, silence_process_observer, without_sigterm_broadcast
from nmt.config import ExperimentConfig, check_precision
from nmt.errors import NMTError, is_out_of_memory, one_line
from nmt.files import whole_file

FIRST_PROCESS = "NMT_FIRST_PROCESS"
"""The variable that tells the processes that Lightning launches which process launched them."""
LOST = re.compile(r"gloo/transport|Connection (closed|reset) by peer|DataLoader worker \(pid")
"""Messages of gloo and of DataLoader where another process has ended."""
OFF = ("enable_model_summary", "logger", "enable_checkpointing", "enable_progress_bar", "use_distributed_sampler")


class DirectCheckpointIO(TorchCheckpointIO):
    """Writes a checkpoint straight into its folder; Lightning's own writes through memory and a temporary folder."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        try:
            with whole_file(Path(path)) as temporary:
                torch.save(checkpoint, temporary)
        except NMTError as error:
            raise NMTError(f"{error} The checkpoints before it are whole, and the same command resumes") from error


@contextmanager
def quiet_lightning() -> Iterator[None]:
    """Suppress Lightning's advertisements, and its warnings about intended settings."""
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    with warnings.catch_warnings():
        for category in (UserWarning, FutureWarning):
            warnings.filterwarnings("ignore", category=category, module="lightning")
        yield


def make_trainer(config: ExperimentConfig, callbacks: Sequence[Callback] = ()) -> Trainer:
    """The Lightning trainer of `config.trainer`; NMTError where a flag is wrong."""
    flags: dict[str, Any] = dict.fromkeys(OFF, False)
    flags |= {key: value for key, value in vars(config.trainer).items() if value is not None}
    flags.pop("max_time", None)  # with it, Lightning would stop in the middle of an update
    flags |= {"max_epochs": -1, "limit_val_batches": 0, "callbacks": [*callbacks], "plugins": [DirectCheckpointIO()]}
    # In SLURM, Lightning would answer a signal with a checkpoint of another kind, and requeue the job.
    if SLURMEnvironment.detect() and not TorchElasticEnvironment.detect():
        flags["plugins"].append(SLURMEnvironment(auto_requeue=False))
    try:
        with quiet_lightning():
            trainer = Trainer(**flags)
    except (MisconfigurationException, TypeError, ValueError, RuntimeError) as error:
        raise NMTError(f"trainer: {one_line(error)}") from error
    check_precision(config.trainer.precision, on_processor=trainer.strategy.root_device.type == "cpu")
    without_sigterm_broadcast(trainer)  # CheckpointCallback asks often enough
    return trainer


def end_launched_processes(trainer: Trainer) -> None:
    """Kill the processes that Lightning launched beside this one, which would wait for it forever."""
    for process in launched_processes(trainer):
        process.kill()


@contextmanager
def watched(trainer: Trainer) -> Iterator[None]:
    """Raise NMTError where another process of a training ends before its time.

    Where communication with it hangs instead of failing, this process prints the message and ends.
    """
    over, first = Event(), os.environ.setdefault(FIRST_PROCESS, str(os.getpid()))
    is_first = first == str(os.getpid())

    def reason() -> str:
        """The end of another process; empty where all are at work, or this is the only one."""
        if not is_first:
            return "" if str(os.getppid()) == first else f"the first process of this training has ended (pid {first})"
        for rank, process in enumerate(launched_processes(trainer), 1):
            if code := process.poll():
                how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
                return f"process {rank} of this training (pid {process.pid}) {how}"
        return ""

    def look() -> None:
        while not over.wait(1):
            # Communication has ten seconds to fail by itself; with NCCL it would hang for minutes.
            if (message := reason()) and not over.wait(10):
                end_launched_processes(trainer)
                print(f"nmt: {message}: the same command resumes", file=sys.stderr)
                os._exit(2)

    silence_process_observer()
    Thread(target=look, daemon=True).start()
    try:
        yield
        if dist.is_initialized():  # leaving before all processes are here would break their communication
            dist.gather_object(None, [None] * trainer.world_size if trainer.is_global_zero else None)
            dist.destroy_process_group()
    except (RuntimeError, OSError) as error:
        if is_out_of_memory(error):
            raise
        # A process may still be ending when its connections are closed already.
        deadline = time.monotonic() + 2
        while launched_processes(trainer) and not reason() and time.monotonic() < deadline:
            time.sleep(0.05)
        lost = isinstance(error, dist.DistError) or LOST.search(str(error)) is not None
        if not (message := reason()) and not lost:
            raise
        message = message or f"another process of this training has ended ({one_line(error)})"
        raise NMTError(f"{message}: the same command resumes") from error
    finally:
        over.set()
        if is_first:
            del os.environ[FIRST_PROCESS]
