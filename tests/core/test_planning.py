"""Which sentences make up update n: shuffles with random access, groups of similar lengths, updates, and mixtures."""

from itertools import permutations

import numpy as np
import pytest

from nmt.config import BatchingConfig, NMTError, SourceConfig
from nmt.data import INCREMENT, BatchPlanner, MicroBatch, planning, splitmix
from nmt.data.planning import rows_by_group

Lengths = tuple[np.ndarray, np.ndarray]
SIZES = [*range(1, 70), 99, 100, 101, 255, 256, 257, 1000, 4095, 4096, 4097, 65_537]
BOUNDS = np.array([0, 1000, 1300, 3000])
"""Of three sources."""


def whole(size: int, *numbers: int) -> np.ndarray:
    return planning.shuffled(np.arange(size), size, planning.shuffle_key(*numbers))


def is_uniform(observed: np.ndarray) -> bool:
    """By the chi-square statistic, in standard deviations from its mean."""
    expected, freedom = observed.mean(), observed.size - 1
    return abs(((observed - expected) ** 2 / expected).sum() - freedom) / np.sqrt(2 * freedom) < 4


@pytest.mark.parametrize("key", [0, 2**64 - 1])
def test_every_item_lies_at_exactly_one_place(key):
    for size in SIZES:
        assert sorted(whole(size, key)) == list(range(size)), size


def test_some_indices_of_many_ranges_at_once_hold_what_they_hold_alone():
    random = np.random.default_rng(1)
    sizes = random.choice(SIZES, 300)
    keys, indices = planning.shuffle_key(7, np.arange(300)), random.integers(0, sizes)
    alone = [
        whole(size, 7, i)[index] for i, (size, index) in enumerate(zip(sizes, indices, strict=True))
    ]
    assert planning.shuffled(indices, sizes, keys).tolist() == alone
    items = planning.shuffled(
        np.arange(2000), 10**14, planning.shuffle_key(3)
    )  # a range too large to list
    assert len(set(items.tolist())) == 2000
    assert 0 <= items.min() < 0.1e14 < 0.9e14 < items.max() < 10**14


@pytest.mark.parametrize("size", [2, 3, 4])
def test_all_orders_of_a_few_items_are_equally_likely(size):
    keys = planning.shuffle_key(np.arange(24_000))
    orders = planning.shuffled(
        np.tile(np.arange(size), len(keys)), size, np.repeat(keys, size)
    ).reshape(-1, size)
    assert is_uniform(
        np.array([(orders == order).all(axis=1).sum() for order in permutations(range(size))])
    )


@pytest.mark.parametrize("size", [10, 50])
def test_any_two_items_are_equally_likely_to_be_neighbors(size):
    keys = planning.shuffle_key(np.arange(100_000))
    one, other = (planning.shuffled(np.full(len(keys), place), size, keys) for place in (0, 1))
    counts = np.bincount(one * size + other, minlength=size**2).reshape(size, size)
    assert np.trace(counts) == 0
    assert is_uniform(counts[~np.eye(size, dtype=bool)])


def test_orders_of_other_keys_are_unrelated_and_keys_differ_wherever_a_number_does():
    orders = [whole(65_537, *numbers) for numbers in ((1, 0), (1, 1), (2, 0), (0, 1))]
    correlations = np.corrcoef([np.arange(65_537), *orders, np.roll(orders[0], 1)])[
        ~np.eye(6, dtype=bool)
    ]
    assert abs(correlations).max() < 5 / np.sqrt(65_537)
    assert (
        len({tuple(planning.shuffle_key(*numbers).tolist()) for numbers in np.ndindex(12, 12, 12)})
        == 12**3
    )


def test_splitmix_computes_its_published_numbers():
    states = 1234567 + np.arange(1, 4) * np.int64(INCREMENT)
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert splitmix(states).astype(np.uint64).tolist() == expected


def lengths_like_text(pairs: int) -> Lengths:
    """Log-normal source lengths and correlated target lengths."""
    random = np.random.default_rng(0)
    source = random.lognormal(3.1, 0.6, pairs)
    target = source * random.lognormal(0.0, 0.2, pairs)
    return tuple(np.clip(side.round(), 1, 256).astype(np.int32) + 1 for side in (source, target))


@pytest.fixture(scope="module")
def lengths() -> Lengths:
    return lengths_like_text(3000)


def test_a_group_has_little_padding_or_few_micro_batches_but_enough_to_be_shuffled_among():
    lengths = lengths_like_text(20_000)
    groups = planning.group_by_lengths(*lengths, 900)
    sizes = np.diff(groups.starts)
    micro_batches = sizes / (900 // groups.widths.max(0))
    assert micro_batches.min() >= planning.MIN_MICRO_BATCHES
    real = np.add.reduceat((lengths[0] + lengths[1])[groups.order], groups.starts[:-1])
    padding = 1 - real / (sizes * groups.widths.sum(0))
    # A cut leaves both parts enough, so none is possible below twice that.
    assert (padding[micro_batches > 20] < 5 * planning.PADDING_SHARE).all()
    assert len(sizes) > 50
    equal = planning.group_by_lengths(np.full(2_000_000, 7), np.full(2_000_000, 1025), 1025)
    assert (equal.starts.tolist(), equal.widths.tolist()) == ([0, 2_000_000], [[7], [1025]])


def test_bucket_widths_rise_with_length_and_hold_it():
    lengths = np.arange(1, 5000)
    widths = planning.bucket_widths(lengths)
    assert (widths >= lengths).all()
    assert (np.diff(widths) >= 0).all()
    assert (widths <= 1.032 * lengths + 1).all()
    assert (widths[:64] == lengths[:64]).all()
    assert planning.bucket_widths(np.array([65, 128, 129, 133])).tolist() == [66, 128, 132, 136]


def planner(
    lengths: Lengths, tokens: int = 4000, micro_batches: int = 4, seed: int = 1, copies=None
) -> BatchPlanner:
    mixture = None if copies is None else planning.Mixture(BOUNDS, np.array(copies), np.ones(3))
    return BatchPlanner(*lengths, BatchingConfig(tokens, micro_batches), seed, mixture=mixture)


def passes(plan: BatchPlanner, number: int) -> list[list[MicroBatch]]:
    """The micro-batches of the first passes over the corpus."""
    size, updates = (
        plan.micro_batches_per_pass,
        -(-number * plan.micro_batches_per_pass // plan.micro_batches),
    )
    batches = [batch for update in range(updates) for batch in plan.update(update)]
    return [batches[start : start + size] for start in range(0, number * size, size)]


def rows_of(batches: list[MicroBatch]) -> np.ndarray:
    return np.concatenate([batch.indices for batch in batches])


def plain(update: list[MicroBatch]) -> list[tuple[list[int], int, int, int]]:
    return [
        (batch.indices.tolist(), batch.update, batch.micro_batch, batch.size.target_tokens)
        for batch in update
    ]


@pytest.mark.parametrize(
    ("tokens", "micro_batches"), [(4000, 4), (257, 1), (25_000, 8), (2600, 10), (6000, 1)]
)
def test_a_pass_holds_every_pair_once_within_the_budget_and_the_largest_shapes(
    lengths, tokens, micro_batches
):
    def costs(rows, source, target):
        return rows * (source + target), rows * max(source, target) ** 2

    plan, real = planner(lengths, tokens, micro_batches), []
    for batches in passes(plan, 3):
        assert sorted(rows_of(batches)) == list(range(3000))
        for batch in batches:
            widths = [int(side[batch.indices].max()) for side in lengths]
            assert len(batch.indices) * max(widths) <= tokens // micro_batches
            assert all(width <= room for width, room in zip(widths, batch.widths, strict=True))
            real.append(costs(len(batch.indices), *widths))
    shapes = plan.largest_shapes()
    assert all(
        rows * max(source, target) <= tokens // micro_batches for rows, source, target in shapes
    )
    for kind in (0, 1):
        largest, bound = (
            max(cost[kind] for cost in real),
            max(costs(*shape)[kind] for shape in shapes),
        )
        assert largest <= bound <= 1.1 * largest


@pytest.mark.parametrize("copies", [None, [1.0, 2.5, 1.0]])
def test_an_update_is_a_function_of_seed_and_number_alone(lengths, copies):
    one, backwards, other = (planner(lengths, seed=seed, copies=copies) for seed in (1, 1, 2))
    in_order = [plain(one.update(number)) for number in range(40)]
    assert in_order == [plain(backwards.update(number)) for number in reversed(range(40))][::-1]
    assert plain(other.update(39)) != in_order[39]
    for number, update in enumerate(in_order):
        tokens = sum(lengths[1][indices].sum() for indices, *_ in update)
        assert [rest for _, *rest in update] == [[number, n, tokens] for n in range(4)]


@pytest.mark.parametrize(("tokens", "micro_batches"), [(4000, 4), (12_000, 1)])
def test_pairs_seldom_keep_their_company(lengths, tokens, micro_batches):
    """Of two pairs in one micro-batch, few meet again in the next pass; among three micro-batches a third would."""
    companies = np.zeros((2, 3000), int)
    for company, batches in zip(
        companies, passes(planner(lengths, tokens, micro_batches), 2), strict=True
    ):
        for number, batch in enumerate(batches):
            company[batch.indices] = number
    first, second = (company[:, None] == company for company in companies)
    together = first & ~np.eye(3000, dtype=bool)
    assert (together & second).sum() / together.sum() < 0.3


def test_a_pair_alone_in_its_micro_batch_comes_anywhere_in_a_pass_equally_often():
    plan = planner((np.full(7, 5), np.full(7, 5)), tokens=5, micro_batches=1)
    orders = np.array([rows_of(batches) for batches in passes(plan, 150)])
    assert is_uniform(np.array([np.bincount(places, minlength=7) for places in orders.T]))


def test_a_corpus_of_fewer_micro_batches_than_an_update_repeats_within_it():
    plan = planner((np.full(2, 6), np.full(2, 4)), tokens=80, micro_batches=8)
    seen = np.concatenate([rows_of(plan.update(number)) for number in range(5)])
    assert np.bincount(seen).min() >= 20
    assert plan.update(3)[0].size.target_tokens == 8 * 4
    advice = r"tokens_per_update=80.*batching\.micro_batches=8.*10.*11.*raise batching\.tokens.*micro_batches"
    with pytest.raises(NMTError, match=advice):
        planner((np.array([3, 11]), np.array([3, 5])), tokens=80, micro_batches=8)


@pytest.mark.parametrize(("micro_batches", "padding"), [(8, 0.05), (1, 0.12)])
def test_text_is_batched_full_with_little_padding_and_in_no_order_of_length(micro_batches, padding):
    source, target = lengths_like_text(200_000)
    batches = passes(planner((source, target), 25_000, micro_batches), 1)[0]
    widths = np.array(
        [[side[batch.indices].max() for side in (source, target)] for batch in batches]
    )
    rows = np.array([len(batch.indices) for batch in batches])
    assert 1 - (source.sum() + target.sum()) / (rows[:, None] * widths).sum() < padding
    assert (rows * widths.max(axis=1)).mean() > 0.93 * 25_000 / micro_batches
    ranks = np.argsort(np.argsort(widths[:, 1]))
    assert abs(np.corrcoef(ranks[1:], ranks[:-1])[0, 1]) < 4 / np.sqrt(len(ranks))


@pytest.mark.parametrize("r", [None, 1, 2, 3, 8])
def test_pairs_of_query_and_key_are_counted_one_by_one(r):
    source, target = np.array([1, 4, 6]), np.array([5, 1, 2])
    seen = r or 100
    around = sum(
        t - seen // 2 <= s < t - seen // 2 + seen
        for n in source
        for t in range(n)
        for s in range(n)
    )
    past = sum(t - seen < s <= t for n in target for t in range(n) for s in range(n))
    size = planning.micro_batch_size(source, target, r)
    assert (size.encoder_pairs, size.decoder_pairs, size.cross_pairs) == (
        around,
        past,
        1 * 5 + 4 * 1 + 6 * 2,
    )
    assert (size.source_tokens, size.target_tokens, size.positions) == (11, 8, 3 * (6 + 5))


def test_in_a_pass_each_source_has_its_copies_and_its_pairs_occur_equally_often(lengths):
    for batches in passes(planner(lengths, copies=[1.0, 1.0, 1.0]), 2):
        assert (np.bincount(rows_of(batches)) == 1).all()
    copies, together = [1.0, 3.5, 1.25], np.zeros(3000, int)
    for batches in passes(planner(lengths, copies=copies), 4):
        counts = np.bincount(rows_of(batches), minlength=3000)
        taken = np.add.reduceat(counts, BOUNDS[:-1])
        assert (abs(taken - copies * np.diff(BOUNDS)) <= 1).all()
        together += counts
    for part, copy in zip(np.split(together, BOUNDS[1:-1]), copies, strict=True):
        assert part.mean() == pytest.approx(4 * copy, rel=0.01)
        assert (
            part.max() - part.min() <= 4
        )  # rounding, at most one a pass, in a group with few pairs
        assert np.quantile(part, 0.95) - np.quantile(part, 0.05) <= 2


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
    taken = planning.source_copies(sources, sizes, temperature) * sizes
    assert taken / taken.sum() == pytest.approx(shares)
    assert (taken / sizes).min() == pytest.approx(1)


def test_a_pass_is_the_same_with_every_version_of_python():
    """Python 3.12 rounds `sum` otherwise: 4.5 instead of the last value, and every eighth pair would move."""
    sources = [
        SourceConfig(None, "abc"[at], share=share) for at, share in enumerate((0.3, 0.15, 0.1))
    ]
    copies = planning.source_copies([*sources, SourceConfig(None, "d")], [3, 2000, 2000, 2000], 1)
    assert copies.tolist() == [2000.0, 1.5, 1.0, 4.500000000000001]


def test_no_pass_is_so_long_that_a_source_has_no_sentence_in_it():
    copies = planning.source_copies(
        [SourceConfig(None, "a", share=0.001), SourceConfig(None, "b")], [3000, 2], 1
    )
    assert copies * [3000, 2] == pytest.approx([3000 * 64 / 1000, 3000 * 64 * 0.999], rel=0.01)
    with pytest.raises(NMTError, match="give a less than one sentence"):
        planning.source_copies(
            [SourceConfig(None, "a", share=1e-9), SourceConfig(None, "b")], [30, 200], 1
        )


def test_blocks_of_rows_are_grouped_as_a_stable_sort_groups_all_of_them():
    groups = np.random.default_rng(1).integers(0, 5, 1000).astype(np.uint8)
    groups[groups == 3] = 4  # a group without rows
    starts = np.cumsum([0, *np.bincount(groups, minlength=5)])
    order = rows_by_group(np.array_split(groups, 7), starts)
    assert np.array_equal(order, np.argsort(groups, kind="stable"))
    assert order.dtype == np.int16
