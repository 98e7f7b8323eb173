"""Which sentences make up update n: shuffles, groups of similar lengths, and mixtures."""

import math
from itertools import permutations

import numpy as np
import pytest

from nmt.config import BatchingConfig, NMTError, SourceConfig
from nmt.data import INCREMENT, BatchPlanner, MicroBatch, splitmix
from nmt.data.grouping import (
    MIN_MICRO_BATCHES,
    PADDING_SHARE,
    bucket_widths,
    group_by_lengths,
)
from nmt.data.mixing import Mixture, source_copies
from nmt.data.shuffling import shuffle_key, shuffled
from nmt.data.sizes import micro_batch_size
from nmt.data.sorting import pairs_by_group

Lengths = tuple[np.ndarray, np.ndarray]

PAIRS = 3000
BOUNDS = np.array([0, 1000, 1300, PAIRS])
"""Of three sources."""
SIZES = [*range(1, 70), 99, 100, 101, 255, 256, 257, 1000, 4095, 4096, 4097, 65_537]


def shuffled_range(size: int, *numbers: int) -> np.ndarray:
    return shuffled(np.arange(size), size, shuffle_key(*numbers))


def is_uniform(observed: np.ndarray) -> bool:
    """Whether the chi-square statistic is less than four standard deviations from its mean."""
    expected = observed.mean()
    freedom = observed.size - 1
    statistic = ((observed - expected) ** 2 / expected).sum()
    return abs(statistic - freedom) / np.sqrt(2 * freedom) < 4


@pytest.mark.parametrize("key", [0, 2**64 - 1])
def test_shuffling_is_a_permutation(key):
    for size in SIZES:
        assert sorted(shuffled_range(size, key)) == list(range(size)), size


def test_shuffling_many_ranges_at_once_equals_shuffling_each():
    random = np.random.default_rng(1)
    sizes = random.choice(SIZES, 300)
    keys = shuffle_key(7, np.arange(300))
    indices = random.integers(0, sizes)
    expected = []
    for number, (size, index) in enumerate(zip(sizes, indices, strict=True)):
        expected.append(shuffled_range(size, 7, number)[index])
    assert shuffled(indices, sizes, keys).tolist() == expected


def test_shuffling_a_range_too_large_to_list():
    items = shuffled(np.arange(2000), 10**14, shuffle_key(3))
    assert len(set(items.tolist())) == 2000
    assert 0 <= items.min() < 0.1e14 < 0.9e14 < items.max() < 10**14


@pytest.mark.parametrize("size", [2, 3, 4])
def test_all_orders_of_a_few_items_are_equally_likely(size):
    keys = shuffle_key(np.arange(24_000))
    indices = np.tile(np.arange(size), len(keys))
    orders = shuffled(indices, size, np.repeat(keys, size)).reshape(-1, size)
    counts = []
    for order in permutations(range(size)):
        counts.append((orders == order).all(axis=1).sum())
    assert is_uniform(np.array(counts))


@pytest.mark.parametrize("size", [10, 50])
def test_any_two_items_are_equally_likely_to_be_neighbors(size):
    keys = shuffle_key(np.arange(100_000))
    first = shuffled(np.full(len(keys), 0), size, keys)
    second = shuffled(np.full(len(keys), 1), size, keys)
    counts = np.bincount(first * size + second, minlength=size**2).reshape(size, size)
    assert np.trace(counts) == 0
    assert is_uniform(counts[~np.eye(size, dtype=bool)])


def test_orders_of_different_keys_are_unrelated():
    size = 65_537
    orders = [shuffled_range(size, *numbers) for numbers in ((1, 0), (1, 1), (2, 0), (0, 1))]
    correlations = np.corrcoef([np.arange(size), *orders, np.roll(orders[0], 1)])
    assert abs(correlations[~np.eye(6, dtype=bool)]).max() < 5 / np.sqrt(size)


def test_keys_of_different_numbers_differ():
    keys = {tuple(shuffle_key(*numbers).tolist()) for numbers in np.ndindex(12, 12, 12)}
    assert len(keys) == 12**3


def test_splitmix_computes_its_published_numbers():
    states = 1234567 + np.arange(1, 4) * np.int64(INCREMENT)
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert splitmix(states).astype(np.uint64).tolist() == expected


def lengths_like_text(pairs: int) -> Lengths:
    """Log-normal source lengths and correlated target lengths."""
    random = np.random.default_rng(0)
    source = random.lognormal(3.1, 0.6, pairs)
    target = source * random.lognormal(0.0, 0.2, pairs)
    source_lengths = np.clip(source.round(), 1, 256).astype(np.int32) + 1
    target_lengths = np.clip(target.round(), 1, 256).astype(np.int32) + 1
    return source_lengths, target_lengths


@pytest.fixture(scope="module")
def lengths() -> Lengths:
    return lengths_like_text(PAIRS)


def test_groups_have_little_padding_and_enough_micro_batches():
    source, target = lengths_like_text(20_000)
    groups = group_by_lengths(source, target, 900)
    sizes = np.diff(groups.starts)
    micro_batches = sizes / (900 // groups.widths.max(0))
    assert micro_batches.min() >= MIN_MICRO_BATCHES
    tokens = np.add.reduceat((source + target)[groups.order], groups.starts[:-1])
    padding = 1 - tokens / (sizes * groups.widths.sum(0))
    # A cut leaves both parts enough micro-batches, so none is possible below twice that.
    assert (padding[micro_batches > 20] < 5 * PADDING_SHARE).all()
    assert len(sizes) > 50


def test_pairs_of_equal_lengths_form_one_group():
    groups = group_by_lengths(np.full(2_000_000, 7), np.full(2_000_000, 1025), 1025)
    assert groups.starts.tolist() == [0, 2_000_000]
    assert groups.widths.tolist() == [[7], [1025]]


def test_bucket_widths_rise_with_the_length_and_are_a_little_wider():
    lengths = np.arange(1, 5000)
    widths = bucket_widths(lengths)
    assert (widths >= lengths).all()
    assert (np.diff(widths) >= 0).all()
    assert (widths <= 1.032 * lengths + 1).all()
    assert (widths[:64] == lengths[:64]).all()
    assert bucket_widths(np.array([65, 128, 129, 133])).tolist() == [66, 128, 132, 136]


def test_grouping_rows_in_blocks_equals_a_stable_sort():
    groups = np.random.default_rng(1).integers(0, 5, 1000).astype(np.uint8)
    groups[groups == 3] = 4  # a group without rows
    starts = np.cumsum([0, *np.bincount(groups, minlength=5)])
    order = pairs_by_group(np.array_split(groups, 7), starts)
    assert np.array_equal(order, np.argsort(groups, kind="stable"))


def planner(
    lengths: Lengths, tokens: int = 4000, micro_batches: int = 4, seed: int = 1, copies=None
) -> BatchPlanner:
    mixture = None
    if copies is not None:
        mixture = Mixture(BOUNDS, np.array(copies), np.ones(3))
    return BatchPlanner(*lengths, BatchingConfig(tokens, micro_batches), seed, mixture=mixture)


def passes(plan: BatchPlanner, number: int) -> list[list[MicroBatch]]:
    """The micro-batches of the first passes over the corpus."""
    size = plan.micro_batches_per_pass
    updates = math.ceil(number * size / plan.micro_batches)
    batches = [batch for update in range(updates) for batch in plan.update(update)]
    return [batches[start : start + size] for start in range(0, number * size, size)]


def rows_of(batches: list[MicroBatch]) -> np.ndarray:
    return np.concatenate([batch.indices for batch in batches])


BATCH_SIZES = [(4000, 4), (257, 1), (25_000, 8), (2600, 10), (6000, 1)]
"""Tokens per update, micro-batches."""


@pytest.mark.parametrize(("tokens", "micro_batches"), BATCH_SIZES)
def test_a_pass_contains_every_pair_once_within_the_budget(lengths, tokens, micro_batches):
    for batches in passes(planner(lengths, tokens, micro_batches), 3):
        assert sorted(rows_of(batches)) == list(range(PAIRS))
        for batch in batches:
            widths = [int(side[batch.indices].max()) for side in lengths]
            assert len(batch.indices) * max(widths) <= tokens // micro_batches
            assert widths[0] <= batch.widths[0]
            assert widths[1] <= batch.widths[1]


def positions(rows: int, source: int, target: int) -> int:
    return rows * (source + target)


def pairs_of_positions(rows: int, source: int, target: int) -> int:
    return rows * max(source, target) ** 2


@pytest.mark.slow
@pytest.mark.parametrize("cost", [positions, pairs_of_positions])
@pytest.mark.parametrize(("tokens", "micro_batches"), BATCH_SIZES)
def test_largest_shapes_are_hardly_larger_than_the_largest_batches(
    lengths, tokens, micro_batches, cost
):
    plan = planner(lengths, tokens, micro_batches)
    costs = []
    for batches in passes(plan, 3):
        for batch in batches:
            widths = [int(side[batch.indices].max()) for side in lengths]
            costs.append(cost(len(batch.indices), *widths))
    shapes = plan.largest_shapes()
    for rows, source, target in shapes:
        assert rows * max(source, target) <= tokens // micro_batches
    assert max(costs) <= max(cost(*shape) for shape in shapes) <= 1.1 * max(costs)


def plain(update: list[MicroBatch]) -> list[tuple[list[int], int, int, int]]:
    return [
        (batch.indices.tolist(), batch.update, batch.micro_batch, batch.size.target_tokens)
        for batch in update
    ]


@pytest.mark.parametrize("copies", [None, [1.0, 2.5, 1.0]])
def test_an_update_depends_only_on_seed_and_number(lengths, copies):
    forwards = planner(lengths, seed=1, copies=copies)
    backwards = planner(lengths, seed=1, copies=copies)
    other_seed = planner(lengths, seed=2, copies=copies)
    updates = [plain(forwards.update(number)) for number in range(40)]
    for number in reversed(range(40)):
        assert plain(backwards.update(number)) == updates[number]
    assert plain(other_seed.update(39)) != updates[39]


@pytest.mark.parametrize("copies", [None, [1.0, 2.5, 1.0]])
def test_micro_batches_are_numbered_and_know_the_size_of_their_update(lengths, copies):
    plan = planner(lengths, copies=copies)
    for number in range(40):
        update = plain(plan.update(number))
        tokens = sum(lengths[1][indices].sum() for indices, *_ in update)
        expected = [[number, micro_batch, tokens] for micro_batch in range(4)]
        assert [numbers for _, *numbers in update] == expected


@pytest.mark.parametrize(("tokens", "micro_batches"), [(4000, 4), (12_000, 1)])
def test_pairs_of_a_micro_batch_rarely_share_the_next_one(lengths, tokens, micro_batches):
    """Of two pairs in one micro-batch, few meet again in the next pass.

    In a group of three micro-batches, a third would.
    """
    shares_batch = []
    for batches in passes(planner(lengths, tokens, micro_batches), 2):
        batch_of_pair = np.zeros(PAIRS, int)
        for number, batch in enumerate(batches):
            batch_of_pair[batch.indices] = number
        shares_batch.append(batch_of_pair[:, None] == batch_of_pair)
    first, second = shares_batch
    together = first & ~np.eye(PAIRS, dtype=bool)
    assert (together & second).sum() / together.sum() < 0.3


@pytest.mark.slow
def test_a_pair_alone_in_its_micro_batch_has_every_place_in_a_pass_equally_often():
    plan = planner((np.full(7, 5), np.full(7, 5)), tokens=5, micro_batches=1)
    orders = np.array([rows_of(batches) for batches in passes(plan, 150)])
    assert is_uniform(np.array([np.bincount(places, minlength=7) for places in orders.T]))


def test_a_corpus_smaller_than_an_update_repeats_within_it():
    plan = planner((np.full(2, 6), np.full(2, 4)), tokens=80, micro_batches=8)
    rows = np.concatenate([rows_of(plan.update(number)) for number in range(5)])
    assert np.bincount(rows).min() >= 20
    assert plan.update(3)[0].size.target_tokens == 8 * 4


def test_a_sentence_longer_than_a_micro_batch_is_rejected():
    problem = r"tokens_per_update=80.*batching\.micro_batches=8.*10.*11"
    advice = r"raise batching\.tokens.*micro_batches"
    with pytest.raises(NMTError, match=f"{problem}.*{advice}"):
        planner((np.array([3, 11]), np.array([3, 5])), tokens=80, micro_batches=8)


@pytest.mark.parametrize(("micro_batches", "padding"), [(8, 0.05), (1, 0.12)])
def test_text_fills_micro_batches_with_little_padding(micro_batches, padding):
    source, target = lengths_like_text(200_000)
    batches = passes(planner((source, target), 25_000, micro_batches), 1)[0]
    rows = np.array([len(batch.indices) for batch in batches])
    widths = np.array(
        [[side[batch.indices].max() for side in (source, target)] for batch in batches]
    )
    assert 1 - (source.sum() + target.sum()) / (rows[:, None] * widths).sum() < padding
    assert (rows * widths.max(axis=1)).mean() > 0.93 * 25_000 / micro_batches
    # The order of the micro-batches has nothing to do with their lengths.
    ranks = np.argsort(np.argsort(widths[:, 1]))
    assert abs(np.corrcoef(ranks[1:], ranks[:-1])[0, 1]) < 4 / np.sqrt(len(ranks))


@pytest.mark.parametrize("r", [None, 1, 2, 3, 8])
def test_query_key_pairs_equal_a_count_one_by_one(r):
    source = np.array([1, 4, 6])
    target = np.array([5, 1, 2])
    window = r or 100
    around = 0
    for n in source:
        for t in range(n):
            first = t - window // 2
            around += sum(first <= s < first + window for s in range(n))
    past = 0
    for n in target:
        for t in range(n):
            past += sum(t - window < s <= t for s in range(n))
    size = micro_batch_size(source, target, r)
    assert size.encoder_pairs == around
    assert size.decoder_pairs == past
    assert size.cross_pairs == 1 * 5 + 4 * 1 + 6 * 2
    assert (size.source_tokens, size.target_tokens, size.positions) == (11, 8, 3 * (6 + 5))


def test_with_one_copy_each_pass_contains_every_pair_once(lengths):
    for batches in passes(planner(lengths, copies=[1.0, 1.0, 1.0]), 2):
        assert (np.bincount(rows_of(batches)) == 1).all()


def test_a_pass_takes_the_copies_of_each_source_and_uses_its_pairs_equally_often(lengths):
    copies = [1.0, 3.5, 1.25]
    total = np.zeros(PAIRS, int)
    for batches in passes(planner(lengths, copies=copies), 4):
        counts = np.bincount(rows_of(batches), minlength=PAIRS)
        taken = np.add.reduceat(counts, BOUNDS[:-1])
        assert (abs(taken - copies * np.diff(BOUNDS)) <= 1).all()
        total += counts
    for counts, copy in zip(np.split(total, BOUNDS[1:-1]), copies, strict=True):
        assert counts.mean() == pytest.approx(4 * copy, rel=0.01)
        # In a group with few pairs, rounding makes a difference of at most one in a pass.
        assert counts.max() - counts.min() <= 4
        assert np.quantile(counts, 0.95) - np.quantile(counts, 0.05) <= 2


@pytest.mark.parametrize(
    ("keys", "sizes", "temperature", "shares"),
    [
        ([{}, {}], [300, 100], 1, [0.75, 0.25]),
        ([{}, {"weight": 3}], [300, 100], 1, [0.5, 0.5]),
        ([{}, {}], [3200, 100], 5, [2 / 3, 1 / 3]),
        ([{}, {"share": 0.4}, {}], [100, 7, 200], 1, [0.2, 0.4, 0.4]),
    ],
)
def test_shares_follow_sizes_weights_and_temperature(keys, sizes, temperature, shares):
    sources = [SourceConfig(None, "a", **part) for part in keys]
    taken = source_copies(sources, sizes, temperature) * sizes
    assert taken / taken.sum() == pytest.approx(shares)
    assert (taken / sizes).min() == pytest.approx(1)


def test_a_pass_is_the_same_with_every_version_of_python():
    """Python 3.12 rounds `sum` differently.

    The last value would be 4.5, and every eighth pair would move.
    """
    sources = [
        SourceConfig(None, "a", share=0.3),
        SourceConfig(None, "b", share=0.15),
        SourceConfig(None, "c", share=0.1),
        SourceConfig(None, "d"),
    ]
    copies = source_copies(sources, [3, 2000, 2000, 2000], 1)
    assert copies.tolist() == [2000.0, 1.5, 1.0, 4.500000000000001]


def test_a_small_share_of_a_large_source_does_not_make_a_pass_too_long():
    sources = [SourceConfig(None, "a", share=0.001), SourceConfig(None, "b")]
    copies = source_copies(sources, [3000, 2], 1)
    assert copies * [3000, 2] == pytest.approx([3000 * 64 / 1000, 3000 * 64 * 0.999], rel=0.01)


def test_a_source_with_less_than_one_sentence_in_a_pass_is_rejected():
    sources = [SourceConfig(None, "a", share=1e-9), SourceConfig(None, "b")]
    with pytest.raises(NMTError, match="give a less than one sentence"):
        source_copies(sources, [30, 200], 1)
