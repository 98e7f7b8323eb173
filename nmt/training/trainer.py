"""Lightning's Trainer, and callbacks per update instead of per micro-batch."""

import logging
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment
from lightning.fabric.utilities import move_data_to_device
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch.plugins import TorchCheckpointIO
from torch.optim import Optimizer

from nmt.compat import without_sigterm_broadcast
from nmt.config import BatchingConfig, ExperimentConfig
from nmt.data import Batch, BatchPlanner, dummy_batch
from nmt.errors import NMTError, enough_memory_or, one_line
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


def make_resident(module: TranslationModule, optimizer: Optimizer) -> None:
    """Allocate zero gradients and Adam moments, which would otherwise exist only from the second update on."""
    for parameter in module.parameters():
        parameter.grad = torch.zeros_like(parameter)
    if not optimizer.state:
        optimizer.step()
        for state in optimizer.state.values():
            state.get("step", torch.zeros(())).zero_()


def try_shapes(trainer: Trainer, module: TranslationModule, shapes: Iterable[tuple[int, int, int]]) -> None:
    """Run a forward and a backward pass for each shape (rows, source width, target width), without an update."""
    sums = module.update_sums.clone()
    for shape in shapes:
        if trainer.accumulate_grad_batches == 1:
            module.zero_grad()  # as after every update; otherwise gradients accumulate
        loss = trainer.strategy.training_step(move_data_to_device(dummy_batch(*shape), module.device), 0)
        trainer.strategy.backward(loss, None)  # type: ignore[arg-type]
        del loss
    module.update_sums.copy_(sums)


class MemoryCheck(Callback):
    """Tries the largest micro-batches before the first update, so that memory runs out then or never."""

    def __init__(self, planner: BatchPlanner, batching: BatchingConfig) -> None:
        self.planner, self.batching = planner, batching

    def on_train_start(self, trainer: Trainer, pl_module: Any) -> None:
        tokens, micro_batches = self.batching.tokens_per_update, self.batching.micro_batches
        advice = (
            f"a micro-batch of {tokens // micro_batches:,} source and target tokens does not fit next to weights, "
            f"gradients and Adam's moments. Pass batching.micro_batches={2 * micro_batches} (smaller ones), a lower "
            f"batching.tokens_per_update={tokens}, or batching.max_tokens=auto"
        )
        # Room for threads, buffers and gaps between tensors: 64 MiB plus 5 % of weights, gradients and two moments.
        size = 2**26 + sum(parameter.nbytes for parameter in pl_module.parameters()) // 5
        with enough_memory_or(advice):
            reserve = torch.empty(size, dtype=torch.uint8, device=pl_module.device)
            make_resident(pl_module, trainer.optimizers[0])
            try_shapes(trainer, pl_module, self.planner.largest_shapes())
            del reserve
        trainer.optimizers[0].zero_grad()


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
