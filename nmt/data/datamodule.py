"""Updates on their way into Lightning."""

from collections.abc import Iterator
from itertools import islice

import torch
from lightning import LightningDataModule
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from nmt.config import BatchingConfig
from nmt.data.planning import UpdatePlanner
from nmt.data.prepared import Batch, PreparedCorpus, PreparedSplit
from nmt.errors import SameForAll


class UpdateStream(IterableDataset[Batch]):
    """The endless stream of one rank's micro-batches, from update `start` on."""

    def __init__(self, split: PreparedSplit, planner: UpdatePlanner, start: int, rank: int, world_size: int) -> None:
        self.split, self.planner = split, planner
        self.start, self.rank, self.world_size = start, rank, world_size

    def micro_batches(self) -> Iterator[Batch]:
        update = self.start
        while True:
            for planned in self.planner.update(update)[self.rank :: self.world_size]:
                yield self.split.batch(planned.indices)._replace(
                    update=planned.update, shard=planned.shard, size=planned.size
                )
            update += 1

    def __iter__(self) -> Iterator[Batch]:
        worker = get_worker_info()
        if worker is None:
            return self.micro_batches()
        # DataLoader takes one item from each worker in turn, which restores the order.
        return islice(self.micro_batches(), worker.id, None, worker.num_workers)


class UpdateModule(LightningDataModule):
    """Training updates of a prepared corpus; where training stands, `trainer.global_step` alone tells."""

    def __init__(
        self, corpus: PreparedCorpus, batching: BatchingConfig, seed: int, restricted_to: int | None = None
    ) -> None:
        super().__init__()
        self.split = corpus.split("train")
        lengths = self.split.source_lengths, self.split.target_lengths
        self.planner = UpdatePlanner(*lengths, batching, seed, restricted_to)

    def train_dataloader(self) -> DataLoader[Batch]:
        assert self.trainer is not None
        stream = UpdateStream(
            self.split, self.planner, self.trainer.global_step, self.trainer.global_rank, self.trainer.world_size
        )
        # Beside an accelerator, loading has processors to spare; without one it would only take them from the model.
        beside_accelerator = torch.accelerator.is_available()
        return DataLoader(
            stream, batch_size=None, num_workers=2 if beside_accelerator else 0, pin_memory=beside_accelerator
        )


def accumulation(shards: int, devices: int) -> int:
    """Micro-batches that each device takes of an update; NMTError where the devices do not divide the shards."""
    if shards % devices:
        divisors = [str(n) for n in range(1, shards + 1) if shards % n == 0]
        raise SameForAll(
            f"{devices} devices cannot share batching.shards={shards} evenly: "
            f"use {', '.join(divisors)} devices, or another batching.shards"
        )
    return shards // devices
