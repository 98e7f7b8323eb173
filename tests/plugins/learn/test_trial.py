"""The decision to deliver a model, and the choice of the strength."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nmt.plugins.learn.reading import Correction
from nmt.plugins.learn.training import between, updates_for
from nmt.plugins.learn.trial import (
    CandidateLosses,
    Difference,
    Rules,
    choose,
    problem_of,
    test_difference as difference_of,
    worse_lines,
)
from tests.conftest import write_random_model

RULES = Rules(metric="chrf", alpha=0.05, margin=0.05, seed=1, language="de")


def difference(before: float, after: float, *p: float) -> Difference:
    return Difference(before, after, "signature", dict(zip(("bs", "ar"), p, strict=False)))


@pytest.mark.parametrize(
    ("held_out", "general", "increase", "problem"),
    [
        (difference(40, 50, 0.01, 0.01), difference(60, 61, 0.01, 0.01), 0.0, ""),
        (difference(40, 50, 0.01, 0.01), difference(60, 59, 0.04, 0.3), 0.04, ""),
        (difference(40, 50, 0.01, 0.01), difference(60, 60), 0.0, ""),
        (difference(50, 40, 0.01, 0.01), difference(60, 60), 0.0, "are not better"),
        (difference(50, 50), difference(60, 60), 0.0, "are not better"),
        (difference(40, 50, 0.01, 0.06), difference(60, 60), 0.0, "not significantly better"),
        (
            difference(40, 50, 0.01, 0.01),
            difference(60, 55, 0.01, 0.04),
            0.0,
            "general text is significantly worse",
        ),
        (difference(40, 50, 0.01, 0.01), difference(60, 60), 0.051, "loss on general text rises"),
    ],
)
def test_a_model_is_delivered_only_if_it_is_better_and_forgets_nothing(
    held_out, general, increase, problem
):
    found = problem_of(held_out, general, increase, RULES)
    assert problem in found
    assert bool(problem) == bool(found)


def test_a_lower_significance_level_delivers_no_model_that_a_higher_one_refuses():
    helps = difference(40, 50, 0.001, 0.001)
    harms = difference(60, 59, 0.03, 0.02)
    for alpha in (0.05, 0.01):
        problem = problem_of(helps, harms, 0.0, replace(RULES, alpha=alpha))
        assert "general text is significantly worse" in problem
    assert not problem_of(helps, difference(60, 59, 0.08, 0.07), 0.0, RULES)
    # A higher level finds more losses.
    assert problem_of(helps, difference(60, 59, 0.08, 0.07), 0.0, replace(RULES, alpha=0.1))


def test_the_difference_of_two_systems():
    references = [f"das ist der Satz Nummer {number}" for number in range(60)]
    worse = [line.replace("Satz", "sentence") for line in references]
    result = difference_of(worse, references, references, RULES)
    assert result.before < result.after == 100
    assert result.is_significant(0.05)
    assert set(result.p) == {"bs", "ar"}
    assert "ar:10000|seed:1" in result.signature
    same = difference_of(worse, worse, references, RULES)
    assert not same.is_significant(0.05)


def test_the_lines_that_got_worse_are_listed_worst_first():
    corrections = [Correction(source, "gut so", "a.tsv", "line 1") for source in "abc"]
    before = ["gut so", "gut so", "xx"]
    after = ["gut xx", "yy", "gut so"]
    lines = worse_lines(corrections, before, after)
    assert [line.correction.source for line in lines] == ["b", "a"]


def candidate(strength: float, tuning: float, general: float) -> CandidateLosses:
    return CandidateLosses(strength, Path(), tuning, general)


@pytest.mark.parametrize(
    ("general", "strength"),
    [((2.0, 2.0, 2.0), 1.0), ((2.0, 2.03, 2.05), 0.5), ((2.2, 2.3, 2.4), 0.25)],
)
def test_the_strongest_model_that_hardly_forgets_is_chosen(general, strength):
    candidates = []
    for number, value in zip((0.25, 0.5, 1.0), general, strict=True):
        candidates.append(candidate(number, 5 - number, value))
    assert choose(candidates, 2.0, 0.05).strength == strength


def test_a_model_between_two(here: Path):
    old = write_random_model(here / "old")
    torch.manual_seed(7)
    new = write_random_model(here / "new")
    with torch.no_grad():
        for parameter in new.parameters():
            parameter.add_(1)
    half = between(old, new, 0.5).state_dict()
    for name, weights in old.state_dict().items():
        torch.testing.assert_close(half[name], (weights + new.state_dict()[name]) / 2)
    whole = between(old, new, 1.0).state_dict()
    assert all(torch.equal(whole[name], weights) for name, weights in new.state_dict().items())


@pytest.mark.parametrize(("tokens", "updates"), [(10, 60), (10_000, 240), (10**6, 1500)])
def test_the_number_of_updates(tokens, updates):
    assert updates_for(tokens, passes=12, share=0.25) == updates
