"""How long a training takes is said before it begins, and changes nothing of it."""

import re
from pathlib import Path

import pytest
import torch

from nmt.files import duration
from nmt.training import trials

SHORT = ("run=run", "trainer.max_steps=20", "validation.every_steps=20", "checkpoints.every_steps=20")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "2 seconds"),
        (91, "2 minutes"),
        (91 * 60, "1.5 hours"),
        (12 * 3600, "12 hours"),
        (3 * 86_400, "3.0 days"),
    ],
)
def test_durations_are_rough(seconds, words):
    assert duration(seconds) == words


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "WORTHWHILE_UPDATES", 1)
    monkeypatch.setattr(trials, "TIMED_SECONDS", 0.05)


@pytest.mark.usefixtures("at_once")
def test_it_is_said_and_leaves_no_trace(toy, nmt, monkeypatch, training_state, metrics):
    said = nmt("train", *toy, *SHORT).err
    assert re.search(r"^about \d+ seconds for 20 updates, \S+ a second$", said, flags=re.M), said
    monkeypatch.setattr(trials, "WORTHWHILE_UPDATES", 1000)
    assert "about" not in nmt("train", *toy, *SHORT, "run=other").err
    torch.testing.assert_close(*(training_state(Path(run)) for run in ("run", "other")), rtol=0, atol=0)
    assert metrics(Path("run")) == metrics(Path("other"))


@pytest.mark.usefixtures("at_once")
def test_a_training_of_days_is_told_of_a_shorter_one(toy, nmt, monkeypatch):
    monkeypatch.setattr(trials, "LONG_SECONDS", 0.0)
    assert "experiment=laptop" in nmt("train", *toy, *SHORT).err
    said = nmt("train", *toy, *SHORT, "run=timed", "trainer.max_time=1s", "trainer.max_steps=100000").err
    assert "trainer.max_time stops it after 2 seconds" in said
    assert "experiment=laptop" not in said
