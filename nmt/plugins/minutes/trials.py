"""Models that are trained for a moment and thrown away: how fast they are, and which micro-batches fit in memory."""

import gc
import os
import time
from dataclasses import replace
from itertools import count
from typing import Any, NamedTuple

from lightning.fabric.utilities import move_data_to_device

from nmt.config import BatchingConfig, ExperimentConfig, build, require
from nmt.data import BatchPlanner, PreparedCorpus, UpdateDataModule, accumulation
from nmt.errors import is_out_of_memory
from nmt.hardware import available_memory
from nmt.training import TranslationModule, make_resident, make_trainer, synchronize, try_shapes

TIMED_SECONDS, WARM_UP = 4.0, 2
"""Seconds of training with each size, after so many updates that are not timed."""
HEADROOM = 1.25
"""A trial of max_tokens=auto is larger by this factor: a reserve for gradients in transit, and for fragmentation."""


def require_one_process(setting: str, instead: str) -> None:
    """NMTError where processes start together: what is tried out for `setting` could differ between them."""
    alone = int(os.environ.get("WORLD_SIZE", 1)) == 1
    require(alone, f"{setting} needs one process: start the run once with one, or pass {instead}")


def longest_sentence(corpus: PreparedCorpus) -> int:
    split = corpus.split("train")
    return int(max(split.source_lengths.max(), split.target_lengths.max()))


class Pace(NamedTuple):
    """Seconds for an update, its target tokens (padding not counted), and the model's parameters."""

    seconds: float
    tokens: float
    parameters: int


class Trial:
    """A model with gradients and Adam's moments on the device of a run."""

    def __init__(self, config: ExperimentConfig, corpus: PreparedCorpus) -> None:
        self.config, self.corpus, self.trainer, self.grown = config, corpus, make_trainer(config), 0
        size = corpus.manifest.vocabulary_size
        self.module = TranslationModule(config.model, config.optim, size, config.seed)
        self.module.trainer = self.trainer
        self.trainer.strategy.connect(self.module)
        self.trainer.precision_plugin.convert_module(self.module)
        self.module.to(self.trainer.strategy.root_device).on_fit_start()
        self.optimizer = self.module.configure_optimizers()
        make_resident(self.module, self.optimizer)

    def fits(self, batching: BatchingConfig) -> bool:
        """True where the largest micro-batches, enlarged by HEADROOM, fit in memory."""
        before, split = available_memory(), self.corpus.split("train")
        if self.module.device.type == "cpu" and 2 * HEADROOM * self.grown > before:
            return False  # on a processor, running out of memory kills the process instead of raising an error
        self.trainer.accumulate_grad_batches = accumulation(batching.micro_batches, self.trainer.world_size)
        larger = replace(batching, tokens_per_update=int(HEADROOM * batching.tokens_per_update))
        try:
            planner = BatchPlanner(split.source_lengths, split.target_lengths, larger, seed=1)
            try_shapes(self.trainer, self.module, planner.largest_shapes())
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            return False
        finally:
            self.optimizer.zero_grad(set_to_none=False)
            gc.collect()
        self.grown = max(self.grown, before - available_memory())
        return True

    def pace(self) -> Pace:
        """Train for some seconds; the first updates, for which kernels and memory are made, do not count."""
        data, strategy = UpdateDataModule(self.corpus, self.config), self.trainer.strategy
        sizes, begin, seconds = list[int](), time.monotonic(), 0.0
        for number in count(-WARM_UP):
            if number == 0:
                begin = time.monotonic()
            planned = data.planner.update(number + WARM_UP)
            for micro_batch in planned:
                batch = move_data_to_device(data.batches.batch(micro_batch), self.module.device)
                strategy.backward(strategy.training_step(batch, 0), None)  # type: ignore[arg-type]
            self.optimizer.step()
            self.optimizer.zero_grad()
            synchronize(self.module.device)
            if number >= 0:
                sizes.append(planned[0].size.target_tokens)
                seconds = time.monotonic() - begin
            if seconds > TIMED_SECONDS:
                break
        parameters = sum(parameter.numel() for parameter in self.module.parameters())
        # Here one process has done the work of all; on a processor, they share its cores.
        at_once = 1 if self.module.device.type == "cpu" else self.trainer.world_size
        return Pace(seconds / len(sizes) / at_once, sum(sizes) / len(sizes), parameters)


def settle_micro_batches(config: ExperimentConfig, corpus: PreparedCorpus, saved: dict[str, Any]) -> BatchingConfig:
    """The batching with the fewest micro-batches that `batching.max_tokens` allows, or, with auto, that fit in memory.

    It is decided when a run begins; from then on it is read from `saved`, also with another number of devices.
    """
    batching, tokens = config.batching, config.batching.tokens_per_update
    settled = build(BatchingConfig, saved.get("batching", {}), config.run, "batching.")
    if saved and replace(settled, micro_batches=batching.micro_batches) == batching:
        return settled
    devices = make_trainer(config).world_size
    if isinstance(batching.max_tokens, int):
        least = -(-tokens // batching.max_tokens)
        return replace(batching, micro_batches=-(-least // devices) * devices)
    require_one_process("batching.max_tokens=auto", "a number")
    candidates = [devices]
    while tokens // (2 * candidates[-1]) >= longest_sentence(corpus):
        candidates.append(2 * candidates[-1])
    trial, fitting = Trial(config, corpus), 0
    for micro_batches in reversed(candidates):
        if not trial.fits(replace(batching, micro_batches=micro_batches)):
            break
        fitting = micro_batches
    require(
        fitting > 0,
        f"batching.max_tokens=auto: not even {tokens // candidates[-1]:,} tokens, as the longest sentence has, fit "
        "in memory: lower data.filters.max_tokens, or take a smaller model",
    )
    return replace(batching, micro_batches=fitting)
