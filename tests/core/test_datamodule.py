"""Updates on their way into Lightning."""

from itertools import islice
from pathlib import Path

import pytest
import torch
from lightning.fabric.utilities import move_data_to_device
from torch.utils.data import DataLoader
from torch.utils.data._utils.pin_memory import pin_memory

from nmt.config import BatchingConfig
from nmt.data import Batch, BatchPlanner, PlannedBatches, PreparedCorpus, PreparedSplit, accumulation, open_corpus
from nmt.data.datamodule import UpdateDataset
from nmt.errors import NMTError

MICRO_BATCHES, UPDATES = 4, 12


@pytest.fixture(scope="module")
def corpus(toy: list[str]) -> PreparedCorpus:
    return open_corpus(Path(toy[-1].removeprefix("prepared=")))


@pytest.fixture(scope="module")
def split(corpus: PreparedCorpus) -> PreparedSplit:
    return corpus.split("train")


@pytest.fixture(scope="module")
def stream(split: PreparedSplit):
    planner = BatchPlanner(split.source_lengths, split.target_lengths, BatchingConfig(240, MICRO_BATCHES), seed=1)
    return lambda start=0, rank=0, world_size=1: UpdateDataset(PlannedBatches(split), planner, start, rank, world_size)


@pytest.fixture(scope="module")
def stream_of_one(stream) -> list:
    return list(islice(stream(), UPDATES * MICRO_BATCHES))


def assert_same(batches: list, others: list) -> None:
    torch.testing.assert_close([tuple(b) for b in batches], [tuple(b) for b in others], rtol=0, atol=0)


@pytest.mark.parametrize("world_size", [1, 2])
def test_the_ranks_together_see_the_stream_of_one(stream, stream_of_one, world_size):
    count = UPDATES * MICRO_BATCHES // world_size
    ranks = [list(islice(stream(rank=rank, world_size=world_size), count)) for rank in range(world_size)]
    together = [batch for batches in zip(*ranks, strict=True) for batch in batches]
    assert_same(sorted(together, key=lambda batch: (batch.update, batch.micro_batch)), stream_of_one)
    assert all([batch.update for batch in rank] == sorted(batch.update for batch in rank) for rank in ranks)


@pytest.mark.filterwarnings("ignore:This DataLoader will create 2 worker processes")  # on one processor
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12 and later: fork beside threads
@pytest.mark.parametrize(("rank", "world_size"), [(0, 1), (1, 2)])
def test_worker_processes_keep_the_order(stream, rank, world_size):
    count = UPDATES * MICRO_BATCHES // world_size
    loaded = islice(DataLoader(stream(3, rank, world_size), batch_size=None, num_workers=2), count)
    assert_same(list(loaded), list(islice(stream(3, rank, world_size), count)))


class CountingSplit(PreparedSplit):
    """Tells with each batch how many its process has built."""

    built = 0

    def batch(self, indices):
        self.built += 1
        return super().batch(indices)._replace(target_indices=torch.tensor([self.built]))


@pytest.mark.filterwarnings("ignore:This DataLoader will create 3 worker processes")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_worker_process_builds_no_batches_but_its_own(stream):
    counted = stream()
    counted.batches = PlannedBatches(CountingSplit(counted.batches.split.folder))
    loaded = islice(DataLoader(counted, batch_size=None, num_workers=3), 9)
    assert [int(batch.target_indices) for batch in loaded] == [1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_a_batch_is_moved_without_waiting_and_pinned_tensor_by_tensor(stream):
    # No GPU is needed for it: copies to meta are not waited for either.
    batch = next(iter(stream()))
    asked = []

    class Watched(torch.Tensor):
        def to(self, *arguments, **named):
            asked.append(named)
            return super().to(*arguments, **named)

        def pin_memory(self):
            return self

    tensors = {name: value.as_subclass(Watched) for name, value in batch._asdict().items() if torch.is_tensor(value)}
    pinned = pin_memory(batch._replace(**tensors))
    moved = move_data_to_device(pinned, torch.device("meta"))
    assert asked == [{"non_blocking": True}] * 4
    assert type(pinned) is type(moved) is Batch
    assert pinned[4:] == moved[4:] == batch[4:]
    assert all(tensor.is_meta for tensor in moved[:4])


@pytest.mark.parametrize("start", [1, 7])
def test_starting_at_an_update_equals_skipping_those_before_it(stream, stream_of_one, start):
    assert_same(list(islice(stream(start), (UPDATES - start) * MICRO_BATCHES)), stream_of_one[start * MICRO_BATCHES :])


@pytest.mark.parametrize(("micro_batches", "devices", "expected"), [(8, 8, 1), (6, 3, 2)])
def test_devices_share_the_micro_batches_evenly(micro_batches, devices, expected):
    assert accumulation(micro_batches, devices) == expected
    with pytest.raises(NMTError, match=r"5 devices.*batching\.micro_batches=12.*use 1, 2, 3, 4, 6, 12 devices"):
        accumulation(12, 5)
