"""batching.max_tokens: an update in as few micro-batches as fit in memory."""

import gc
import os
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import torch
from lightning.fabric.utilities import move_data_to_device

from nmt.config import BatchingConfig, ExperimentConfig
from nmt.data.planning import BatchPlanner
from nmt.data.prepared import PreparedCorpus, PreparedSplit
from nmt.errors import NMTError, is_out_of_memory
from nmt.hardware import available_memory
from nmt.storage.foreign import matches
from nmt.training.module import TranslationModule
from nmt.training.peak_flops import precision_dtype
from nmt.training.run_folder import read_config

HEADROOM = 1.25
"""What is left free, by way of a larger trial: for gradients in transit between devices, and fragmentation."""


def settle_shards(
    config: ExperimentConfig, run: Path, corpus: PreparedCorpus, world_size: int, device: torch.device
) -> BatchingConfig:
    """The batching with the number of micro_batches that `max_tokens` asks for; `device` is where trials are made.

    It is settled when a run begins; from then on its config.yaml tells it, also to other numbers of devices.
    """
    batching = config.batching
    wanted = batching.max_tokens
    if (run / "config.yaml").exists():
        saved = read_config(run).get("batching", {})
        same = saved.get("max_tokens") == wanted and saved.get("tokens_per_update") == batching.tokens_per_update
        if same and matches(saved.get("micro_batches"), int):
            return replace(batching, micro_batches=saved["micro_batches"])
    if wanted != "auto":
        pieces = -(-batching.tokens_per_update // int(wanted))
        return replace(batching, micro_batches=-(-pieces // world_size) * world_size)
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        raise NMTError(
            "batching.max_tokens=auto: processes that start together cannot try it out; "
            "start the run once with one process, or pass a number"
        )
    return fewest_shards(config, corpus, world_size, device)


def fewest_shards(
    config: ExperimentConfig, corpus: PreparedCorpus, world_size: int, device: torch.device
) -> BatchingConfig:
    """Double the micro-batches until they do not fit any more, or are a device's whole part of an update."""
    split = corpus.split("train")
    longest = int(max(split.source_lengths.max(), split.target_lengths.max()))
    micro_batches = world_size
    while config.batching.tokens_per_update // (2 * micro_batches) >= longest:
        micro_batches *= 2
    fitting = None
    trial = Trial(config, corpus.manifest.vocabulary_size, device)
    while True:
        batching = replace(config.batching, micro_batches=micro_batches)
        if not trial.fits(split, batching):
            break
        fitting = batching
        if micro_batches == world_size:
            break
        micro_batches //= 2
    if fitting is None:
        raise NMTError(
            f"batching.max_tokens=auto: not even {batching.tokens_per_update // micro_batches:,} tokens, as the "
            "longest sentence has, fit in memory: lower data.filters.max_tokens, or take a smaller model"
        )
    return fitting


class Trial:
    """A model with its gradients and Adam's moments, to try micro-batches on."""

    def __init__(self, config: ExperimentConfig, vocabulary_size: int, device: torch.device) -> None:
        self.device = device
        self.precision = config.trainer["precision"]
        self.module = TranslationModule(config.model, config.optim, vocabulary_size, config.seed).to(self.device)
        self.moments = [torch.zeros_like(parameter) for parameter in self.module.parameters() for _ in range(2)]
        for parameter in self.module.parameters():
            parameter.grad = torch.zeros_like(parameter)  # what is added up over micro-batches is there beside the next
        self.grown = 0

    def fits(self, split: PreparedSplit, batching: BatchingConfig) -> bool:
        """Whether the largest micro-batches, and somewhat larger ones, go through the model."""
        if self.device.type == "cpu" and 2 * HEADROOM * self.grown > available_memory():
            return False  # A processor's memory does not run out with an error that one could catch.
        larger = replace(batching, tokens_per_update=int(HEADROOM * batching.tokens_per_update))
        before = available_memory()
        try:
            for pairs in BatchPlanner(split.source_lengths, split.target_lengths, larger, seed=1).extremes():
                batch = move_data_to_device(split.batch(pairs), self.device)
                dtype = precision_dtype(self.precision)
                mixed = str(self.precision).endswith("mixed")
                with torch.autocast(self.device.type, dtype) if mixed else nullcontext():
                    loss, _ = self.module.losses(batch)
                loss.backward()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            return False
        finally:
            self.module.zero_grad(set_to_none=False)
            gc.collect()
        self.grown = max(self.grown, before - available_memory())
        return True
