"""Updates on their way into Lightning."""

from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from nmt.config import BatchingConfig, NMTError
from nmt.data import BatchPlanner, PlannedBatches, accumulation, open_corpus
from nmt.data.datamodule import UpdateDataset


@pytest.fixture(scope="module")
def stream(toy: list[str]):
    split = open_corpus(Path(toy[-1].removeprefix("prepared="))).split("train")
    planner = BatchPlanner(
        split.source_lengths, split.target_lengths, BatchingConfig(240, 4), seed=1
    )
    return lambda start=0, rank=0, world_size=1: UpdateDataset(
        PlannedBatches(split), planner, start, rank, world_size
    )


def assert_same(batches: list, others: list) -> None:
    torch.testing.assert_close(
        [tuple(b) for b in batches], [tuple(b) for b in others], rtol=0, atol=0
    )


@pytest.mark.filterwarnings(
    "ignore:This DataLoader will create . worker processes"
)  # on one processor
@pytest.mark.filterwarnings(
    "ignore:This process:DeprecationWarning"
)  # Python 3.12 and later: fork beside threads
def test_worker_processes_keep_the_order_and_build_no_batches_but_their_own(stream):
    class CountingBatches(PlannedBatches):
        """Tells with each batch how many its process has built."""

        built = 0

        def batch(self, planned):
            self.built += 1
            return super().batch(planned)._replace(padded=self.built)

    counted = stream(3, 1, 2)
    counted.batches = CountingBatches(counted.batches.split)
    loaded = list(islice(DataLoader(counted, batch_size=None, num_workers=3), 9))
    assert [batch.padded for batch in loaded] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    expected = list(islice(stream(3, 1, 2), 9))
    assert_same(
        [batch._replace(padded=True) for batch in loaded],
        [batch._replace(padded=True) for batch in expected],
    )


def test_a_pair_that_a_transform_makes_longer_than_planned_stays_as_it_was(stream):
    batches, planned = stream().batches, stream().planner.update(0)[0]
    plain, (width, _) = batches.batch(planned), planned.widths
    for length in (width - 1, width):  # an end symbol follows
        longer = PlannedBatches(
            batches.split,
            np.array([0, len(batches.split)]),
            [
                lambda pairs, sources, planned, length=length: [
                    ([5] * length, target) for _, target in pairs
                ]
            ],
        ).batch(planned)
        assert bool((longer.source[:, :-1] == 5).all()) == (length < width)
        assert torch.equal(longer.source, plain.source) == (length == width)
        assert torch.equal(longer.target_out, plain.target_out)


def test_devices_share_the_micro_batches_evenly():
    assert (accumulation(8, 8), accumulation(6, 3)) == (1, 2)
    with pytest.raises(
        NMTError, match=r"5 devices.*batching\.micro_batches=12.*use 1, 2, 3, 4, 6, 12 devices"
    ):
        accumulation(12, 5)
