"""From the planner to Lightning: each device's micro-batches, in order.

The way of a batch: BatchPlanner chooses its pairs, PlannedBatches reads, transforms and pads them, DataLoader and
Lightning move it to the device, TranslationModule.training_step computes its loss.
"""

import signal
from collections.abc import Iterator
from itertools import count, islice

import numpy as np
from lightning import LightningDataModule
from numpy.typing import NDArray
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from nmt.config import ExperimentConfig, sources_of
from nmt.data.planning import BatchPlanner, MicroBatch, Mixture, stages
from nmt.data.prepared import Batch, PreparedCorpus
from nmt.data.transforms import PlannedBatches, transforms_for
from nmt.errors import SameForAll

# Ctrl-C, a scheduler's SIGTERM, and the signals by which SLURM announces it. Not every system has all of them.
STOPPING = [number for number in signal.Signals if number.name in ("SIGINT", "SIGTERM", "SIGUSR1", "SIGUSR2")]


def leave_signals_to_training(worker: int) -> None:
    """Ignore signals in the processes that load batches, for training needs more of these to complete its update."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)


class UpdateDataset(IterableDataset[Batch]):
    """The endless stream of one rank's micro-batches, from update `start` on."""

    def __init__(self, batches: PlannedBatches, planner: BatchPlanner, start: int, rank: int, world_size: int) -> None:
        self.batches, self.planner, self.start, self.rank, self.world_size = batches, planner, start, rank, world_size

    def plan(self) -> Iterator[MicroBatch]:
        for update in count(self.start):
            yield from self.planner.update(update)[self.rank :: self.world_size]

    def __iter__(self) -> Iterator[Batch]:
        worker = get_worker_info()
        # DataLoader takes one batch from each worker in turn, which restores the order. Planning is quick, so every
        # worker plans all batches, but builds only its own.
        return map(
            self.batches.batch, islice(self.plan(), worker.id, None, worker.num_workers) if worker else self.plan()
        )


class UpdateDataModule(LightningDataModule):
    """Training updates of a prepared corpus, from update `trainer.global_step` on."""

    def __init__(self, corpus: PreparedCorpus, config: ExperimentConfig) -> None:
        super().__init__()
        self.num_workers, self.split, self.sources = config.num_workers, corpus.split("train"), sources_of(config.data)
        transforms = transforms_for(corpus.tokenizer_file, self.sources, config.seed)
        self.mixture = None
        if transforms or len(self.sources) > 1:
            bounds = corpus.bounds("train")
            self.mixture = Mixture(
                bounds,
                stages(self.sources, np.diff(bounds).tolist(), config.data.temperature),
                growth=np.prod([np.ones(len(self.sources)), *(transform.growth for transform in transforms)], axis=0),
            )
        self.batches = PlannedBatches(self.split, self.mixture.bounds if self.mixture else None, transforms)
        lengths = self.split.source_lengths, self.split.target_lengths
        self.planner = BatchPlanner(*lengths, config.batching, config.seed, config.model.attention_window, self.mixture)

    def shares(self, update: int) -> dict[str, float]:
        """The share of each source in the sentences of the stage that an update is in; empty without a mixture."""
        if self.mixture is None or len(self.sources) == 1:
            return {}
        return self.by_source(self.mixture.stages[self.planner.stage_of(update)].copies * np.diff(self.mixture.bounds))

    def realised_shares(self, updates: range) -> dict[str, float]:
        """The share of each source in the sentences of these updates; empty without a mixture."""
        if self.mixture is None or len(self.sources) == 1:
            return {}
        rows = np.concatenate([planned.indices for update in updates for planned in self.planner.update(update)])
        # A row at the end of the last source would count as one of it, but there is none.
        return self.by_source(np.histogram(rows, self.mixture.bounds)[0])

    def by_source(self, counts: NDArray[np.float64]) -> dict[str, float]:
        shares = (counts / counts.sum()).tolist()
        return {source.name: share for source, share in zip(self.sources, shares, strict=True)}

    def train_dataloader(self) -> DataLoader[Batch]:
        trainer = self.trainer
        assert trainer is not None
        # With an accelerator there are processor cores to spare; without one, loading would take them from the model.
        device = trainer.strategy.root_device.type
        workers = (0 if device == "cpu" else 2) if self.num_workers is None else self.num_workers
        return DataLoader(
            UpdateDataset(self.batches, self.planner, trainer.global_step, trainer.global_rank, trainer.world_size),
            batch_size=None,
            num_workers=workers,
            pin_memory=device not in ("cpu", "mps"),
            worker_init_fn=leave_signals_to_training,
        )


def accumulation(micro_batches: int, devices: int) -> int:
    """Micro-batches of an update for each device; NMTError where they cannot be shared evenly."""
    if micro_batches % devices:
        divisors = [str(n) for n in range(1, micro_batches + 1) if micro_batches % n == 0]
        raise SameForAll(
            f"{devices} devices cannot share batching.micro_batches={micro_batches} evenly: "
            f"use {', '.join(divisors)} devices, or another batching.micro_batches"
        )
    return micro_batches // devices
