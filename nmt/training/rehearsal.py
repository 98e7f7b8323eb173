"""The largest micro-batches go through the model once before training, so that memory runs out at once or never."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback

from nmt.config import BatchingConfig
from nmt.data.datamodule import UpdateModule
from nmt.errors import NMTError
from nmt.training.module import TranslationModule


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that a device, or the processor's allocator, had no memory left."""
    words = ("out of memory", "can't allocate memory", "could not create a memory", "bad_alloc")
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or (
        isinstance(error, RuntimeError) and any(word in str(error) for word in words)
    )


@contextmanager
def explained(batching: BatchingConfig) -> Iterator[None]:
    """NMTError with the numbers to change, where memory runs out."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise NMTError(
            f"out of memory: a micro-batch of {batching.tokens // batching.shards:,} source and as many target tokens "
            f"does not fit. Pass batching.shards={2 * batching.shards} (smaller pieces), a lower "
            f"batching.tokens={batching.tokens}, or batching.tokens_per_device=auto"
        ) from error


def rehearse(trainer: Trainer, module: TranslationModule, updates: UpdateModule) -> None:
    """Forward and backward of the micro-batches that need the most memory; nothing is learnt from them."""
    sums = module.update_sums.clone()
    for pairs in updates.planner.extremes():
        batch = trainer.strategy.batch_to_device(updates.split.batch(pairs))
        with trainer.precision_plugin.train_step_context():
            loss = trainer.strategy.training_step(batch, 0)
        trainer.strategy.backward(loss, None)  # type: ignore[arg-type]
        del loss
        for parameter in module.parameters():
            parameter.grad = None
    module.update_sums.copy_(sums)


class Rehearsal(Callback):
    """Rehearses before the first update of this process."""

    def __init__(self, updates: UpdateModule, batching: BatchingConfig) -> None:
        self.updates, self.batching = updates, batching

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        with explained(self.batching):
            assert isinstance(pl_module, TranslationModule)
            rehearse(trainer, pl_module, self.updates)
