"""Ticks are round and few, scales meet both ends, numbers read as people write them."""

import math
import random
from itertools import pairwise

import pytest

from nmt.report.scales import Scale, compact, linear_ticks, log_ticks, number, thin

GENERATOR = random.Random(1)
RANGES = [
    (low := GENERATOR.uniform(-5, 5) * 10 ** GENERATOR.randint(-6, 6), abs(low) * 10 ** GENERATOR.uniform(-3, 5))
    for _ in range(60)
]


@pytest.mark.parametrize(("low", "span"), RANGES)
def test_linear_ticks_are_round_even_few_and_cover_the_range(low, span):
    ticks = linear_ticks(low, low + span)
    steps = [b - a for a, b in pairwise(ticks)]
    step = steps[0]
    assert steps == pytest.approx([step] * len(steps), rel=1e-6)
    assert round(step / 10 ** math.floor(math.log10(step * 1.000001)), 6) in (1, 2, 5)
    assert ticks[0] <= low + 1e-6 * step
    assert ticks[-1] >= low + span - 1e-6 * step
    assert 3 <= len(ticks) <= 7
    assert all(abs(tick / step - round(tick / step)) < 1e-6 for tick in ticks)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 10, [0, 2, 4, 6, 8, 10]),
        (2.9, 8.3, [2, 4, 6, 8, 10]),
        (0, 0.0067, [0, 0.002, 0.004, 0.006, 0.008]),
        (0, 100_000, [0, 20_000, 40_000, 60_000, 80_000, 100_000]),
    ],
)
def test_linear_ticks_as_one_would_choose_them(low, high, ticks):
    assert linear_ticks(low, high) == ticks


def test_a_range_without_extent_has_ticks_around_it():
    for value in (0, 3, -3):
        ticks = linear_ticks(value, value)
        assert ticks[0] < value < ticks[-1]


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (8, 4000, [10, 30, 100, 300, 1000, 3000]),
        (11, 320, [20, 50, 100, 200]),
        (3, 2e9, [100, 10**4, 10**6, 10**8]),
        (11.4, 12.6, [11.4, 11.6, 11.8, 12, 12.2, 12.4, 12.6]),
    ],
)
def test_log_ticks_as_one_would_choose_them(low, high, ticks):
    assert log_ticks(low, high) == pytest.approx(ticks)


@pytest.mark.parametrize(
    ("low", "factor"), [(10 ** GENERATOR.uniform(-8, 8), 10 ** GENERATOR.uniform(0.01, 40)) for _ in range(60)]
)
def test_log_ticks_are_few_and_within(low, factor):
    ticks = log_ticks(low, low * factor)
    assert ticks == sorted(ticks)
    assert 2 <= len(ticks) <= 8
    assert all(low <= tick <= low * factor for tick in ticks)


def test_a_range_of_no_extent_a_million_away_has_ticks():
    assert len(linear_ticks(1e6, 1e6 + 1e-8)) >= 3


@pytest.mark.parametrize("log", [False, True])
def test_a_scale_meets_both_ends_and_keeps_the_order(log):
    scale = Scale(2.0, 50.0, 190, 24, log)
    assert scale(2) == pytest.approx(190)
    assert scale(50) == pytest.approx(24)
    assert scale(10) == pytest.approx(190 - 166 * (math.log(5) / math.log(25) if log else 8 / 48))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (math.nan, "nan"),
        (math.inf, "inf"),
        (3.14159, "3.142"),
        (-0.5, "-0.5"),
        (12345.6, "12,346"),
        (0.0700, "0.07"),
        (0.00049, "4.9·10⁻⁴"),
        (3.3e18, "3.3·10¹⁸"),
        (100, "100"),
        (9999.9, "10,000"),
    ],
)
def test_numbers_read_as_people_write_them(value, text):
    assert number(value) == text


@pytest.mark.parametrize(("value", "text"), [(2500, "2,500"), (25_000, "25k"), (2_500_000, "2.5M"), (0.25, "0.25")])
def test_labels_of_ticks_are_short(value, text):
    assert compact(value) == text


def test_thinned_points_keep_peaks_ends_and_order():
    points = [(step, 1.0) for step in range(10_000)]
    points[1234], points[4321] = (1234, 99.0), (4321, -99.0)
    kept = thin(points, 100)
    assert len(kept) <= 102
    assert {(1234, 99.0), (4321, -99.0), points[0], points[-1]} <= set(kept)
    assert kept == sorted(kept)
    assert thin(points[:100], 100) == points[:100]
