"""The data module: which device builds which micro-batches, and what transforms may change."""

from collections.abc import Callable
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
def dataset(toy: list[str]) -> Callable[..., UpdateDataset]:
    """A factory of the updates of one rank."""
    split = open_corpus(Path(toy[-1].removeprefix("prepared="))).split("train")
    batching = BatchingConfig(240, 4)
    planner = BatchPlanner(split.source_lengths, split.target_lengths, batching, seed=1)

    def make(start: int = 0, rank: int = 0, world_size: int = 1) -> UpdateDataset:
        return UpdateDataset(PlannedBatches(split), planner, start, rank, world_size)

    return make


class CountingBatches(PlannedBatches):
    """Reports with each batch how many its process has built, in place of `padded`."""

    built = 0

    def batch(self, planned):
        self.built += 1
        return super().batch(planned)._replace(padded=self.built)


# On one processor, DataLoader warns. From Python 3.12 on, fork beside threads warns.
@pytest.mark.filterwarnings("ignore:This DataLoader will create . worker processes")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_workers_keep_the_order_and_build_only_their_own_batches(dataset):
    counted = dataset(start=3, rank=1, world_size=2)
    counted.batches = CountingBatches(counted.batches.split)
    loaded = list(islice(DataLoader(counted, batch_size=None, num_workers=3), 9))
    assert [batch.padded for batch in loaded] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    expected = islice(dataset(start=3, rank=1, world_size=2), 9)
    for batch, other in zip(loaded, expected, strict=True):
        assert batch[5:] == other[5:]
        torch.testing.assert_close(batch[:4], other[:4], rtol=0, atol=0)


@pytest.mark.parametrize(("longer", "fits"), [(-1, True), (0, False)])
def test_a_pair_that_a_transform_makes_too_long_keeps_its_words(dataset, longer, fits):
    batches = dataset().batches
    planned = dataset().planner.update(0)[0]
    source_width, _ = planned.widths
    length = source_width + longer  # an end symbol follows

    def lengthen(pairs, sources, planned):
        return [([5] * length, target) for _, target in pairs]

    bounds = np.array([0, len(batches.split)])
    changed = PlannedBatches(batches.split, bounds, [lengthen]).batch(planned)
    original = batches.batch(planned)
    assert bool((changed.source[:, :-1] == 5).all()) == fits
    assert torch.equal(changed.source, original.source) == (not fits)
    assert torch.equal(changed.target_out, original.target_out)


@pytest.mark.parametrize(("micro_batches", "devices", "share"), [(8, 8, 1), (6, 3, 2)])
def test_devices_share_micro_batches_evenly(micro_batches, devices, share):
    assert accumulation(micro_batches, devices) == share


def test_a_number_of_devices_that_cannot_share_evenly_is_rejected():
    problem = r"5 devices.*batching\.micro_batches=12"
    with pytest.raises(NMTError, match=f"{problem}.*use 1, 2, 3, 4, 6, 12 devices"):
        accumulation(12, 5)
