"""The learning rate of equation 3."""

from itertools import pairwise

import pytest

from nmt.training.module import noam


@pytest.mark.parametrize(
    ("step", "d_model", "warmup", "rate"),
    [
        (1, 512, 4000, 1.746928107421711e-07),
        (4000, 512, 4000, 6.987712429686843e-04),
        (16_000, 512, 4000, 3.493856214843422e-04),
        (100_000, 512, 4000, 1.397542485937369e-04),
        (4000, 1024, 4000, 4.941058844013092e-04),
        (1, 1, 1, 1.0),
        (2, 16, 4, 0.0625),
        (25, 16, 4, 0.05),
    ],
)
def test_rates_computed_by_hand(step, d_model, warmup, rate):
    assert noam(step, d_model, warmup) == pytest.approx(rate, rel=1e-9)


def test_the_rate_rises_until_warmup_and_falls_after_it():
    rates = [noam(step, 64, 50) for step in range(1, 200)]
    peak = rates.index(max(rates))
    assert peak + 1 == 50
    assert rates[: peak + 1] == sorted(rates[: peak + 1])
    assert rates[peak:] == sorted(rates[peak:], reverse=True)


def test_the_rate_is_linear_before_the_peak_and_an_inverse_square_root_after_it():
    assert noam(30, 64, 50) == pytest.approx(3 * noam(10, 64, 50))
    assert noam(50, 64, 50) == pytest.approx(50 * noam(1, 64, 50))
    assert noam(200, 64, 50) == pytest.approx(noam(50, 64, 50) / 2)


def test_the_rate_never_jumps():
    rates = [noam(step, 512, 4000) for step in range(3000, 5000)]
    assert max(abs(b - a) for a, b in pairwise(rates)) <= 1.01 * noam(1, 512, 4000)
