"""Quantiles of log P per token, from a histogram."""

import random
from collections import Counter

import pytest

from nmt.translation import bin_of, notes_in
from nmt.translation.score_counts import LOWEST, quantiles_of


@pytest.mark.parametrize("seed", range(20))
def test_quantiles_are_those_of_the_values_within_a_bin(seed):
    draw = random.Random(seed)
    values = [-draw.expovariate(0.3) for _ in range(draw.choice([1, 2, 10, 1000]))]
    # In two jobs, as of two parts.
    middle = len(values) // 2
    counts = Counter(map(bin_of, values[:middle])) + Counter(map(bin_of, values[middle:]))
    for share, edge in quantiles_of(counts).items():
        assert sum(value < edge for value in values) >= share * len(values)
        assert sum(value < edge - 0.1 for value in values) < share * len(values)


def test_very_low_values_share_a_bin():
    counts = Counter(map(bin_of, [-1e9, LOWEST - 1.0, LOWEST - 0.01]))
    assert len(counts) == 1
    assert not notes_in(counts)


def test_without_values_there_are_no_quantiles():
    assert quantiles_of({"pairs": 0, "kept": 0}) == {}
