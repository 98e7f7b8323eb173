"""Which sentences make up update n."""

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
    stages = Stage(0, np.array([1.0, 2.5, 0])), Stage(9, np.ones(3))
    for make in (lambda seed=1: planner(lengths, seed=seed), lambda seed=1: mixed(lengths, *stages, seed=seed)):
        one, backwards = make(), make()
        in_order = [one.update(number) for number in range(40)]
        assert list(map(plain, in_order)) == [plain(backwards.update(n)) for n in reversed(range(40))][::-1]
        assert plain(make().update(39)) == plain(in_order[39]) != plain(make(2).update(39))
        largest = max(rows * (source + target) for rows, source, target in one.largest_shapes())
        for number, update in enumerate(in_order):
            assert [(batch.update, batch.micro_batch) for batch in update] == [(number, n) for n in range(4)]
            tokens = sum(lengths[1][batch.indices].sum() for batch in update)
            assert {batch.size.target_tokens for batch in update} == {tokens}
            for batch in update:
                assert len(batch.indices) * sum(int(side[batch.indices].max()) for side in lengths) <= largest


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


def test_the_length_of_a_micro_batch_says_nothing_about_the_next():
    lengths = lengths_like_text(100_000)
    widths = [lengths[1][batch.indices].max() for batch in passes(planner(lengths), 1)[0]]
    ranks = np.argsort(np.argsort(widths))
    assert abs(np.corrcoef(ranks[1:], ranks[:-1])[0, 1]) < 4 / np.sqrt(len(ranks))


@pytest.mark.parametrize("pairs", [1, 2, 5])
def test_a_corpus_of_fewer_micro_batches_than_an_update_repeats_within_it(pairs):
    lengths = np.full(pairs, 6), np.full(pairs, 4)
    plan = planner(lengths, tokens=80, micro_batches=8)
    seen = np.concatenate([batch.indices for number in range(5) for batch in plan.update(number)])
    assert np.bincount(seen, minlength=pairs).min() >= 40 // pairs
    assert plan.update(3)[0].size.target_tokens == 8 * 4


def test_a_sentence_longer_than_a_micro_batch_is_refused_with_what_to_change():
    with pytest.raises(
        NMTError,
        match=r"tokens_per_update=80.*batching\.micro_batches=8.*10.*11.*raise batching\.tokens.*micro_batches",
    ):
        planner((np.array([3, 11]), np.array([3, 5])), tokens=80, micro_batches=8)


@pytest.mark.parametrize(("micro_batches", "padding"), [(8, 0.05), (1, 0.12)])
def test_text_is_batched_full_and_with_little_padding(micro_batches, padding):
    source, target = lengths_like_text(200_000)
    batches = passes(planner((source, target), 25_000, micro_batches), 1)[0]
    widths = np.array([[side[batch.indices].max() for side in (source, target)] for batch in batches])
    rows = np.array([len(batch.indices) for batch in batches])
    padded = (rows[:, None] * widths).sum()
    assert 1 - (source.sum() + target.sum()) / padded < padding
    assert (rows * widths.max(axis=1)).mean() > 0.93 * 25_000 / micro_batches


@pytest.mark.parametrize(("tokens", "micro_batches"), [(4000, 4), (25_000, 8), (600, 1), (6000, 1)])
def test_no_micro_batch_of_any_pass_is_larger_than_the_largest_shapes_nor_are_these_much_larger(
    lengths, tokens, micro_batches
):
    plan = planner(lengths, tokens, micro_batches)

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


@pytest.mark.parametrize("r", [None, 1, 2, 3, 8])
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


BOUNDS = np.array([0, 1000, 1300, 3000])
"""Of three sources."""


def mixed(lengths: tuple[np.ndarray, np.ndarray], *stages: Stage, seed: int = 1) -> BatchPlanner:
    mixture = Mixture(BOUNDS, list(stages), np.ones(3))
    return BatchPlanner(*lengths, BatchingConfig(4000, 4), seed, mixture=mixture)


def rows_of_passes(plan: BatchPlanner, number: int) -> list[np.ndarray]:
    return [np.concatenate([batch.indices for batch in batches]) for batches in passes(plan, number)]


def occurrences(plan: BatchPlanner, updates: range) -> np.ndarray:
    """How often each pair occurs in these updates."""
    indices = [batch.indices for number in updates for batch in plan.update(number)]
    return np.bincount(np.concatenate(indices), minlength=BOUNDS[-1])


def test_in_a_pass_each_source_has_its_copies_and_its_pairs_occur_equally_often(lengths):
    assert all((np.bincount(rows) == 1).all() for rows in rows_of_passes(mixed(lengths, Stage(0, np.ones(3))), 2))
    copies = np.array([1.0, 3.5, 1.25])
    plan = mixed(lengths, Stage(0, copies))
    together = np.zeros(3000, int)
    for rows in rows_of_passes(plan, 4):
        counts = np.bincount(rows, minlength=3000)
        for source, size in enumerate(np.diff(BOUNDS)):
            part = counts[BOUNDS[source] : BOUNDS[source + 1]]
            assert abs(part.sum() - copies[source] * size) <= 1
        together += counts
    for source, copy in enumerate(copies):
        part = together[BOUNDS[source] : BOUNDS[source + 1]]
        assert part.mean() == pytest.approx(4 * copy, rel=0.01)
        assert part.max() - part.min() <= 4  # rounding, at most one a pass, in a group with few pairs
        assert np.quantile(part, 0.95) - np.quantile(part, 0.05) <= 2


def test_a_source_is_used_in_its_stages_alone(lengths):
    plan = mixed(
        lengths, Stage(0, np.array([1.0, 0, 0])), Stage(7, np.array([1.0, 4, 0])), Stage(20, np.array([0, 0, 1.0]))
    )
    used = [np.add.reduceat(occurrences(plan, range(n, n + 1)), BOUNDS[:-1]) > 0 for n in range(25)]
    assert all((~row[1:]).all() for row in used[:7])
    assert not any(row[2] for row in used[7:20])
    assert sum(row[1] for row in used[7:20]) > 10
    assert all(row.tolist() == [False, False, True] for row in used[20:])
