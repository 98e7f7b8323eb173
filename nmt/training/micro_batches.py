"""batching.max_tokens: the fewest micro-batches in an update that fit in memory."""

import gc
from dataclasses import replace
from pathlib import Path

from lightning import Trainer

from nmt.config import BatchingConfig, ExperimentConfig, matches
from nmt.data import BatchPlanner, PreparedCorpus, PreparedSplit, accumulation
from nmt.errors import NMTError, is_out_of_memory
from nmt.hardware import available_memory
from nmt.training.memory_check import make_resident, try_shapes
from nmt.training.module import TranslationModule
from nmt.training.processes import require_one_process
from nmt.training.run_folder import read_config

HEADROOM = 1.25
"""A trial is larger by this factor, as a reserve for gradients in transit between devices, and for fragmentation."""


def settle_micro_batches(
    config: ExperimentConfig, run: Path, corpus: PreparedCorpus, trainer: Trainer
) -> BatchingConfig:
    """The batching with the number of micro-batches that `max_tokens` asks for.

    It is decided when a run begins; from then on it is read from config.yaml, also with another number of devices.
    """
    batching = config.batching
    wanted = batching.max_tokens
    if (run / "config.yaml").exists():
        saved = read_config(run).get("batching", {})
        same = saved.get("max_tokens") == wanted and saved.get("tokens_per_update") == batching.tokens_per_update
        if same and matches(saved.get("micro_batches"), int):
            return replace(batching, micro_batches=saved["micro_batches"])
    if wanted != "auto":
        needed = -(-batching.tokens_per_update // int(wanted))
        return replace(batching, micro_batches=-(-needed // trainer.world_size) * trainer.world_size)
    require_one_process("batching.max_tokens=auto", "a number")
    return fewest_micro_batches(config, corpus, trainer)


def fewest_micro_batches(config: ExperimentConfig, corpus: PreparedCorpus, trainer: Trainer) -> BatchingConfig:
    """Halve the number of micro-batches until they no longer fit, or each device has only one."""
    split, tokens = corpus.split("train"), config.batching.tokens_per_update
    longest = int(max(split.source_lengths.max(), split.target_lengths.max()))
    candidates = [trainer.world_size]
    while tokens // (2 * candidates[-1]) >= longest:
        candidates.append(2 * candidates[-1])
    trial = Trial(config, corpus.manifest.vocabulary_size, trainer)
    fitting = None
    for micro_batches in reversed(candidates):
        batching = replace(config.batching, micro_batches=micro_batches)
        if not trial.fits(split, batching):
            break
        fitting = batching
    if fitting is None:
        raise NMTError(
            f"batching.max_tokens=auto: not even {tokens // candidates[-1]:,} tokens, as the longest sentence has, fit "
            "in memory: lower data.filters.max_tokens, or take a smaller model"
        )
    return fitting


class Trial:
    """A model with gradients and Adam's moments on the trainer's device, for trying micro-batches."""

    def __init__(self, config: ExperimentConfig, vocabulary_size: int, trainer: Trainer) -> None:
        self.trainer = trainer
        self.module = TranslationModule(config.model, config.optim, vocabulary_size, config.seed)
        self.module.trainer = trainer
        trainer.strategy.connect(self.module)
        trainer.precision_plugin.convert_module(self.module)
        self.module.to(trainer.strategy.root_device).on_fit_start()
        self.optimizer = self.module.configure_optimizers()
        make_resident(self.module, self.optimizer)
        self.grown = 0

    def fits(self, split: PreparedSplit, batching: BatchingConfig) -> bool:
        """True where the largest micro-batches, enlarged by HEADROOM, fit in memory."""
        if self.module.device.type == "cpu" and 2 * HEADROOM * self.grown > available_memory():
            return False  # on a processor, running out of memory kills the process instead of raising an error
        self.trainer.accumulate_grad_batches = accumulation(batching.micro_batches, self.trainer.world_size)
        larger = replace(batching, tokens_per_update=int(HEADROOM * batching.tokens_per_update))
        before = available_memory()
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
