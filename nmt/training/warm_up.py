"""Compile a model before its first update, with shapes that depend only on corpus and options."""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer
from lightning.fabric.utilities import move_data_to_device
from rich.console import Console

from nmt.config import ExperimentConfig, NMTError, one_line
from nmt.data import Batch, Planner, dummy_batch
from nmt.errors import is_out_of_memory
from nmt.kernels import Compiler
from nmt.training.saving import CheckpointCallback

ALIGNMENT = 8
"""Attention with a mask has one kernel for widths that are multiples of 8, one for other widths."""


def warm_up_batches(planner: Planner) -> Iterator[Batch]:
    """One batch for each kernel that the compiler makes.

    They are half as large as a full micro-batch, so that memory runs out later (in the memory
    check) or never.
    """
    rows, source_width, target_width = planner.largest_shapes()[0]
    # At least 2, because torch compiles a dimension of 1 as a constant.
    rows = max(2, rows // 2)
    aligned = max(ALIGNMENT, source_width // ALIGNMENT * ALIGNMENT)
    yield dummy_batch(rows, aligned, target_width)
    yield dummy_batch(rows, aligned + 1, target_width)
    # Without padding, attention has no mask.
    unpadded = dummy_batch(rows, aligned, target_width)
    positions = torch.arange(unpadded.target_out.numel())
    yield unpadded._replace(padded=False, target_indices=positions)


def kernel_identity(
    config: ExperimentConfig, vocabulary_size: int, planner: Planner, device: torch.device
) -> str:
    """Everything that decides the kernels of a run on a device."""
    kind = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    shapes = []
    for batch in warm_up_batches(planner):
        shapes.append((*batch.source.shape, *batch.target_in.shape))
    precision = config.trainer.precision
    return json.dumps([kind, precision, asdict(config.model), vocabulary_size, shapes])


class WarmUp(Callback):
    """With trainer.compile=true, compiles the model when training starts.

    See nmt/kernels/compilation.py.
    """

    def __init__(
        self,
        config: ExperimentConfig,
        vocabulary_size: int,
        planner: Planner,
        saver: CheckpointCallback,
        console: Console,
    ) -> None:
        self.config = config
        self.vocabulary_size = vocabulary_size
        self.planner = planner
        self.saver = saver
        self.console = console

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not self.config.trainer.compile:
            return
        module: Any = pl_module
        # Until training catches signals, a signal ends the process at once: there is no update to
        # finish.
        self.saver.restore_handlers()
        begin = time.monotonic()
        if trainer.is_global_zero:
            self.console.print(
                "compiling the model, which takes about a minute if its kernels are not cached"
            )
        try:
            self.compile(trainer, module)
        except (RuntimeError, OSError) as error:
            # Not a compiler problem: the caller reports missing memory.
            if is_out_of_memory(error):
                raise
            where = os.environ.get("TORCHINDUCTOR_CACHE_DIR", "")
            raise NMTError(
                f"trainer.compile=true: {one_line(error)}; "
                f"kernels are cached in TORCHINDUCTOR_CACHE_DIR={where}. "
                "Set that variable to another folder, or pass trainer.compile=false with name=OTHER"
            ) from error
        if trainer.is_global_zero:
            self.console.print(f"compiled the model in {time.monotonic() - begin:.0f} seconds")

    def compile(self, trainer: Trainer, module: Any) -> None:
        """Compute gradients of each shape once; torch compiles a kernel when it is first used."""
        identity = kernel_identity(self.config, self.vocabulary_size, self.planner, module.device)
        module.model.compiler = Compiler(identity)
        for batch in warm_up_batches(self.planner):
            # Autocast, as in a training step, decides the types that a kernel is compiled for.
            with trainer.precision_plugin.train_step_context():
                loss, _ = module.losses(move_data_to_device(batch, module.device))
            # The backward pass has separate kernels.
            loss.backward()
            module.zero_grad()
