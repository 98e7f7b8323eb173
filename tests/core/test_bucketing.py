"""Groups of pairs of similar lengths."""

import numpy as np
import pytest

from nmt.data.bucketing import MIN_MICRO_BATCHES, PADDING_SHARE, bucket_widths, group_by_lengths


def random_lengths(pairs: int, longest: int = 100, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    source = random.integers(1, longest + 1, pairs)
    return source, np.clip(source + random.integers(-9, 10, pairs), 1, longest)


@pytest.mark.parametrize(("pairs", "budget"), [(1, 100), (7, 100), (5000, 100), (5000, 1000), (20_000, 300)])
def test_groups_hold_every_pair_once_within_their_widths(pairs, budget):
    lengths = random_lengths(pairs)
    groups = group_by_lengths(*lengths, budget)
    assert sorted(groups.order.tolist()) == list(range(pairs))
    assert groups.starts[0] == 0
    assert groups.starts[-1] == pairs
    for begin, end, *widths in zip(groups.starts, groups.starts[1:], *groups.widths, strict=False):
        members = groups.order[begin:end]
        for side, width in zip(lengths, widths, strict=True):
            assert side[members].max() <= width <= budget


def test_a_group_has_little_padding_or_few_micro_batches_but_enough_to_be_shuffled_among():
    lengths = random_lengths(20_000)
    groups = group_by_lengths(*lengths, 300)
    sizes = np.diff(groups.starts)
    micro_batches = sizes / (300 // groups.widths.max(0))
    assert micro_batches.min() >= MIN_MICRO_BATCHES
    real = np.add.reduceat((lengths[0] + lengths[1])[groups.order], groups.starts[:-1])
    padding = 1 - real / (sizes * groups.widths.sum(0))
    # A cut leaves both parts enough, so none is possible below twice that.
    assert (padding[micro_batches > 20] < 5 * PADDING_SHARE).all()
    assert len(sizes) > 50


def test_equal_pairs_in_any_number_are_one_group():
    groups = group_by_lengths(np.full(3_000_000, 7), np.full(3_000_000, 300), 1000)
    assert groups.starts.tolist() == [0, 3_000_000]
    assert groups.widths.tolist() == [[7], [300]]
    assert groups.order.dtype == np.int32


def test_a_width_is_no_wider_than_the_longest_sentence():
    groups = group_by_lengths(np.array([1025]), np.array([3]), 1025)
    assert groups.widths.tolist() == [[1025], [3]]


def test_bucket_widths_rise_with_length_and_hold_it():
    lengths = np.arange(1, 5000)
    widths = bucket_widths(lengths)
    assert (widths >= lengths).all()
    assert (np.diff(widths) >= 0).all()
    assert (widths <= 1.032 * lengths + 1).all()
    assert (widths[lengths <= 64] == lengths[lengths <= 64]).all()
