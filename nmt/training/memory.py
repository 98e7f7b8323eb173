"""A trial of the largest micro-batches before the first update: memory runs out then or never."""

from typing import Any

import torch
from lightning import Callback, Trainer
from lightning.fabric.utilities import move_data_to_device
from torch.optim import Optimizer

from nmt.config import ExperimentConfig
from nmt.data import Planner, dummy_batch
from nmt.errors import enough_memory_or
from nmt.training.frozen import trained_parameters
from nmt.training.module import TranslationModule

RESERVED_BYTES = 2**26
"""64 MiB for threads and buffers, whatever the size of the model."""

RESERVED_SHARE = 0.2
"""For gaps between tensors, as a share of the weights: 5% of weights, gradients and two moments."""


def make_resident(module: TranslationModule, optimizer: Optimizer) -> None:
    """Allocate zero gradients and the optimizer's state.

    They would otherwise exist only from the second update on.
    """
    give_zero_gradients(module)
    # A run that resumes has loaded its state already.
    if not optimizer.state:
        for group in optimizer.param_groups:
            group["lr"] = 0.0  # or weight decay would change the weights; every update sets it
        optimizer.step()
        for state in optimizer.state.values():
            if "step" in state:
                # Zero gradients left the moments at zero; only the count of updates needs undoing.
                state["step"].zero_()
        # An optimizer may have freed the gradients.
        give_zero_gradients(module)


def give_zero_gradients(module: TranslationModule) -> None:
    for parameter in trained_parameters(module):
        parameter.grad = torch.zeros_like(parameter)


def try_shapes(trainer: Trainer, module: TranslationModule, planner: Planner) -> None:
    """Run a forward and a backward pass for the largest micro-batches, without an update."""
    # The passes add to the sums of the first update, as do requests to stop.
    sums = module.update_sums.clone()
    for rows, source_width, target_width in planner.largest_shapes():
        if trainer.accumulate_grad_batches == 1:
            module.zero_grad()  # as after every update; otherwise gradients accumulate
        batch = move_data_to_device(dummy_batch(rows, source_width, target_width), module.device)
        # Through the strategy, so that autocast, loss scaling and the exchange of gradients are as
        # in training and need the same memory.
        loss = trainer.strategy.training_step(batch, 0)
        trainer.strategy.backward(loss, None)  # type: ignore[arg-type]
        # The loss holds the pass's memory, which the next pass needs.
        del loss
    module.update_sums.copy_(sums)


class MemoryCheck(Callback):
    """Tries the largest micro-batches before the first update."""

    def __init__(self, config: ExperimentConfig, planner: Planner) -> None:
        self.batching = config.batching
        self.planner = planner

    def on_train_start(self, trainer: Trainer, pl_module: Any) -> None:
        tokens = self.batching.tokens_per_update
        micro_batches = self.batching.micro_batches
        advice = (
            f"a micro-batch of {tokens // micro_batches:,} source and target tokens does not fit "
            "next to weights, gradients and the optimizer's state. "
            f"Pass batching.micro_batches={2 * micro_batches} (smaller ones) or a lower "
            f"batching.tokens_per_update={tokens}"
        )
        if not pl_module.model.config.checkpointing:
            advice += ", or model.checkpointing=true"
        size = self.reserved_bytes(trainer, pl_module)
        optimizer = trainer.optimizers[0]
        with enough_memory_or(advice):
            # Held during the trial and freed after it, so that this much stays available.
            reserve = torch.empty(size, dtype=torch.uint8, device=pl_module.device)
            make_resident(pl_module, optimizer)
            try_shapes(trainer, pl_module, self.planner)
            del reserve
        # The gradients of the dummy batches must not reach the first update.
        optimizer.zero_grad()

    def reserved_bytes(self, trainer: Trainer, module: TranslationModule) -> int:
        """The memory that training needs besides what a trial allocates."""
        # Frozen weights exist already, and have neither gradients nor moments.
        weights = sum(parameter.nbytes for parameter in trained_parameters(module))
        # Further gradient copies: the partial sums of an update's tree (nmt/training/reduction.py).
        copies = max(trainer.accumulate_grad_batches.bit_length() - 2, 0)
        return RESERVED_BYTES + int((RESERVED_SHARE + copies) * weights)
