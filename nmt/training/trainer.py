"""Lightning's Trainer: its flags, its log messages, and the processes that it launches."""

import logging
import os
import re
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from subprocess import Popen
from threading import Event, Thread
from typing import Any

import torch.distributed as dist
from lightning import Callback, Trainer
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch.strategies.launchers import subprocess_script

from nmt.config import ExperimentConfig, check_precision
from nmt.errors import NMTError, is_out_of_memory, one_line
from nmt.training.strategies import Sharded

HANGING_SECONDS = 10.0
"""Time for this process to notice that another one has ended. With NCCL it would wait for minutes."""
ENDING_SECONDS = 2.0
"""A process may still be ending when its connections are closed already."""
FIRST_PROCESS = "NMT_FIRST_PROCESS"
"""The variable that tells the processes that Lightning launches which process launched them."""
FIRST_ENDED = "the first process of this training has ended"
LOST = re.compile(r"gloo/transport|Connection (closed|reset) by peer|DataLoader worker \(pid")
"""Messages of gloo and of DataLoader where another process has ended."""


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
    flags = {key: value for key, value in vars(config.trainer).items() if value is not None and key != "max_time"}
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
    check_precision(config.trainer.precision, on_processor=trainer.strategy.root_device.type == "cpu")
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
    for process in launched_processes(trainer):
        process.kill()


def launched_processes(trainer: Trainer) -> list[Popen[bytes]]:
    """The processes that Lightning launched beside this one."""
    launcher = trainer.strategy.launcher
    return launcher.procs if isinstance(launcher, subprocess_script._SubprocessScriptLauncher) else []


def how_one_ended(processes: Sequence[Popen[bytes]]) -> str:
    """The end of the first process that ended with an error, for a message; empty where there is none."""
    for rank, process in enumerate(processes, 1):
        if code := process.poll():
            how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
            return f"process {rank} of this training (pid {process.pid}) {how}: the same command resumes"
    return ""


@contextmanager
def watched(trainer: Trainer) -> Iterator[None]:
    """Raise NMTError where another process of a training ends before its time.

    Where communication with it hangs instead of failing, this process prints the message and ends. Lightning's own
    observer would kill it without a message.
    """
    over = Event()

    def end_when(reason: Callable[[], str]) -> None:
        def look() -> None:
            while not over.wait(1):
                if (message := reason()) and not over.wait(HANGING_SECONDS):
                    end_launched_processes(trainer)
                    print(f"nmt: {message}", file=sys.stderr)
                    os._exit(2)

        Thread(target=look, daemon=True).start()

    def observe(processes: list[Popen[bytes]]) -> None:
        end_when(lambda: how_one_ended(processes))

    subprocess_script._launch_process_observer = observe  # type: ignore[assignment,attr-defined]
    first = os.environ.setdefault(FIRST_PROCESS, str(os.getpid()))
    if launched_by_lightning := first != str(os.getpid()):
        end_when(lambda: "" if str(os.getppid()) == first else f"{FIRST_ENDED} (pid {first}): the same command resumes")
    try:
        yield
    except (RuntimeError, OSError) as error:
        if is_out_of_memory(error):
            raise
        processes, deadline = launched_processes(trainer), time.monotonic() + ENDING_SECONDS
        while processes and not how_one_ended(processes) and time.monotonic() < deadline:
            time.sleep(0.05)
        message = how_one_ended(processes)
        if not message and (isinstance(error, dist.DistError) or LOST.search(str(error))):
            message = f"another process of this training has ended ({one_line(error)}): the same command resumes"
        if message:
            raise NMTError(message) from error
        raise
    finally:
        over.set()
        if not launched_by_lightning:
            del os.environ[FIRST_PROCESS]


def leave_process_group() -> None:
    """Leave the process group when all processes have come here: leaving earlier would break their communication."""
    if dist.is_initialized():
        dist.gather_object(None, [None] * dist.get_world_size() if dist.get_rank() == 0 else None)
        dist.destroy_process_group()
