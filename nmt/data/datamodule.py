"""A Lightning data module that gives each device its micro-batches."""

import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
import pyarrow as pa
from lightning import LightningDataModule
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from nmt.config import ExperimentConfig, SameForAll, sources_of
from nmt.data.batches import Batch, padded_batch
from nmt.data.join_planning import join_planner
from nmt.data.joining import PairJoiner, joiner_for
from nmt.data.lengths import Ints
from nmt.data.mixing import Mixture, source_copies
from nmt.data.planning import BatchPlanner, MicroBatch, Planner
from nmt.data.prepared import PreparedCorpus, PreparedSplit
from nmt.data.schema import IDS
from nmt.data.transforms import IdPair, Transform, transforms_for

STOPPING_NAMES = ("SIGINT", "SIGTERM", "SIGUSR1", "SIGUSR2")
"""Ctrl-C, a scheduler's SIGTERM, and the signals that SLURM sends before SIGTERM."""

STOPPING = [number for number in signal.Signals if number.name in STOPPING_NAMES]
"""The signals that stop training; not every system has all of them."""


def fits(pair: IdPair, widths: tuple[int, int]) -> bool:
    """Whether a pair and its end symbols fit in a micro-batch of these widths."""
    # Less than, because the end symbol takes a position.
    return all(len(ids) < width for ids, width in zip(pair, widths, strict=True))


@dataclass
class PlannedBatches:
    """Builds micro-batches from the pairs of a split and applies all transforms."""

    split: PreparedSplit
    bounds: Ints | None = None
    """Each source's first row, then the last source's end; None if sources do not matter."""
    transforms: Sequence[Transform] = ()
    joiner: PairJoiner | None = None
    """What joins consecutive pairs; it needs `bounds`."""

    def batch(self, planned: MicroBatch) -> Batch:
        """Build a micro-batch."""
        sources, targets = self.split.rows(planned.rows())
        if self.bounds is not None:
            pairs = list(zip(sources.to_pylist(), targets.to_pylist(), strict=True))
            source_of_pair = np.searchsorted(self.bounds, planned.indices, side="right") - 1
            if self.joiner and planned.joined is not None:
                pairs = self.joiner(pairs, planned.joined, source_of_pair)
            pairs = self.transformed(pairs, planned, source_of_pair)
            sources = pa.array([source for source, _ in pairs], IDS)
            targets = pa.array([target for _, target in pairs], IDS)
        batch = padded_batch(sources, targets)
        return batch._replace(
            update=planned.update, micro_batch=planned.micro_batch, size=planned.size
        )

    def transformed(
        self, pairs: list[IdPair], planned: MicroBatch, source_of_pair: Ints
    ) -> list[IdPair]:
        """Apply the transforms. A pair that becomes longer than planned keeps its words."""
        for transform in self.transforms:
            changed = transform(pairs, source_of_pair, planned)
            kept = []
            for old, new in zip(pairs, changed, strict=True):
                # A wider batch could need more memory than the largest planned shapes, which
                # training tries first.
                kept.append(new if fits(new, planned.widths) else old)
            pairs = kept
        return pairs


@dataclass
class UpdateDataset(IterableDataset[Batch]):
    """The micro-batches of one rank, starting at update `start`."""

    batches: PlannedBatches
    planner: Planner
    start: int
    rank: int
    world_size: int

    def planned(self) -> Iterator[MicroBatch]:
        """The plans of this rank's micro-batches, without end."""
        # Neighbors, because this device adds their gradients (see nmt/training/reduction.py).
        share = self.planner.micro_batches // self.world_size
        begin = self.rank * share
        for update in count(self.start):
            yield from self.planner.update(update)[begin : begin + share]

    def __iter__(self) -> Iterator[Batch]:
        worker = get_worker_info()
        for number, planned in enumerate(self.planned()):
            # DataLoader takes one batch from each worker in turn, which restores the order.
            # Planning is fast, so each worker plans all batches but builds only its own.
            if worker is None or number % worker.num_workers == worker.id:
                yield self.batches.batch(planned)


def leave_signals_to_training(worker: int) -> None:
    """Ignore signals: after one, training still needs batches to complete the current update."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)


class UpdateDataModule(LightningDataModule):
    """Training updates from a prepared corpus, starting at update `trainer.global_step`."""

    def __init__(self, corpus: PreparedCorpus, config: ExperimentConfig) -> None:
        super().__init__()
        self.num_workers = config.num_workers
        self.split = corpus.split("train")
        self.sources = sources_of(config.data)
        transforms = transforms_for(corpus.tokenizer_file, self.sources, config.seed)
        joiner = joiner_for(corpus.tokenizer_file, self.sources)
        self.mixture = self.mixture_of(corpus, config, transforms)
        bounds = None
        if joiner or self.mixture:
            bounds = corpus.bounds("train")
        self.batches = PlannedBatches(self.split, bounds, transforms, joiner)
        self.planner: Planner
        if joiner:
            self.planner = join_planner(corpus, config, self.sources, joiner.tags, self.mixture)
        else:
            self.planner = BatchPlanner(
                self.split.source_lengths,
                self.split.target_lengths,
                config.batching,
                config.seed,
                config.model.attention_window,
                self.mixture,
            )

    def mixture_of(
        self, corpus: PreparedCorpus, config: ExperimentConfig, transforms: Sequence[Transform]
    ) -> Mixture | None:
        """The mixture of several sources, or of one with transforms; otherwise None."""
        if not transforms and len(self.sources) == 1:
            return None
        bounds = corpus.bounds("train")
        sizes = np.diff(bounds).tolist()
        growth = np.ones(len(self.sources))
        for transform in transforms:
            # Transforms run one after another, each on what the previous one returned.
            growth = growth * transform.growth
        copies = source_copies(self.sources, sizes, config.data.temperature)
        return Mixture(bounds, copies, growth)

    def shares(self) -> dict[str, float]:
        """Each source's share of the sentences in an update; empty if there is only one source."""
        if self.mixture is None or len(self.sources) == 1:
            return {}
        counts = self.mixture.copies * np.diff(self.mixture.bounds)
        shares = (counts / counts.sum()).tolist()
        names = [source.name for source in self.sources]
        return dict(zip(names, shares, strict=True))

    def train_dataloader(self) -> DataLoader[Batch]:
        trainer = self.trainer
        assert trainer is not None
        device = trainer.strategy.root_device.type
        workers = self.num_workers
        if workers is None:
            # On a CPU, loader processes would take cores away from the model. With a GPU, the cores
            # are idle.
            workers = 0 if device == "cpu" else 2
        # Lightning calls this after it restores `global_step`, so a resumed run begins with the
        # next update.
        dataset = UpdateDataset(
            self.batches,
            self.planner,
            trainer.global_step,
            trainer.global_rank,
            trainer.world_size,
        )
        return DataLoader(
            dataset,
            batch_size=None,  # the dataset's items are batches
            num_workers=workers,
            # Copies from pinned memory run while the GPU computes. torch does not pin memory for
            # MPS.
            pin_memory=device not in ("cpu", "mps"),
            worker_init_fn=leave_signals_to_training,
        )


def accumulation(micro_batches: int, devices: int) -> int:
    """Micro-batches per device in an update; NMTError if devices cannot share them evenly."""
    if micro_batches % devices == 0:
        return micro_batches // devices
    # A resumed run cannot change micro_batches, on which its updates depend, but may change
    # devices.
    divisors = [n for n in range(1, micro_batches + 1) if micro_batches % n == 0]
    numbers = ", ".join(map(str, divisors))
    word = "device" if divisors == [1] else "devices"
    raise SameForAll(
        f"{devices} devices cannot share batching.micro_batches={micro_batches} evenly: "
        f"use {numbers} {word} (trainer.devices={divisors[-1]}) or, in a new run, "
        f"batching.micro_batches={devices}"
    )
