"""Random-access shuffles: permutations of any range, well mixed, another for each key."""

from itertools import permutations

import numpy as np
import pytest

from nmt.data.shuffling import shuffle_key, shuffled

SIZES = [*range(1, 70), 99, 100, 101, 255, 256, 257, 1000, 4095, 4096, 4097, 65_537]


def whole(size: int, *numbers: int) -> np.ndarray:
    return shuffled(np.arange(size), size, shuffle_key(*numbers))


def chi_square(observed: np.ndarray, expected: float) -> float:
    """The statistic, in standard deviations from what chance gives."""
    freedom = observed.size - 1
    return float((((observed - expected) ** 2 / expected).sum() - freedom) / np.sqrt(2 * freedom))


@pytest.mark.parametrize("key", [0, 1, 2**63, 2**64 - 1])
def test_every_item_lies_at_exactly_one_place(key):
    for size in SIZES:
        assert sorted(whole(size, key)) == list(range(size)), size


def test_some_indices_of_many_ranges_at_once_hold_what_they_hold_alone():
    random = np.random.default_rng(1)
    sizes = random.choice(SIZES, 300)
    keys, indices = shuffle_key(7, np.arange(300)), random.integers(0, sizes)
    together = shuffled(indices, sizes, keys)
    assert together.tolist() == [
        whole(size, 7, i)[index] for i, (size, index) in enumerate(zip(sizes, indices, strict=True))
    ]


def test_indices_of_a_range_too_large_to_list():
    items = shuffled(np.arange(2000), 10**14, shuffle_key(3))
    assert len(set(items.tolist())) == 2000
    assert items.min() >= 0
    assert 0.9e14 < items.max() < 10**14


@pytest.mark.parametrize("size", [2, 3, 4])
def test_all_orders_of_a_few_items_are_equally_likely(size):
    keys = shuffle_key(np.arange(24_000))
    orders = shuffled(np.tile(np.arange(size), len(keys)), size, np.repeat(keys, size)).reshape(-1, size)
    counts = np.array([(orders == order).all(axis=1).sum() for order in permutations(range(size))])
    assert counts.sum() == len(keys)
    assert abs(chi_square(counts, len(keys) / len(counts))) < 4


@pytest.mark.parametrize("size", [10, 16, 50, 100])
def test_any_two_items_are_equally_likely_to_be_neighbours(size):
    keys = shuffle_key(np.arange(100_000))
    one, other = (shuffled(np.full(len(keys), place), size, keys) for place in (0, 1))
    counts = np.bincount(one * size + other, minlength=size**2).reshape(size, size)
    apart = counts[~np.eye(size, dtype=bool)]
    assert apart.sum() == len(keys)
    assert abs(chi_square(apart, len(keys) / apart.size)) < 4


@pytest.mark.parametrize("size", [1000, 65_537])
def test_indices_items_and_other_keys_are_unrelated(size):
    orders = [whole(size, *numbers) for numbers in ((1, 0), (1, 1), (2, 0), (0, 1))]
    series = [np.arange(size), *orders, np.roll(orders[0], 1)]
    correlations = np.corrcoef(series)[~np.eye(len(series), dtype=bool)]
    assert abs(correlations).max() < 5 / np.sqrt(size)


def test_keys_differ_wherever_a_number_does():
    every = [tuple(shuffle_key(*numbers).tolist()) for numbers in np.ndindex(12, 12, 12)]
    assert len(set(every)) == 12**3
    assert shuffle_key(1, np.array([2, 3])).tolist() == [shuffle_key(1, n)[0] for n in (2, 3)]
