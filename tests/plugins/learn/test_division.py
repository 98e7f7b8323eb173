"""Held-out corrections."""

import random

from nmt.plugins.learn.division import divide, groups_of_near_copies, normalized
from nmt.plugins.learn.reading import Correction

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
