"""Scores and intervals of buckets, against sacreBLEU itself and a plain loop."""

import random
from statistics import fmean

import numpy as np
import pytest
import sacrebleu

from nmt.plugins.compare.buckets import Row, bucket_rows, fault_rows, look_closer, strongest
from nmt.plugins.compare.lines import Line, divisions
from nmt.plugins.compare.significance import Sampling
from nmt.plugins.compare.systems import TestSet

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
    rows = bucket_rows(lines_of(test), systems, [division], metric, SAMPLING)
    assert sum(row.count for row in rows) == 120
    for row in rows:
        chosen = [i for i, line in enumerate(lines_of(test)) if division.labels[division.bucket(line)] == row.label]
        assert row.count == len(chosen)
        expected = [
            fmean(score([seed[i] for i in chosen], [[test.references[i] for i in chosen]]).score for seed in system)
            for system in systems
        ]
        assert row.values == pytest.approx(expected)
        assert row.gaps[0].value == pytest.approx(expected[1] - expected[0])
        assert row.gaps[0].low <= row.gaps[0].value <= row.gaps[0].high


def test_the_interval_of_a_fault_is_that_of_a_plain_bootstrap():
    test = made_up()
    broken = [line.rsplit(" ", 1)[0] if n % 4 == 0 else line for n, line in enumerate(test.references)]
    row = fault_rows(lines_of(test), [[test.references], [broken]], SAMPLING)[0]
    assert (row.label, row.count, row.values) == ("a number is lost", 120, [0, 30])
    generator = random.Random(1)
    samples = [sum(generator.randrange(120) % 4 == 0 for _ in range(120)) for _ in range(3000)]
    low, high = np.quantile(samples, [0.025, 0.975])
    assert (row.gaps[0].low, row.gaps[0].high) == pytest.approx((low, high), abs=3)
    assert row.gaps[0].significant
    assert not row.gaps[0].better


def test_a_lost_number_in_every_tenth_line_comes_out_first():
    test = made_up(400)
    good = spoilt(test.references, 0.1, 1)
    broken = [line.rsplit(" ", 1)[0] if n % 10 == 0 else line for n, line in enumerate(good)]
    rows = look_closer([[good], [broken]], test, None, "bleu", SAMPLING).rows
    (first, index), *_ = strongest(rows, 5)
    assert (first.label, index) == ("a number is lost", 0)
    lost = sum(good[n].split()[-1] != "x" for n in range(0, 400, 10))
    assert first.values[1] - first.values[0] == lost


def test_a_bucket_that_is_as_bad_as_the_others_is_not_told_of():
    """The second system is worse everywhere alike, a third in long lines alone."""
    test = made_up(400)
    worse = spoilt(test.references, 0.3, 1)
    in_long = [bad if len(ref.split()) > 10 else ref for bad, ref in zip(worse, test.references, strict=True)]
    rows = look_closer([[test.references], [worse], [in_long]], test, None, "bleu", SAMPLING).rows
    buckets = [row for row in rows if row.unit == "BLEU"]
    assert all(row.gaps[0].significant for row in buckets)

    def told(system: int) -> list[Row]:
        return [row for row, index in strongest(buckets, 10) if index == system]

    assert len(told(0)) < len(told(1))
    assert told(1)[0].title == "Words of the source"


def test_the_same_translations_differ_nowhere():
    test = made_up(50)
    texts = spoilt(test.references, 0.3, 1)
    rows = look_closer([[texts], [texts]], test, None, "ter", SAMPLING).rows
    assert strongest(rows, 5) == []
    assert {(gap.value, gap.low, gap.high) for row in rows for gap in row.gaps} == {(0, 0, 0)}


def test_a_bucket_of_a_few_lines_shows_nothing():
    test = TestSet("made up", ["a"] * 49, ["Das Haus 5."] * 49)
    rows = look_closer([[test.references], [["x"] * 49]], test, None, "chrf", SAMPLING).rows
    assert not any(gap.significant for row in rows for gap in row.gaps)
