"""Which sentences make up update n."""

import time

import numpy as np
import pytest

from nmt.config import BatchingConfig
from nmt.data import BatchPlanner, MicroBatch
from nmt.data.planning import Mixture, Stage, micro_batch_size
from nmt.errors import NMTError


def lengths_like_text(pairs: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Log-normal source lengths, and target lengths that go with them."""
    random = np.random.default_rng(seed)
    source = random.lognormal(3.1, 0.6, pairs)
    target = source * random.lognormal(0.0, 0.2, pairs)
    return tuple(np.clip(side.round(), 1, 256).astype(np.int32) + 1 for side in (source, target))


@pytest.fixture(scope="module")
def lengths() -> tuple[np.ndarray, np.ndarray]:
    return lengths_like_text(3000)


def planner(
    lengths: tuple[np.ndarray, np.ndarray], tokens: int = 4000, micro_batches: int = 4, seed: int = 1
) -> BatchPlanner:
    return BatchPlanner(*lengths, BatchingConfig(tokens, micro_batches), seed)


def passes(plan: BatchPlanner, number: int) -> list[list[MicroBatch]]:
    """The micro-batches of the first passes over the corpus."""
    size, micro_batches = plan.micro_batches_per_pass, plan.micro_batches
    updates = -(-number * size // micro_batches)
    batches = [batch for update in range(updates) for batch in plan.update(update)]
    return [batches[start : start + size] for start in range(0, number * size, size)]


def plain(update: list[MicroBatch]) -> list[tuple[list[int], int, int, int]]:
    return [(batch.indices.tolist(), batch.update, batch.micro_batch, batch.size.target_tokens) for batch in update]


@pytest.mark.parametrize("micro_batches", [1, 3, 8])
def test_every_pass_is_as_many_micro_batches_and_holds_every_pair_exactly_once(lengths, micro_batches):
    for batches in passes(planner(lengths, tokens=1000 * micro_batches, micro_batches=micro_batches), 3):
        assert sorted(np.concatenate([batch.indices for batch in batches])) == list(range(3000))


@pytest.mark.parametrize(("tokens", "micro_batches"), [(4000, 4), (257, 1), (25_000, 8), (2600, 10)])
def test_rows_times_the_widest_side_stay_in_the_budget(lengths, tokens, micro_batches):
    for batches in passes(planner(lengths, tokens, micro_batches), 2):
        for batch in batches:
            widest = max(side[batch.indices].max() for side in lengths)
            assert len(batch.indices) * widest <= tokens // micro_batches


def test_an_update_is_a_function_of_seed_and_number_alone(lengths):
    one = planner(lengths)
    in_order = [plain(one.update(number)) for number in range(60)]
    assert plain(planner(lengths).update(59)) == in_order[59]
    backwards = planner(lengths)
    assert [plain(backwards.update(number)) for number in reversed(range(60))] == in_order[::-1]


def test_another_seed_gives_another_order(lengths):
    assert plain(planner(lengths, seed=1).update(0)) != plain(planner(lengths, seed=2).update(0))


def test_pairs_meet_others_in_the_next_pass(lengths):
    first, second = (
        {frozenset(batch.indices.tolist()) for batch in batches} for batches in passes(planner(lengths), 2)
    )
    # Sentences of a rare length keep their company: so few pairs have many of these.
    assert len(first & second) < 0.2 * len(first)


@pytest.mark.parametrize(("tokens", "micro_batches"), [(4000, 4), (12_000, 1)])
def test_pairs_seldom_keep_their_company(lengths, tokens, micro_batches):
    """Of two pairs in one micro-batch, few meet again in the next pass; among three micro-batches a third would."""
    companies = []
    for batches in passes(planner(lengths, tokens, micro_batches), 2):
        companies.append(np.zeros(3000, int))
        for number, batch in enumerate(batches):
            companies[-1][batch.indices] = number
    first, second = (company[:, None] == company for company in companies)
    together = first & ~np.eye(3000, dtype=bool)
    assert (together & second).sum() / together.sum() < 0.3


def test_micro_batches_come_in_another_order_in_the_next_pass(lengths):
    widths = [[lengths[1][batch.indices].max() for batch in batches] for batches in passes(planner(lengths), 2)]
    assert widths[0] != widths[1]


def test_the_length_of_a_micro_batch_says_nothing_about_the_next():
    lengths = lengths_like_text(100_000)
    widths = [lengths[1][batch.indices].max() for batch in passes(planner(lengths), 1)[0]]
    ranks = np.argsort(np.argsort(widths))
    assert abs(np.corrcoef(ranks[1:], ranks[:-1])[0, 1]) < 4 / np.sqrt(len(ranks))


def test_update_tokens_are_the_real_target_tokens_of_the_whole_update(lengths):
    plan = planner(lengths)
    for number in (0, 7, 200):
        update = plan.update(number)
        expected = sum(lengths[1][batch.indices].sum() for batch in update)
        assert [(batch.update, batch.micro_batch) for batch in update] == [
            (number, micro_batch) for micro_batch in range(4)
        ]
        assert {batch.size.target_tokens for batch in update} == {expected}


@pytest.mark.parametrize("pairs", [1, 2, 5])
def test_a_corpus_of_fewer_micro_batches_than_an_update_repeats_within_it(pairs):
    lengths = np.full(pairs, 6), np.full(pairs, 4)
    plan = planner(lengths, tokens=80, micro_batches=8)
    seen = np.concatenate([batch.indices for number in range(5) for batch in plan.update(number)])
    assert np.bincount(seen, minlength=pairs).min() >= 40 // pairs
    assert plan.update(3)[0].size.target_tokens == 8 * 4


def test_lengths_all_the_same_fill_the_budget():
    batches = passes(planner((np.full(100, 10), np.full(100, 10)), tokens=100, micro_batches=1), 1)[0]
    assert [len(batch.indices) for batch in batches] == [10] * 10


def test_a_sentence_longer_than_a_micro_batch_is_refused_with_what_to_change():
    with pytest.raises(
        NMTError,
        match=r"tokens_per_update=80.*batching\.micro_batches=8.*10.*11.*raise batching\.tokens.*micro_batches",
    ):
        planner((np.array([3, 11]), np.array([3, 5])), tokens=80, micro_batches=8)


def test_a_sentence_as_long_as_a_micro_batch_is_taken():
    assert len(passes(planner((np.array([3, 10]), np.array([3, 5])), tokens=80, micro_batches=8), 1)[0]) == 2


@pytest.mark.parametrize(("micro_batches", "padding"), [(8, 0.05), (1, 0.12)])
def test_text_is_batched_full_and_with_little_padding(micro_batches, padding):
    source, target = lengths_like_text(200_000)
    batches = passes(planner((source, target), 25_000, micro_batches), 1)[0]
    widths = np.array([[side[batch.indices].max() for side in (source, target)] for batch in batches])
    rows = np.array([len(batch.indices) for batch in batches])
    padded = (rows[:, None] * widths).sum()
    assert 1 - (source.sum() + target.sum()) / padded < padding
    assert (rows * widths.max(axis=1)).mean() > 0.93 * 25_000 / micro_batches


def test_any_pass_is_planned_at_once():
    """Nothing is computed for a pass as a whole: its first update comes as fast as others, however many pairs."""
    plan = planner(lengths_like_text(1_000_000), 25_000, 8)
    start = time.process_time()
    for number in range(20):
        plan.update(number * 1000 * plan.micro_batches_per_pass)
    assert time.process_time() - start < 0.5


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("tokens", "micro_batches"), [(4000, 4), (25_000, 8), (600, 1), (6000, 1)])
def test_no_micro_batch_of_any_pass_is_larger_than_the_largest_shapes_nor_are_these_much_larger(
    lengths, tokens, micro_batches, seed
):
    plan = planner(lengths, tokens, micro_batches, seed)

    def sizes(rows, source, target):
        return rows * (source + target), rows * max(source, target) ** 2

    real = [
        sizes(len(batch.indices), *(int(side[batch.indices].max()) for side in lengths))
        for batches in passes(plan, 3)
        for batch in batches
    ]
    shapes = plan.largest_shapes()
    assert 1 <= len(shapes) <= 2
    assert all(rows * max(source, target) <= tokens // micro_batches for rows, source, target in shapes)
    for largest, bound in zip(
        map(max, zip(*real, strict=True)), map(max, zip(*(sizes(*shape) for shape in shapes), strict=True)), strict=True
    ):
        assert largest <= bound <= 1.1 * largest


def test_one_shape_that_is_the_largest_in_both_ways_is_given_once():
    assert planner((np.array([9, 9]), np.array([8, 9]))).largest_shapes() == [(2, 9, 9)]


@pytest.mark.parametrize("r", [None, *range(1, 14)])
def test_pairs_of_query_and_key_are_counted_one_by_one(r):
    source, target = np.array([1, 4, 6]), np.array([5, 1, 2])
    seen = r or 100
    around = [
        (t, s) for n in source for t in range(n) for s in range(n) if s in range(t - seen // 2, t - seen // 2 + seen)
    ]
    past = [(t, s) for n in target for t in range(n) for s in range(n) if s in range(t - seen + 1, t + 1)]
    size = micro_batch_size(source, target, r)
    assert (size.encoder_pairs, size.decoder_pairs) == (len(around), len(past))
    assert size.cross_pairs == 1 * 5 + 4 * 1 + 6 * 2


def test_what_self_attention_is_restricted_to_changes_the_sizes_alone(lengths):
    full, restricted = (
        BatchPlanner(*lengths, BatchingConfig(4000, 4), seed=1, attention_window=r).update(3) for r in (None, 5)
    )
    assert plain(full) == plain(restricted)
    assert restricted[0].size.encoder_pairs < 5 * restricted[0].size.source_tokens < full[0].size.encoder_pairs


BOUNDS = np.array([0, 1000, 1300, 3000])
"""Of three sources."""


def mixed(lengths: tuple[np.ndarray, np.ndarray], *stages: Stage, tokens: int = 4000) -> BatchPlanner:
    return BatchPlanner(
        *lengths, BatchingConfig(tokens, 4), 1, mixture=Mixture(BOUNDS, list(stages), np.ones(3), np.zeros(3, int))
    )


def occurrences(plan: BatchPlanner, updates: range) -> np.ndarray:
    """How often each pair occurs in these updates."""
    indices = [batch.indices for number in updates for batch in plan.update(number)]
    return np.bincount(np.concatenate(indices), minlength=BOUNDS[-1])


def test_a_mixture_of_one_copy_each_is_a_pass_over_all(lengths):
    for batches in passes(mixed(lengths, Stage(0, np.ones(3))), 2):
        assert sorted(np.concatenate([batch.indices for batch in batches])) == list(range(3000))


def test_in_a_pass_each_source_has_its_copies_and_its_pairs_occur_equally_often(lengths):
    copies = np.array([1.0, 3.5, 1.25])
    plan = mixed(lengths, Stage(0, copies))
    together = np.zeros(3000, int)
    for batches in passes(plan, 4):
        found = np.bincount(np.concatenate([batch.indices for batch in batches]), minlength=3000)
        for source, size in enumerate(np.diff(BOUNDS)):
            own = found[BOUNDS[source] : BOUNDS[source + 1]]
            assert abs(own.sum() - copies[source] * size) <= 1
        together += found
    for source, copy in enumerate(copies):
        own = together[BOUNDS[source] : BOUNDS[source + 1]]
        assert own.mean() == pytest.approx(4 * copy, rel=0.01)
        assert own.max() - own.min() <= 4  # rounding, at most one a pass, in a group with few pairs
        assert np.quantile(own, 0.95) - np.quantile(own, 0.05) <= 2


@pytest.mark.parametrize("updates", [2000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_shares_of_many_updates_are_those_that_were_asked_for(lengths, updates):
    shares = np.array([0.2, 0.5, 0.3])
    copies = shares / np.diff(BOUNDS)
    found = occurrences(mixed(lengths, Stage(0, copies / copies.min())), range(updates))
    realised = np.add.reduceat(found, BOUNDS[:-1]) / found.sum()
    assert realised == pytest.approx(shares, abs=4 / updates)


def test_a_source_is_used_in_its_stages_alone(lengths):
    plan = mixed(
        lengths, Stage(0, np.array([1.0, 0, 0])), Stage(7, np.array([1.0, 4, 0])), Stage(20, np.array([0, 0, 1.0]))
    )
    used = [np.add.reduceat(occurrences(plan, range(n, n + 1)), BOUNDS[:-1]) > 0 for n in range(25)]
    assert all((~row[1:]).all() for row in used[:7])
    assert not any(row[2] for row in used[7:20])
    assert sum(row[1] for row in used[7:20]) > 10
    assert all(row.tolist() == [False, False, True] for row in used[20:])


def test_an_update_of_a_mixture_is_a_function_of_seed_and_number_alone(lengths):
    stages = Stage(0, np.array([1.0, 2.5, 0])), Stage(9, np.ones(3))
    one = mixed(lengths, *stages)
    in_order = [plain(one.update(number)) for number in range(30)]
    for number in reversed(range(30)):
        assert plain(mixed(lengths, *stages).update(number)) == in_order[number]


def test_the_largest_shapes_are_those_of_all_stages(lengths):
    plan = mixed(lengths, Stage(0, np.array([1.0, 0, 0])), Stage(5, np.ones(3)))
    largest = max(rows * (source + target) for rows, source, target in plan.largest_shapes())
    for number in range(40):
        for batch in plan.update(number):
            widths = [int(side[batch.indices].max()) for side in lengths]
            assert len(batch.indices) * sum(widths) <= largest
