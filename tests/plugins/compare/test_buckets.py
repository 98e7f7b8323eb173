"""Scores and intervals of buckets, against sacreBLEU itself and a plain loop."""

import random
from statistics import fmean
from types import SimpleNamespace

import numpy as np
import pytest
import sacrebleu

from nmt.plugins.compare import buckets
from nmt.plugins.compare.buckets import divisions, faults_of, look_closer
from nmt.plugins.compare.significance import Sampling
from nmt.translation import TestSet

SAMPLING = Sampling(seed=5, resamples=300)
LATIN = frozenset(["LATIN"])


def made_up(lines: int = 120) -> TestSet:
    """Every reference has a number, and some are longer."""
    generator = random.Random(2)
    words = ["das", "Haus", "ist", "alt", "neu", "und", "rot", "der", "Hund", "läuft"]
    texts = [" ".join(generator.choices(words, k=generator.randint(3, 14))) for _ in range(lines)]
    references = [f"{text} {generator.randint(32, 99)}." for text in texts]
    return TestSet("made up", [line.upper() for line in references], references)


def spoilt(lines: list[str], share: float, seed: int) -> list[str]:
    generator = random.Random(seed)
    return [" ".join("x" if generator.random() < share else word for word in line.split()) for line in lines]


@pytest.mark.parametrize(("metric", "score"), [("bleu", sacrebleu.corpus_bleu), ("chrf", sacrebleu.corpus_chrf)])
def test_the_score_of_a_bucket_is_sacrebleus_of_its_lines(metric, score):
    test = made_up()
    systems = [[spoilt(test.references, 0.2, 1)], [spoilt(test.references, 0.3, 2), spoilt(test.references, 0.3, 3)]]
    [(title, labels, indices)], _ = divisions(test)
    rows = [row for row in look_closer(systems, test, metric, SAMPLING).rows if row["title"] == title]
    assert sum(row["count"] for row in rows) == 120
    for row in rows:
        chosen = [i for i, index in enumerate(indices) if labels[index] == row["label"]]
        references = [[test.references[i] for i in chosen]]
        expected = [fmean(score([seed[i] for i in chosen], references).score for seed in system) for system in systems]
        assert (row["count"], row["values"]) == (len(chosen), pytest.approx(expected))
        (gap,) = row["gaps"]
        assert gap["value"] == pytest.approx(expected[1] - expected[0])
        assert gap["low"] <= gap["value"] <= gap["high"]


def test_the_interval_of_a_fault_is_that_of_a_plain_bootstrap():
    test = made_up()
    broken = [line.rsplit(" ", 1)[0] if n % 4 == 0 else line for n, line in enumerate(test.references)]
    rows = look_closer([[test.references], [broken]], test, "chrf", SAMPLING).rows
    (row,) = (row for row in rows if row["label"] == "flag number")
    assert (row["title"], row["count"], row["values"]) == ("Faults", 120, [0, 30])
    generator = random.Random(1)
    samples = [sum(generator.randrange(120) % 4 == 0 for _ in range(120)) for _ in range(3000)]
    (gap,) = row["gaps"]
    assert (gap["low"], gap["high"]) == pytest.approx(tuple(np.quantile(samples, [0.025, 0.975])), abs=3)
    assert (gap["significant"], gap["better"]) == (True, False)


def test_the_same_translations_differ_nowhere_and_few_lines_show_nothing():
    test = made_up(50)
    texts = spoilt(test.references, 0.3, 1)
    rows = look_closer([[texts], [texts]], test, "ter", SAMPLING).rows
    assert {(gap["value"], gap["low"], gap["high"]) for row in rows for gap in row["gaps"]} == {(0, 0, 0)}
    few = TestSet("made up", ["a"] * 49, ["Das Haus 5."] * 49)
    rows = look_closer([[few.references], [["x"] * 49]], few, "chrf", SAMPLING).rows
    assert rows
    assert not any(gap["significant"] for row in rows for gap in row["gaps"])


@pytest.mark.parametrize(
    ("fault", "source", "reference", "hypothesis", "expected"),
    [
        ("under", "a", "Das ist ein Haus am See.", "Das ist", True),
        ("under", "a", "Das ist ein Haus am See.", "Das ist ein Haus am", False),
        ("under", None, "Das ist ein Haus.", "", True),
        ("over", "a", "Das ist ein Haus.", "Das ist ein Haus am See im Wald.", True),
        ("over", "a", "Ja.", "Ja, gut.", False),
        ("flag number", "In 1999.", "Im Jahr 1999.", "Im Jahr 1998.", True),
        ("flag number", None, "Im Jahr 1999.", "Im Jahr 1998.", False),  # flags need the source
        ("flag repetition", "It goes.", "Es geht.", "Es geht, es geht, es geht.", True),
    ],
)
def test_faults(fault, source, reference, hypothesis, expected):
    names = faults_of(source, reference, hypothesis, LATIN)
    assert any(name.startswith(fault) for name in names) == expected


def test_every_line_is_in_one_bucket_of_each_division(monkeypatch):
    """The training text has "the" 100 times, "old" 10 times and "house" once."""
    training = ["the"] * 90 + ["The old"] * 9 + ["the old house"]
    monkeypatch.setattr(buckets, "load_tokenizer", lambda file: SimpleNamespace(decode=lambda ids, side: training[ids]))

    class Split(list):
        table = property(lambda self: self)

        def __getitem__(self, rows):
            return SimpleNamespace(column=lambda name: SimpleNamespace(to_pylist=lambda: rows.tolist()))

    corpus = SimpleNamespace(tokenizer_file="", folder="here", split=lambda name: Split(training))
    sources = ["the The", "the OLD", "The house", "the unseen", "...", "a b c d e f"]
    (lengths, rarities), where = divisions(TestSet("x", sources, ["x"] * 6, corpus))
    assert [lengths[1][index] for index in lengths[2]] == ["1-5"] * 5 + ["6-10"]
    assert (lengths[0], rarities[0]) == ("Words of the source", "Its rarest word was in training")
    expected = ["100 times or more", "10 to 99 times", "1 to 9 times", "never", "100 times or more", "never"]
    assert [rarities[1][index] for index in rarities[2]] == expected
    assert where == "100 of the 100 training sources of here"
    [(title, _, _)], where = divisions(TestSet("x", None, ["a b"]))
    assert (title, where) == ("Words of the reference", "")
