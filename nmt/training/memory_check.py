"""A trial of the largest batches before training, so that memory runs out at once or never."""

import mmap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from lightning import LightningModule, Trainer
from lightning.fabric.utilities import move_data_to_device
from lightning.pytorch.callbacks import Callback
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer

from nmt.config import BatchingConfig, ModelConfig
from nmt.data import BatchPlanner, PreparedCorpus, dummy_batch
from nmt.errors import SameForAll, enough_memory_or
from nmt.training.module import TranslationModule
from nmt.training.validation import Validation

SPARE_BYTES, SPARE_SHARE = 2**26, 0.05
"""Memory that the check leaves free: these bytes, and this share of the weights, gradients and moments."""


def advice(batching: BatchingConfig) -> str:
    """The options to change where micro-batches do not fit."""
    return (
        f"a micro-batch of {batching.tokens_per_update // batching.micro_batches:,} source and as many target tokens "
        "does not fit beside weights, gradients and Adam's moments. Pass "
        f"batching.micro_batches={2 * batching.micro_batches} (smaller ones), a lower "
        f"batching.tokens_per_update={batching.tokens_per_update}, or batching.max_tokens=auto"
    )


def make_resident(module: TranslationModule, optimizer: Optimizer) -> None:
    """Allocate gradients and Adam's moments, which otherwise exist only from the second update on.

    From gradients of zero, Adam makes moments of zero and does not move; the first update then finds these moments.
    """
    for parameter in module.parameters():
        parameter.grad = torch.zeros_like(parameter)
    if not optimizer.state:
        optimizer.step()
        for state in optimizer.state.values():
            state["step"].zero_()


@contextmanager
def something_spare(module: TranslationModule) -> Iterator[None]:
    """Hold some unused memory within the block, as a reserve for threads, buffers, and gaps between tensors."""
    own = [x.to_local() if isinstance(x, DTensor) else x for x in module.parameters()]
    held = 4 * sum(parameter.nbytes for parameter in own)  # weights, gradients, two moments
    size = SPARE_BYTES + int(SPARE_SHARE * held)
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS):
        on_device = torch.empty(0 if module.device.type == "cpu" else size, dtype=torch.uint8, device=module.device)
        yield
        del on_device


def try_shapes(trainer: Trainer, module: TranslationModule, shapes: Iterable[tuple[int, int, int]]) -> None:
    """A training step and its backward pass for micro-batches of these shapes, without an update.

    A shape is rows, source width and target width.
    """
    sums = module.update_sums.clone()
    for shape in shapes:
        if trainer.accumulate_grad_batches == 1:
            module.zero_grad()  # as after every update; otherwise a micro-batch meets the gradients of another
        batch = move_data_to_device(dummy_batch(*shape), module.device)
        loss = trainer.strategy.training_step(batch, 0)
        trainer.strategy.backward(loss, None)  # type: ignore[arg-type]
        del loss
    module.update_sums.copy_(sums)


class MemoryCheck(Callback):
    """Tries the largest micro-batches and the largest validation batches before the first update of this process."""

    def __init__(self, planner: BatchPlanner, batching: BatchingConfig, validation: Validation) -> None:
        self.planner, self.batching, self.validation = planner, batching, validation

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        assert isinstance(pl_module, TranslationModule)
        (optimizer,) = trainer.optimizers
        with enough_memory_or(advice(self.batching)), something_spare(pl_module):
            make_resident(pl_module, optimizer)
            try_shapes(trainer, pl_module, self.planner.largest_shapes())
            self.validation.try_largest(trainer, pl_module)
        optimizer.zero_grad()


def check_positions(corpus: PreparedCorpus, model: ModelConfig) -> None:
    """SameForAll where a line has more tokens than the model has learned positions: training would fail hours later."""
    if model.positions != "learned":
        return
    for name, text in (("valid", f"{corpus.folder / 'valid'}.{{language}}"), ("train", "the training corpus")):
        split = corpus.split(name)
        for language, lengths in (
            (corpus.source_language, split.source_lengths), (corpus.target_language, split.target_lengths)
        ):  # fmt: skip
            longest = int(lengths.argmax())
            if lengths[longest] > model.max_positions:
                line = longest + 1 if name == "valid" else int(split.lines(np.array([longest]))[0])
                raise SameForAll(
                    f"line {line:,} of {text.format(language=language)} has {lengths[longest]:,} tokens with its end "
                    f"symbol, but model.positions=learned has model.max_positions={model.max_positions}: pass "
                    f"model.max_positions={lengths[longest]}, or prepare the corpus without that line"
                )
