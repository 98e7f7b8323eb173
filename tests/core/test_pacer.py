"""The number of updates with `minutes=` follows the speed of the machine, on a simulated clock."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from nmt.training import time_limit as limit
from nmt.training.pacer import Pacer

LIMIT = 180.0
PLANNED = 1000
AVERAGING = 3  # the final score and the averages take as long as this many validations


@dataclass
class Machine:
    """A machine on which an update takes `cost(share)` seconds after this share of LIMIT."""

    cost: Callable[[float], float]
    spent: float = 0.0

    def work(self, updates: float) -> None:
        self.spent += updates * self.cost(self.spent / LIMIT)


def train(machine: Machine, pacer: Pacer, validation: float, begin: int = 0, stop: int = 0) -> int:
    """Train until the end that the pacer chooses, or until update `stop`; return the last update.

    A validation takes as long as `validation` updates.
    """
    end = PLANNED
    step = begin
    while step < end and (not stop or step < stop):
        pacer.begin_update(machine.spent)
        machine.work(1)
        step += 1
        pacer.end_update(machine.spent, step)
        if step < end:
            end = pacer.new_end(end, step, machine.spent) or end
        if step % pacer.validate_every == 0 and step < end:
            machine.work(validation)
    if step == end:
        machine.work((1 + AVERAGING) * validation)
    return step


def alternating(share: float) -> float:
    """Another program that comes and goes five times."""
    return 0.06 if int(share * 10) % 2 == 0 else 0.4


COSTS = {
    "steady": lambda share: 0.15,
    "slower from the start": lambda share: 1.0,
    "faster from the start": lambda share: 0.01,
    "slower": lambda share: 0.1 if share < 0.4 else 0.8,
    "faster": lambda share: 0.8 if share < 0.4 else 0.1,
    "slower for a while": lambda share: 0.8 if 0.3 < share < 0.6 else 0.1,
    "slower at the end": lambda share: 0.15 if share < 0.8 else 0.3,
    "faster at the end": lambda share: 0.3 if share < 0.8 else 0.15,
    "comes and goes": alternating,
}


@pytest.mark.parametrize("validation", [0.1, 5.0], ids=["fast validation", "slow validation"])
@pytest.mark.parametrize("name", COSTS)
def test_a_run_ends_within_ten_percent_of_its_time(name, validation, monkeypatch):
    machine = Machine(COSTS[name], spent=0.05 * LIMIT)  # libraries load, and trials choose a model
    monkeypatch.setattr(limit, "VALIDATION_SECONDS", 0.0)
    monkeypatch.setattr(limit, "VALIDATION_UPDATES", validation)
    pacer = Pacer(LIMIT, validate_every=PLANNED // 4, save_every=PLANNED // 25)
    train(machine, pacer, validation)
    assert machine.spent == pytest.approx(LIMIT, rel=0.1)


def test_a_resumed_run_counts_the_time_before_it_was_stopped(monkeypatch):
    monkeypatch.setattr(limit, "VALIDATION_SECONDS", 1.0)
    machine = Machine(COSTS["slower"])
    assert train(machine, Pacer(LIMIT, 250, 40), 5.0, stop=300) == 300
    assert 0.1 < machine.spent / LIMIT < 0.5
    train(machine, Pacer(LIMIT, 250, 40), 5.0, begin=300)
    assert machine.spent == pytest.approx(LIMIT, rel=0.1)


def test_an_assumed_validation_takes_longer_on_a_slow_machine():
    assert limit.assumed_validation(0.01) == limit.VALIDATION_SECONDS
    assert limit.assumed_validation(2.0) == 2.0 * limit.VALIDATION_UPDATES
    slow = Machine(lambda share: 2.0)
    train(slow, Pacer(LIMIT, 10**6, 10**6), validation=8.0)
    assert slow.spent == pytest.approx(LIMIT, rel=0.1)


def test_a_run_without_time_left_ends_after_the_next_update():
    pacer = Pacer(LIMIT, 250, 40)
    pacer.begin_update(0.0)
    pacer.end_update(1.0, 1)
    assert pacer.new_end(PLANNED, 1, spent=LIMIT) == 2
    assert pacer.new_end(PLANNED, 1, spent=math.inf) == 2
