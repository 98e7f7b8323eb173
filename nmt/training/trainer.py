"""Lightning's Trainer: its flags, FSDP, and the processes that train together."""

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
from lightning import Callback, LightningModule, Trainer
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch.strategies import ModelParallelStrategy
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method

from nmt.compat import launched_processes, observe_launched_processes, without_sigterm_broadcast
from nmt.config import ExperimentConfig, check_precision
from nmt.errors import NMTError, is_out_of_memory, one_line
from nmt.model import DecoderLayer, EncoderLayer, Transformer

LAYERS = (EncoderLayer, DecoderLayer)
FIRST_PROCESS = "NMT_FIRST_PROCESS"
"""The variable that tells the processes that Lightning launches which process launched them."""
LOST = re.compile(r"gloo/transport|Connection (closed|reset) by peer|DataLoader worker \(pid")
"""Messages of gloo and of DataLoader where another process has ended."""


class Sharded(ModelParallelStrategy):
    """FSDP, for models that do not fit on one device: torch's `fully_shard` under Lightning's strategy.

    A layer's weights are gathered while it computes. Checkpoints hold whole tensors in one file, as elsewhere.
    """

    def lightning_module_state_dict(self) -> dict[str, Any]:
        # Tied weights are gathered once for each of their names; when they share memory, they are written once.
        gathered = super().lightning_module_state_dict()
        first_names: dict[Tensor, str] = {}
        assert self.lightning_module is not None
        for name, parameter in self.lightning_module.named_parameters(remove_duplicate=False):
            first = first_names.setdefault(parameter, name)
            if name in gathered:  # only on the first process
                gathered[name] = gathered[first]
        return gathered


def shard(module: LightningModule, model: Transformer) -> None:
    """Shard the weights over all processes: each layer is gathered by itself, embeddings and the rest with `losses`."""
    mesh = init_device_mesh(module.trainer.strategy.root_device.type, (module.trainer.world_size,))
    for layer in model.modules():
        if isinstance(layer, LAYERS):
            fully_shard(layer, mesh=mesh)
    fully_shard(module, mesh=mesh)
    # The output matrix is used outside any layer's forward, so its unit is gathered around the loss.
    register_fsdp_forward_method(module, "losses")


@contextmanager
def whole_weights(module: LightningModule) -> Iterator[None]:
    """Gather all weights on each process, so that each can run a different number of batches."""
    units = [unit for unit in module.modules() if isinstance(unit, FSDPModule)]
    for unit in units:
        unit.set_reshard_after_forward(False, recurse=False)
        unit.unshard()
    try:
        yield
    finally:
        for unit in units:
            unit.set_reshard_after_forward(isinstance(unit, LAYERS), recurse=False)
            unit.reshard()


@contextmanager
def quiet_lightning() -> Iterator[None]:
    """Suppress Lightning's advertisements, and its warnings about intended settings."""
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning, module="lightning")
        warnings.filterwarnings("ignore", category=FutureWarning, module="lightning")
        yield


def make_trainer(config: ExperimentConfig, callbacks: Sequence[Callback] = ()) -> Trainer:
    """The Lightning trainer of `config.trainer`; NMTError where a flag is wrong."""
    off = ("enable_model_summary", "logger", "enable_checkpointing", "enable_progress_bar", "use_distributed_sampler")
    flags: dict[str, Any] = dict.fromkeys(off, False)
    flags |= {key: value for key, value in vars(config.trainer).items() if value is not None}
    flags.pop("max_time", None)  # with it, Lightning would stop in the middle of an update
    if flags.get("strategy") == "fsdp":  # Lightning's own needs GPUs; ours also runs on processors
        flags["strategy"] = Sharded(save_distributed_checkpoint=False)
    # In SLURM, Lightning would answer a signal with a checkpoint of another kind, and requeue the job.
    if SLURMEnvironment.detect() and not TorchElasticEnvironment.detect():
        flags["plugins"] = [SLURMEnvironment(auto_requeue=False)]
    try:
        with quiet_lightning():
            trainer = Trainer(**flags, max_epochs=-1, limit_val_batches=0, callbacks=list(callbacks))
    except (MisconfigurationException, TypeError, ValueError, RuntimeError) as error:
        raise NMTError(f"trainer: {one_line(error)}") from error
    check_precision(config.trainer.precision, on_processor=trainer.strategy.root_device.type == "cpu")
    without_sigterm_broadcast(trainer)  # CheckpointCallback asks often enough
    return trainer


def end_launched_processes(trainer: Trainer) -> None:
    """Kill the processes that Lightning launched beside this one, which would wait for it forever."""
    for process in launched_processes(trainer):
        process.kill()


def how_one_ended(processes: Sequence[Popen[bytes]]) -> str:
    """The end of the first process that ended with an error, for a message; empty where there is none."""
    for rank, process in enumerate(processes, 1):
        if code := process.poll():
            how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
            return f"process {rank} of this training (pid {process.pid}) {how}"
    return ""


@contextmanager
def watched(trainer: Trainer) -> Iterator[None]:
    """Raise NMTError where another process of a training ends before its time.

    Where communication with it hangs instead of failing, this process prints the message and ends.
    """
    over = Event()

    def end_when(reason: Callable[[], str]) -> None:
        def look() -> None:
            while not over.wait(1):
                # Communication has ten seconds to fail by itself; with NCCL it would hang for minutes.
                if (message := reason()) and not over.wait(10):
                    end_launched_processes(trainer)
                    print(f"nmt: {message}: the same command resumes", file=sys.stderr)
                    os._exit(2)

        Thread(target=look, daemon=True).start()

    observe_launched_processes(lambda processes: end_when(lambda: how_one_ended(processes)))
    first = os.environ.setdefault(FIRST_PROCESS, str(os.getpid()))
    if launched_by_lightning := first != str(os.getpid()):
        ended = f"the first process of this training has ended (pid {first})"
        end_when(lambda: "" if str(os.getppid()) == first else ended)
    try:
        yield
    except (RuntimeError, OSError) as error:
        if is_out_of_memory(error):
            raise
        # A process may still be ending when its connections are closed already.
        processes, deadline = launched_processes(trainer), time.monotonic() + 2
        while processes and not how_one_ended(processes) and time.monotonic() < deadline:
            time.sleep(0.05)
        message = how_one_ended(processes)
        if not message and not isinstance(error, dist.DistError) and not LOST.search(str(error)):
            raise
        reason = message or f"another process of this training has ended ({one_line(error)})"
        raise NMTError(f"{reason}: the same command resumes") from error
    finally:
        over.set()
        if not launched_by_lightning:
            del os.environ[FIRST_PROCESS]


def leave_process_group() -> None:
    """Leave the process group when all processes have come here: leaving earlier would break their communication."""
    if dist.is_initialized():
        dist.gather_object(None, [None] * dist.get_world_size() if dist.get_rank() == 0 else None)
        dist.destroy_process_group()
