"""`nmt score qe=true`: the probabilities of given translations."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.commands import compose
from nmt.config import NMTError
from tests.plugins.quality.conftest import write


@pytest.fixture
def estimated(nmt: Callable, calibrated: Path, here: Path) -> Callable:
    """A function that estimates translations of sources."""

    def run(sources: list[str], hypotheses: list[str], *words: str):
        write(here / "s", sources)
        write(here / "h", hypotheses)
        command = ["score", "h", "source=s", f"run={calibrated}", "qe=true", "threads=1"]
        outcome = nmt(*command, *words)
        assert outcome.code == 0, outcome.err
        return outcome

    return run


def test_lines_that_are_no_translations_are_reported(estimated):
    outcome = estimated(["va so", "ka", "va", ""], ["⚠ va so", "", "va", ""])
    assert "1 hypothesis begins with the mark `⚠`" in outcome.err
    assert "1 of 4 hypotheses is empty" in outcome.err
    rows = estimated(["va so", "ka"], ["1\t-0.5\tva so", "2\t-1.5\tka"])
    assert "the hypotheses are rows of `nmt translate format=tsv`" in rows.err
    assert "notice" not in estimated(["va so"], ["va so"]).err


def test_blank_pairs_are_certain_as_in_translations_and_do_not_count(estimated, nmt, calibrated):
    outcome = estimated(["va so", "", " "], ["va so", "", ""])
    first, *blank = map(float, outcome.out.splitlines())
    assert blank == [1.0, 1.0]
    assert f"lines: 1, mean probability {first:.4f}" in outcome.err
    assert "mean probability" not in estimated([""], [""]).err
    words = ["translate", "s", f"run={calibrated}", "engine=torch", "format=jsonl"]
    assert '"probability": 1.0' in nmt(*words).out
    # The model has something to judge on one of the sides.
    added, lost = map(float, estimated(["", "va so"], ["va so", ""]).out.splitlines())
    assert max(added, lost) < 1


@pytest.mark.parametrize("minimum", ["0.5", "-4"])
def test_minimum_belongs_to_pairs_that_are_filtered(nmt, calibrated, here, minimum):
    write(here / "s", ["va so"])
    command = ["score", "s", "source=s", f"run={calibrated}", "qe=true", f"minimum={minimum}"]
    nmt(*command).refused(f"minimum={minimum}: ", "filters pairs by log P per token", "omit it")


def test_a_refused_value_comes_with_the_advice_of_its_key():
    with pytest.raises(
        NMTError, match=r"between -10,000 and 0, or null; it filters pairs"
    ) as error:
        compose("score", ["minimum=0.5"])
    assert "\n" not in str(error.value)
