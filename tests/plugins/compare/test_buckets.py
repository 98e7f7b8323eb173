"""Scores and intervals of buckets, against sacreBLEU itself and a plain loop."""

import random
from collections import Counter
from statistics import fmean

import numpy as np
import pytest
import sacrebleu

from nmt.plugins.compare.buckets import Row, bucket_rows, fault_rows, look_closer, strongest
from nmt.plugins.compare.lines import FAULTS, Line, divisions
from nmt.plugins.compare.significance import Sampling
from nmt.translation import TestSet

SAMPLING = Sampling(seed=5, resamples=300)


def made_up(lines: int = 120) -> TestSet:
    """Every reference has a number, and some are longer."""
    generator = random.Random(2)
    words = ["das", "Haus", "ist", "alt", "neu", "und", "rot", "der", "Hund", "läuft"]
    references = [
        f"{' '.join(generator.choices(words, k=generator.randint(3, 14)))} {generator.randint(2, 99)}."
        for _ in range(lines)
    ]
    return TestSet("made up", [line.lower() for line in references], references)


def spoilt(lines: list[str], share: float, seed: int) -> list[str]:
    generator = random.Random(seed)
    return [" ".join("x" if generator.random() < share else word for word in line.split()) for line in lines]


def lines_of(test: TestSet) -> list[Line]:
    return [Line(*pair) for pair in zip(test.sources, test.references, strict=True)]


@pytest.mark.parametrize(("metric", "score"), [("bleu", sacrebleu.corpus_bleu), ("chrf", sacrebleu.corpus_chrf)])
def test_the_score_of_a_bucket_is_sacrebleus_of_its_lines(metric, score):
    test = made_up()
    systems = [[spoilt(test.references, 0.2, 1)], [spoilt(test.references, 0.3, 2), spoilt(test.references, 0.3, 3)]]
    (division, *_) = divisions(None, True)
    rows = list(bucket_rows(lines_of(test), systems, [division], metric, SAMPLING))
    assert sum(row["count"] for row in rows) == 120
    for row in rows:
        chosen = [i for i, line in enumerate(lines_of(test)) if division.labels[division.bucket(line)] == row["label"]]
        assert row["count"] == len(chosen)
        expected = [
            fmean(score([seed[i] for i in chosen], [[test.references[i] for i in chosen]]).score for seed in system)
            for system in systems
        ]
        assert row["values"] == pytest.approx(expected)
        assert row["gaps"][0]["value"] == pytest.approx(expected[1] - expected[0])
        assert row["gaps"][0]["low"] <= row["gaps"][0]["value"] <= row["gaps"][0]["high"]


def test_the_interval_of_a_fault_is_that_of_a_plain_bootstrap():
    test = made_up()
    broken = [line.rsplit(" ", 1)[0] if n % 4 == 0 else line for n, line in enumerate(test.references)]
    row, *_ = fault_rows(lines_of(test), [[test.references], [broken]], SAMPLING)
    assert (row["label"], row["count"], row["values"]) == ("a number is lost", 120, [0, 30])
    generator = random.Random(1)
    samples = [sum(generator.randrange(120) % 4 == 0 for _ in range(120)) for _ in range(3000)]
    low, high = np.quantile(samples, [0.025, 0.975])
    assert (row["gaps"][0]["low"], row["gaps"][0]["high"]) == pytest.approx((low, high), abs=3)
    assert row["gaps"][0]["significant"]
    assert not row["gaps"][0]["better"]


def test_a_lost_number_in_every_tenth_line_comes_out_first():
    test = made_up(400)
    good = spoilt(test.references, 0.1, 1)
    broken = [line.rsplit(" ", 1)[0] if n % 10 == 0 else line for n, line in enumerate(good)]
    rows = look_closer([[good], [broken]], test, None, "bleu", SAMPLING).rows
    (first, index), *_ = strongest(rows, 5)
    assert (first["label"], index) == ("a number is lost", 0)
    lost = sum(good[n].split()[-1] != "x" for n in range(0, 400, 10))
    assert first["values"][1] - first["values"][0] == lost


def test_a_bucket_that_is_as_bad_as_the_others_is_not_told_of():
    """The second system is worse everywhere alike, a third in long lines alone."""
    test = made_up(400)
    worse = spoilt(test.references, 0.3, 1)
    in_long = [bad if len(ref.split()) > 10 else ref for bad, ref in zip(worse, test.references, strict=True)]
    rows = look_closer([[test.references], [worse], [in_long]], test, None, "bleu", SAMPLING).rows
    buckets = [row for row in rows if row["unit"] == "BLEU"]
    assert all(row["gaps"][0]["significant"] for row in buckets)

    def told(system: int) -> list[Row]:
        return [row for row, index in strongest(buckets, 10) if index == system]

    assert len(told(0)) < len(told(1))
    assert told(1)[0]["title"] == "Words of the source"


def test_the_same_translations_differ_nowhere_and_few_lines_show_nothing():
    test = made_up(50)
    texts = spoilt(test.references, 0.3, 1)
    rows = look_closer([[texts], [texts]], test, None, "ter", SAMPLING).rows
    assert {(gap["value"], gap["low"], gap["high"]) for row in rows for gap in row["gaps"]} == {(0, 0, 0)}
    few = TestSet("made up", ["a"] * 49, ["Das Haus 5."] * 49)
    rows = look_closer([[few.references], [["x"] * 49]], few, None, "chrf", SAMPLING).rows
    assert not any(gap["significant"] for row in rows for gap in row["gaps"])


@pytest.mark.parametrize(
    ("fault", "source", "reference", "hypothesis", "expected"),
    [
        ("a number is lost", "In 1999 it was 3.", "1999 war es 3.", "Damals war es 3.", True),
        ("a number is lost", "In 1999 it was 3.", "1999 war es 3.", "1999 war es 3", False),
        ("a number is lost", "It cost 1,000.50.", "Es kostete 1.000,50.", "Es kostete 1000.50.", False),
        ("a number is lost", "It has 2 of 2.", "Es hat 2 von 2.", "Es hat 2.", True),
        ("a number is lost", "It has two.", "Es hat 2.", "Es hat zwei.", False),  # the source has none
        ("a number is lost", None, "Es hat 2.", "Es hat zwei.", True),
        ("a number of its own", "It has two.", "Es hat zwei.", "Es hat 2 und 3.", True),
        ("a number of its own", "It has two.", "Es hat 2.", "Es hat 2.", False),
        ("words repeated", "a", "Ja, gut.", "Ja, ja, gut.", True),
        ("words repeated", "a", "Ja, ja, gut.", "Ja, ja, gut.", False),
        ("words repeated", "a", "Der Hund läuft.", "Der Hund der Hund läuft.", True),
        ("words repeated", "a", "Der Hund läuft.", "Der Hund und der Hund läuft.", False),
        ("under", "a", "Das ist ein Haus am See.", "Das ist", True),
        ("under", "a", "Das ist ein Haus am See.", "Das ist ein Haus am", False),
        ("under", "a", "Das ist ein Haus.", "", True),
        ("over", "a", "Das ist ein Haus.", "Das ist ein Haus am See im Wald.", True),
        ("over", "a", "Ja.", "Ja, gut.", False),
        ("only the case", "a", "Das Haus ist alt.", "Das haus ist alt.", True),
        ("only the case", "a", "Das Haus ist alt.", "Das Dach ist alt.", False),
        ("the source", "The house.", "Das Haus.", "The  house.", True),
        ("the source", "OK", "OK", "OK", False),
        ("the source", None, "OK", "OK", False),
    ],
)
def test_faults(fault, source, reference, hypothesis, expected):
    [has] = [each.has for each in FAULTS if each.title.startswith(fault)]
    assert has(Line(source, reference), hypothesis) == expected


def test_every_line_is_in_one_bucket_of_each_division():
    by_title = {division.title: division for division in divisions(Counter({"the": 100, "house": 9, "old": 10}), True)}
    rarest, capitals = "Its rarest word was in training", "Capitals in the source"
    for title, source, label in (
        ("Words of the source", "a b c d e f", "6-10"),
        ("Numbers in the source", "Room 5", "some"),
        ("Numbers in the source", "Room five", "none"),
        (capitals, "the house", "none"),
        (capitals, "The house", "the first letter alone"),
        (capitals, "The House", "others too"),
        (capitals, "STOP", "nothing but capitals"),
        (capitals, "", "none"),
        (rarest, "The the", "100 times or more"),
        (rarest, "The old", "10 to 99 times"),
        (rarest, "The House", "1 to 9 times"),
        (rarest, "the unseen", "never"),
    ):
        division = by_title[title]
        assert division.labels[division.bucket(Line(source, "x"))] == label
    assert len(divisions(None, False)) == len(by_title) - 1
