"""From the planner to Lightning: each device's micro-batches, in order.

The way of a batch: BatchPlanner chooses its pairs, UpdateDataset reads and pads them, DataLoader and Lightning move it
to the device, TranslationModule.training_step computes its loss.
"""

import signal
from collections.abc import Iterator
from itertools import count, islice

import numpy as np
from lightning import LightningDataModule
from numpy.typing import NDArray
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from nmt.config import DataConfig, ExperimentConfig, sources_of
from nmt.data.mixture import stages
from nmt.data.planning import BatchPlanner, MicroBatch, Mixture
from nmt.data.prepared import Batch, PreparedCorpus, PreparedSplit
from nmt.errors import SameForAll
from nmt.plugins.augment.config import NoiseConfig
from nmt.plugins.augment.noisy import HINT_TOKENS, NoisySplit, growth

# Ctrl-C, a scheduler's SIGTERM, and the signals by which SLURM announces it. Not every system has all of them.
STOPPING = [number for number in signal.Signals if number.name in ("SIGINT", "SIGTERM", "SIGUSR1", "SIGUSR2")]


def leave_signals_to_training(worker: int) -> None:
    """Ignore signals in the processes that load batches, for training needs more of these to complete its update."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)


def batch_of(split: PreparedSplit | NoisySplit, planned: MicroBatch) -> Batch:
    """The sentences of a micro-batch, with the noise of their sources."""
    return split.batch(planned) if isinstance(split, NoisySplit) else split.batch(planned.indices)


class UpdateDataset(IterableDataset[Batch]):
    """The endless stream of one rank's micro-batches, from update `start` on."""

    def __init__(
        self, split: PreparedSplit | NoisySplit, planner: BatchPlanner, start: int, rank: int, world_size: int
    ) -> None:
        self.split, self.planner = split, planner
        self.start, self.rank, self.world_size = start, rank, world_size

    def plan(self) -> Iterator[MicroBatch]:
        for update in count(self.start):
            yield from self.planner.update(update)[self.rank :: self.world_size]

    def __iter__(self) -> Iterator[Batch]:
        worker = get_worker_info()
        # DataLoader takes one batch from each worker in turn, which restores the order. Planning is quick, so every
        # worker plans all batches, but builds only its own.
        own = islice(self.plan(), worker.id, None, worker.num_workers) if worker else self.plan()
        for planned in own:
            batch = batch_of(self.split, planned)
            yield batch._replace(update=planned.update, micro_batch=planned.micro_batch, size=planned.size)


class UpdateDataModule(LightningDataModule):
    """Training updates of a prepared corpus, from update `trainer.global_step` on."""

    def __init__(self, corpus: PreparedCorpus, config: ExperimentConfig) -> None:
        super().__init__()
        self.num_workers = config.num_workers
        self.split = corpus.split("train")
        lengths = self.split.source_lengths, self.split.target_lengths
        sources = self.sources = sources_of(config.data)
        noise = any(source.data.noise != NoiseConfig() for source in sources)
        mixture = self.mixture = mixture_of(corpus, config.data) if noise or len(sources) > 1 else None
        self.planner = BatchPlanner(*lengths, config.batching, config.seed, config.model.attention_window, mixture)
        self.batches: PreparedSplit | NoisySplit = self.split
        if mixture and noise:
            self.batches = NoisySplit(self.split, corpus.tokenizer_file, sources, mixture.bounds, config.seed)

    def shares(self, update: int) -> dict[str, float]:
        """The share of each source in the sentences of the stage that an update is in; empty without a mixture."""
        if self.mixture is None or len(self.sources) == 1:
            return {}
        stage = self.planner.stage_of(update)
        counts = self.mixture.stages[stage].copies * np.diff(self.mixture.bounds)
        return self.by_source(counts / counts.sum())

    def by_source(self, values: NDArray[np.float64]) -> dict[str, float]:
        return {source.name: value for source, value in zip(self.sources, values.tolist(), strict=True)}

    def realised_shares(self, updates: range) -> dict[str, float]:
        """The share of each source in the sentences of these updates; empty without a mixture."""
        if self.mixture is None or len(self.sources) == 1:
            return {}
        rows = np.concatenate([planned.indices for update in updates for planned in self.planner.update(update)])
        # A row at the end of the last source would count as one of it, but there is none.
        return self.by_source(np.histogram(rows, self.mixture.bounds)[0] / len(rows))

    def train_dataloader(self) -> DataLoader[Batch]:
        assert self.trainer is not None
        stream = UpdateDataset(
            self.batches, self.planner, self.trainer.global_step, self.trainer.global_rank, self.trainer.world_size
        )
        # With an accelerator there are processor cores to spare; without one, loading would take them from the model.
        device = self.trainer.strategy.root_device.type
        workers = (0 if device == "cpu" else 2) if self.num_workers is None else self.num_workers
        return DataLoader(
            stream,
            batch_size=None,
            num_workers=workers,
            pin_memory=device not in ("cpu", "mps"),
            worker_init_fn=leave_signals_to_training,
        )


def mixture_of(corpus: PreparedCorpus, data: DataConfig) -> Mixture:
    """The sources of a corpus, their shares, and what noise does to the lengths of their sentences."""
    sources, bounds = sources_of(data), corpus.bounds("train")
    found = stages(sources, np.diff(bounds).tolist(), data.temperature)
    noises = [source.data.noise for source in sources]
    hints = np.array([HINT_TOKENS * (noise.terms > 0) for noise in noises])
    return Mixture(bounds, found, np.array([growth(noise) for noise in noises]), hints)


def accumulation(micro_batches: int, devices: int) -> int:
    """Micro-batches of an update for each device; NMTError where they cannot be shared evenly."""
    if micro_batches % devices:
        divisors = [str(n) for n in range(1, micro_batches + 1) if micro_batches % n == 0]
        raise SameForAll(
            f"{devices} devices cannot share batching.micro_batches={micro_batches} evenly: "
            f"use {', '.join(divisors)} devices, or another batching.micro_batches"
        )
    return micro_batches // devices
