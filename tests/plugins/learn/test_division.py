"""Held-out corrections."""

import random

import pytest

from nmt.errors import NMTError
from nmt.plugins.learn.division import (
    check_kinds,
    divide,
    groups_of_near_copies,
    kinds_of,
    normalized,
)
from nmt.plugins.learn.reading import Correction
from nmt.plugins.learn.rejection import without_surplus

WORDS = [
    "alpha",
    "beta",
    "gamma",
    "delta",
    "epsilon",
    "zeta",
    "eta",
    "theta",
    "iota",
    "kappa",
    "lambda",
    "my",
    "ny",
    "xi",
]


def corrections_of(count: int, seed: int = 1) -> list[Correction]:
    generator = random.Random(seed)
    corrections = []
    for number in range(count):
        source = " ".join(generator.choices(WORDS, k=8))
        corrections.append(Correction(source, source.upper(), "a.tsv", f"line {number + 1}"))
    return corrections


def sources_of(corrections: list[Correction]) -> set[str]:
    return {normalized(correction.source) for correction in corrections}


def test_each_correction_is_in_one_part_and_a_fifth_is_held_out():
    corrections = corrections_of(1000)
    division = divide(corrections)
    parts = [division.training, division.tuning, division.held_out]
    joined = [item for part in parts for item in part]
    assert sorted(joined, key=str) == sorted(corrections, key=str)
    assert not sources_of(division.training) & sources_of(division.held_out)
    assert not sources_of(division.tuning) & sources_of(division.held_out)
    assert 150 < len(division.held_out) < 250


def test_few_corrections_hold_out_ten():
    division = divide(corrections_of(20))
    assert len(division.held_out) >= 10
    assert division.training
    assert len(division.tuning) >= 5


def test_near_copies_are_in_the_same_part():
    corrections = corrections_of(200)
    copies = []
    for correction in corrections:
        _, *rest = correction.source.split()
        near = " ".join(["Omega", *rest]) + "!"
        copies.append(Correction(near, near, "b.tsv", "line 1"))
    division = divide([*corrections, *copies])
    held_out = {item.source for item in division.held_out}
    for correction, copy in zip(corrections, copies, strict=True):
        assert (correction.source in held_out) == (copy.source in held_out)


def copies_of(correction: Correction, count: int) -> list[Correction]:
    """Near-copies, which differ in their first word."""
    _, *rest = correction.source.split()
    copies = []
    for number in range(count):
        name = "".join(chr(ord("a") + int(digit)) for digit in f"{number:04}")
        source = " ".join([name, *rest])
        copies.append(Correction(source, source.upper(), "b.tsv", f"line {number + 1}"))
    return copies


def test_near_copies_count_once_in_each_part():
    corrections = corrections_of(20)
    copies = []
    for correction in corrections:
        copies += copies_of(correction, 9)
    division = divide(copies)
    for part, least in ((division.held_out, 10), (division.tuning, 5), (division.training, 1)):
        assert len(kinds_of(part)) >= least


def test_at_most_ten_near_copies_remain():
    [one, other] = corrections_of(2)
    few = copies_of(other, 10)
    many = copies_of(one, 1000)
    sifted = without_surplus([*many, *few])
    assert set(few) < set(sifted.usable)
    assert len(set(sifted.usable) & set(many)) == 10
    assert {reason for _, reason in sifted.rejected} == {"too many near-copies"}
    # The same ones in any order.
    again = without_surplus([*few, *reversed(many)])
    assert set(again.usable) == set(sifted.usable)


def test_corrections_of_too_few_kinds_are_refused():
    copies = copies_of(corrections_of(1)[0], 50)
    with pytest.raises(NMTError, match=r"50 usable corrections of 1 kind \(.*but 20 kinds"):
        check_kinds(copies, 20)
    mixed = [*copies, *corrections_of(18, seed=2)]
    with pytest.raises(NMTError, match="68 usable corrections of 19 kinds"):
        check_kinds(mixed, 20)
    check_kinds(mixed, 19)
    with pytest.raises(NMTError, match="18 usable corrections, but 20 are needed"):
        check_kinds(corrections_of(18), 20)


def test_more_corrections_do_not_move_earlier_ones():
    corrections = corrections_of(600)
    before = divide(corrections[:300])
    after = divide(corrections)
    assert sources_of(before.held_out) <= sources_of(after.held_out)
    assert not sources_of(before.training) & sources_of(after.held_out)


def test_the_order_of_corrections_does_not_matter():
    corrections = corrections_of(300)
    shuffled = random.Random(2).sample(corrections, len(corrections))
    assert sources_of(divide(corrections).held_out) == sources_of(divide(shuffled).held_out)


def test_groups_of_near_copies():
    sources = [
        "Open the file now please",
        "open the FILE now, please!",
        "Open the folder now please",
        "Open the file now",
        "Close the window in the room",
        "ab",
        "ac",
        "17",
        "18",
    ]
    groups = sorted(map(sorted, groups_of_near_copies(sources)))
    assert groups == [[0, 1, 2, 3], [4], [5], [6], [7], [8]]
