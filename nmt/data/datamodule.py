"""A Lightning data module that gives each device its micro-batches."""

import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
from lightning import LightningDataModule
from numpy.typing import NDArray
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from nmt.config import ExperimentConfig, SameForAll, SourceConfig, sources_of
from nmt.data.planning import BatchPlanner, Ints, MicroBatch, Mixture, source_copies
from nmt.data.prepared import IDS, Batch, PreparedCorpus, PreparedSplit, padded_batch
from nmt.registry import entries_of

# Ctrl-C, a scheduler's SIGTERM, and the signals that SLURM sends before SIGTERM; not every system has all of them.
STOPPING = [
    number
    for number in signal.Signals
    if number.name in ("SIGINT", "SIGTERM", "SIGUSR1", "SIGUSR2")
]
IdPair = tuple[list[int], list[int]]  # source and target, without end symbols


class Transform(Protocol):
    """Changes training pairs, for example by adding noise.

    Plugins register a factory as "transform": `(tokenizer_file, sources, seed) -> Transform | None`. The factory
    raises NMTError if the transform cannot use the vocabulary.
    """

    growth: NDArray[
        np.float64
    ]  # [sources], the factor by which planning expects this transform to lengthen sentences

    def __call__(self, pairs: list[IdPair], sources: Ints, planned: MicroBatch) -> list[IdPair]:
        """Change the pairs of a micro-batch; random choices depend only on the seed and the numbers in `planned`."""


def transforms_for(
    tokenizer_file: Path, sources: Sequence[SourceConfig], seed: int
) -> list[Transform]:
    made = (
        entry.load()(tokenizer_file, sources, seed) for entry in entries_of("transform").values()
    )
    return [transform for transform in made if transform is not None]


@dataclass
class PlannedBatches:
    """Builds micro-batches from the pairs of a split and applies all transforms."""

    split: PreparedSplit
    bounds: Ints | None = (
        None  # each source's first row, then the last source's end; None if sources do not matter
    )
    transforms: Sequence[Transform] = ()

    def batch(self, planned: MicroBatch) -> Batch:
        """Build a micro-batch. If a transform makes a pair longer than planned, the original pair is used."""
        rows = self.split.rows(planned.indices)
        if self.bounds is not None:
            pairs = list(zip(*(side.to_pylist() for side in rows), strict=True))
            sources = np.searchsorted(self.bounds, planned.indices, side="right") - 1
            for transform in self.transforms:
                changed = zip(pairs, transform(pairs, sources, planned), strict=True)
                pairs = [
                    new if all(map(int.__lt__, map(len, new), planned.widths)) else old
                    for old, new in changed
                ]
            rows = [pa.array(side, IDS) for side in zip(*pairs, strict=True)]
        batch = padded_batch(*rows)
        return batch._replace(
            update=planned.update, micro_batch=planned.micro_batch, size=planned.size
        )


@dataclass
class UpdateDataset(IterableDataset[Batch]):
    """The micro-batches of one rank, starting at update `start`."""

    batches: PlannedBatches
    planner: BatchPlanner
    start: int
    rank: int
    world_size: int

    def __iter__(self) -> Iterator[Batch]:
        updates = map(self.planner.update, count(self.start))
        share = (
            self.planner.micro_batches // self.world_size
        )  # neighbors, whose gradients this device adds
        planned = chain.from_iterable(
            update[self.rank * share : (self.rank + 1) * share] for update in updates
        )
        # DataLoader takes one batch from each worker in turn, which restores the order. Planning is fast, so each
        # worker plans all batches but builds only its own.
        worker = get_worker_info()
        return map(
            self.batches.batch,
            islice(planned, worker.id, None, worker.num_workers) if worker else planned,
        )


def leave_signals_to_training(worker: int) -> None:
    # After a signal, training still needs batches to complete the current update.
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)


class UpdateDataModule(LightningDataModule):
    """Training updates from a prepared corpus, starting at update `trainer.global_step`."""

    def __init__(self, corpus: PreparedCorpus, config: ExperimentConfig) -> None:
        super().__init__()
        self.num_workers, self.split, self.sources = (
            config.num_workers,
            corpus.split("train"),
            sources_of(config.data),
        )
        transforms, self.mixture = (
            transforms_for(corpus.tokenizer_file, self.sources, config.seed),
            None,
        )
        if transforms or len(self.sources) > 1:
            bounds = corpus.bounds("train")
            growth = np.prod(
                [np.ones(len(self.sources)), *(transform.growth for transform in transforms)],
                axis=0,
            )
            copies = source_copies(self.sources, np.diff(bounds).tolist(), config.data.temperature)
            self.mixture = Mixture(bounds, copies, growth)
        self.batches = PlannedBatches(
            self.split, self.mixture.bounds if self.mixture else None, transforms
        )
        lengths = self.split.source_lengths, self.split.target_lengths
        self.planner = BatchPlanner(
            *lengths, config.batching, config.seed, config.model.attention_window, self.mixture
        )

    def shares(self) -> dict[str, float]:
        """Each source's share of the sentences in an update; empty if there is only one source."""
        if self.mixture is None or len(self.sources) == 1:
            return {}
        counts = self.mixture.copies * np.diff(self.mixture.bounds)
        return dict(
            zip(
                [source.name for source in self.sources],
                (counts / counts.sum()).tolist(),
                strict=True,
            )
        )

    def train_dataloader(self) -> DataLoader[Batch]:
        trainer = self.trainer
        assert trainer is not None
        device = (
            trainer.strategy.root_device.type
        )  # on a CPU, loader processes would take cores away from the model
        return DataLoader(
            UpdateDataset(
                self.batches,
                self.planner,
                trainer.global_step,
                trainer.global_rank,
                trainer.world_size,
            ),
            batch_size=None,
            num_workers=(0 if device == "cpu" else 2)
            if self.num_workers is None
            else self.num_workers,
            pin_memory=device not in ("cpu", "mps"),
            worker_init_fn=leave_signals_to_training,
        )


def accumulation(micro_batches: int, devices: int) -> int:
    """Micro-batches per device in an update; NMTError if devices cannot share them evenly."""
    if micro_batches % devices:
        divisors = [n for n in range(1, micro_batches + 1) if micro_batches % n == 0]
        number = ", ".join(map(str, divisors))
        word = "device" if divisors == [1] else "devices"
        raise SameForAll(
            f"{devices} devices cannot share batching.micro_batches={micro_batches} evenly: use {number} {word} "
            f"(trainer.devices={divisors[-1]}) or, in a new run, batching.micro_batches={devices}"
        )
    return micro_batches // devices
