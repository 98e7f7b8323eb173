"""Learning rates computed by hand."""

from math import cos, pi

import pytest

from nmt.config import OptimConfig
from nmt.training.module import learning_rate, noam


@pytest.mark.parametrize(
    ("step", "d_model", "warmup", "rate"),
    [
        (1, 512, 4000, 1.746928107421711e-07),
        (4000, 512, 4000, 6.987712429686843e-04),
        (16_000, 512, 4000, 3.493856214843422e-04),
        (4000, 1024, 4000, 4.941058844013092e-04),
        (1, 1, 1, 1.0),
        (2, 16, 4, 0.0625),
        (25, 16, 4, 0.05),
    ],
)
def test_rates_of_equation_3_computed_by_hand(step, d_model, warmup, rate):
    assert noam(step, d_model, warmup) == pytest.approx(rate, rel=1e-9)


def rates(**keys: object) -> list[float]:
    optim = OptimConfig(warmup=4, decay_steps=10 if keys.get("schedule") in ("linear", "cosine") else None, **keys)
    return [learning_rate(optim, 64, step) for step in range(1, 11)]


def test_every_schedule_rises_alike_to_the_same_height():
    papers = rates()
    other = rates(learning_rate=3e-4)
    assert max(other) == other[3] == pytest.approx(3e-4)
    assert other == pytest.approx([rate * 3e-4 / papers[3] for rate in papers])
    for schedule in ("constant", "linear", "cosine"):
        assert rates(schedule=schedule)[:4] == pytest.approx(papers[:4])
        assert rates(schedule=schedule, factor=2)[:4] == pytest.approx([2 * rate for rate in papers[:4]])


def test_schedules_computed_by_hand():
    assert rates(schedule="constant", learning_rate=1.0)[3:] == [1.0] * 7
    assert rates(schedule="linear", learning_rate=1.0)[3:] == pytest.approx([n / 7 for n in range(7, 0, -1)])
    halfway = rates(schedule="cosine", learning_rate=1.0)
    assert halfway[3] == 1.0
    assert halfway[6] + halfway[7] == pytest.approx(1.0)  # symmetric about the middle, 7.5
    assert halfway[9] == pytest.approx((1 + cos(pi * 6 / 7)) / 2)
