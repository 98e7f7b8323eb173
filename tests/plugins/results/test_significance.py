"""Scores, intervals and p-values against sacreBLEU itself, its command line, and a plain bootstrap."""

import os
import random
import re
import subprocess
import sys
from pathlib import Path
from statistics import fmean, stdev
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sacrebleu

from nmt.plugins.results import buckets as buckets_module
from nmt.plugins.results.breakdown import faults_of, look_closer
from nmt.plugins.results.buckets import divisions
from nmt.plugins.results.comparison_text import p_value
from nmt.plugins.results.options import CompareConfig
from nmt.plugins.results.scorers import Scorers
from nmt.plugins.results.significance import difference, measure
from nmt.plugins.results.systems import Seed, System
from nmt.plugins.results.test_set import TestSet

METRICS = ["bleu", "chrf", "ter"]
WORDS = [
    "der",
    "die",
    "Haus",
    "Hund",
    "Katze",
    "läuft",
    "schläft",
    "und",
    "in",
    "unter",
    "12",
    "3,5",
    ".",
]

SACREBLEU = Scorers("13a")


def config(*metrics: str, seed: int = 1) -> CompareConfig:
    return CompareConfig(metrics=[*metrics], seed=seed, resamples=120, trials=300)


def spoilt(lines: list[str], share: float, seed: int) -> list[str]:
    generator = random.Random(seed)
    return [
        " ".join("x" if generator.random() < share else word for word in line.split())
        for line in lines
    ]


def texts(lines: int = 60) -> tuple[list[str], list[list[str]]]:
    """References, each with a number, and three systems that get one word in 3, 4 and 4 wrong."""
    generator = random.Random(1)
    references = [
        " ".join([*generator.choices(WORDS, k=generator.randint(4, 14)), f"{32 + n}."])
        for n in range(lines)
    ]
    return references, [
        spoilt(references, share, seed) for seed, share in enumerate((1 / 3, 1 / 4, 1 / 4))
    ]


def systems_of(*groups: list[list[str]]) -> list[System]:
    return [
        System(str(n), [Seed(f"{n}", lines) for lines in group]) for n, group in enumerate(groups)
    ]


def bleu_of(references: list[str], *groups: list[list[str]]) -> dict[str, Any]:
    """The comparison of the second system with the first."""
    tree = measure(systems_of(*groups), references, config("bleu"), SACREBLEU)
    return tree["comparisons"][0]["metrics"]["bleu"]


def command_line(
    test: str, seed: int, folder: Path, systems: list[list[str]], references: list[str]
) -> str:
    """What `sacrebleu --paired-bs` or `--paired-ar` prints."""
    names = [str(folder / f"system{number}") for number in range(len(systems))]
    for name, lines in zip(
        [str(folder / "reference"), *names], [references, *systems], strict=True
    ):
        Path(name).write_text("".join(f"{line}\n" for line in lines))
    command = [
        sys.executable,
        "-m",
        "sacrebleu",
        str(folder / "reference"),
        "-i",
        *names,
        "-m",
        *METRICS,
        "-w",
        "6",
    ]
    # Not as JSON: sacreBLEU 2.6.0 cannot write the bootstrap of TER so.
    options = [
        f"--paired-{test}",
        f"--paired-{test}-n",
        "120" if test == "bs" else "300",
        "--format",
        "text",
        "--no-color",
    ]
    environment = {**os.environ, "SACREBLEU_SEED": str(seed)}
    return subprocess.run(
        [*command, *options], env=environment, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.slow
@pytest.mark.parametrize(("test", "seed"), [("bs", 7), ("ar", 12345)])
def test_p_values_equal_those_of_sacrebleus_command_line(test, seed, tmp_path, monkeypatch):
    monkeypatch.setenv("SACREBLEU_SEED", "99")  # the option must win
    references, systems = texts()
    groups = systems_of(*([system] for system in systems))
    numbers = measure(groups, references, config(*METRICS, seed=seed), SACREBLEU)
    printed = command_line(test, seed, tmp_path, systems, references)
    rows = [line.split("│")[2:-1] for line in printed.splitlines() if line.startswith("│")][1:]
    scores, p_values = (
        [row for row in rows if "=" not in row[0]],
        [row for row in rows if "=" in row[0]],
    )
    assert (len(scores), len(p_values)) == (3, 2)
    for row, system in zip(scores, numbers["systems"], strict=True):
        for cell, metric in zip(row, METRICS, strict=True):
            keys = ["value", "mean", "margin"] if test == "bs" else ["value"]
            ours = [system["seeds"][0]["scores"][metric][key] for key in keys]
            assert [float(number) for number in re.findall(r"[\d.]+", cell)] == pytest.approx(
                ours, abs=1e-6
            )
    for row, comparison in zip(p_values, numbers["comparisons"], strict=True):
        by_metric = comparison["metrics"]
        assert [cell.strip(" ()*") for cell in row] == [
            f"p = {by_metric[m]['p'][test]:.4f}" for m in METRICS
        ]
    for metric in METRICS:
        assert f" {numbers['signatures'][metric][test]}\n" in f"{printed}\n"


def test_a_p_below_alpha_beside_no_difference_has_a_reason():
    for gaps, bs, ar, lines, verdict in (
        ([0], 0.001, 0.0001, 50, "not different at all"),
        ([1], 0.001, 0.0001, 50, "significantly better"),
        ([-1], 0.001, 0.0001, 50, "significantly worse"),
        (
            [-1],
            0.001,
            0.0001,
            49,
            "not tested: fewer than 50 lines",
        ),  # sacreBLEU gives one line the lowest p-value
        ([1], 0.2, 0.3, 50, "not significantly different"),
        (
            [1],
            0.2,
            0.001,
            50,
            "not significantly different: only the approximate randomization has p < 0.05",
        ),
        (
            [1],
            0.001,
            0.2,
            50,
            "not significantly different: only the paired bootstrap has p < 0.05",
        ),
        (
            [1, -1],
            0.001,
            0.001,
            50,
            "not significantly different: pairs of seeds disagree on which is better",
        ),
    ):
        result = difference("bleu", gaps, {"bs": bs, "ar": ar}, 0.05, lines)
        assert (result["verdict"], result["significant"]) == (
            verdict,
            verdict.startswith("significantly"),
        )
        assert bool(result["p"]) == ("significant" in verdict)


def test_smallest_possible_p_value_is_shown_as_bound():
    for p, shown in (({"bs": 1 / 1001, "ar": 0.02}, ("<= 0.001", "= 0.0200")), ({}, ("", ""))):
        assert (
            p_value(vars(CompareConfig()), {"p": p}, "bs"),
            p_value(vars(CompareConfig()), {"p": p}, "ar"),
        ) == shown


def test_largest_p_of_all_pairs_of_seeds_decides():
    references, (bad, good, other) = texts()
    pairs = [bleu_of(references, [a], [b]) for a in (bad, good) for b in (other, references)]
    result = bleu_of(references, [bad, good], [other, references])
    assert result["p"] == {test: max(pair["p"][test] for pair in pairs) for test in ("bs", "ar")}
    assert result["value"] == pytest.approx(fmean(pair["value"] for pair in pairs))
    assert not result["significant"]  # good and other do not differ
    groups = systems_of([bad, good], [references])
    clear = measure(groups, references, config("bleu"), SACREBLEU)
    assert clear["comparisons"][0]["metrics"]["bleu"]["significant"]
    first, second = clear["systems"]
    scores = [sacrebleu.corpus_bleu(lines, [references]).score for lines in (bad, good)]
    assert first["scores"]["bleu"] == {
        "mean": pytest.approx(fmean(scores)),
        "deviation": pytest.approx(stdev(scores)),
    }
    assert second["scores"]["bleu"]["deviation"] is None
    assert second["seeds"][0]["scores"]["bleu"]["value"] == pytest.approx(100)


def made_up(lines: int = 120) -> TestSet:
    references, _ = texts(lines)
    return TestSet("made up", [line.upper() for line in references], references)


@pytest.mark.parametrize(
    ("metric", "score"), [("bleu", sacrebleu.corpus_bleu), ("chrf", sacrebleu.corpus_chrf)]
)
def test_bucket_score_equals_sacrebleu_on_its_lines(metric, score):
    test = made_up()
    systems = [
        [spoilt(test.references, 0.2, 1)],
        [spoilt(test.references, 0.3, 2), spoilt(test.references, 0.3, 3)],
    ]
    [(title, labels, indices)], _ = divisions(test)
    rows, _ = look_closer(systems_of(*systems), test, config(metric), SACREBLEU)
    rows = [row for row in rows if row["title"] == title]
    assert sum(row["count"] for row in rows) == 120
    for row in rows:
        chosen = [i for i, index in enumerate(indices) if labels[index] == row["label"]]
        references = [[test.references[i] for i in chosen]]
        expected = [
            fmean(score([seed[i] for i in chosen], references).score for seed in system)
            for system in systems
        ]
        assert (row["count"], row["values"]) == (len(chosen), pytest.approx(expected))
        (gap,) = row["gaps"]
        assert gap["value"] == pytest.approx(expected[1] - expected[0])
        assert gap["low"] <= gap["value"] <= gap["high"]


def test_interval_of_fault_equals_plain_bootstrap():
    test = made_up()
    broken = [
        line.rsplit(" ", 1)[0] if n % 4 == 0 else line for n, line in enumerate(test.references)
    ]
    groups = systems_of([test.references], [broken])
    rows, _ = look_closer(groups, test, config("chrf", seed=5), SACREBLEU)
    (row,) = (row for row in rows if row["label"] == "flag number")
    assert (row["title"], row["count"], row["values"]) == ("Faults", 120, [0, 30])
    generator = random.Random(1)
    samples = [sum(generator.randrange(120) % 4 == 0 for _ in range(120)) for _ in range(3000)]
    (gap,) = row["gaps"]
    assert (gap["low"], gap["high"]) == pytest.approx(
        tuple(np.quantile(samples, [0.025, 0.975])), abs=3
    )
    assert (gap["significant"], gap["better"]) == (True, False)


def test_equal_systems_have_no_gaps_and_few_lines_no_significance():
    test, few = made_up(50), TestSet("made up", ["a"] * 49, ["Das Haus 5."] * 49)
    lines = spoilt(test.references, 0.3, 1)
    rows, _ = look_closer(systems_of([lines], [lines]), test, config("ter"), SACREBLEU)
    assert {(gap["value"], gap["low"], gap["high"]) for row in rows for gap in row["gaps"]} == {
        (0, 0, 0)
    }
    groups = systems_of([few.references], [["x"] * 49])
    rows, _ = look_closer(groups, few, config("chrf"), SACREBLEU)
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
    names = faults_of(source, reference, hypothesis, frozenset(["LATIN"]))
    assert any(name.startswith(fault) for name in names) == expected


def test_buckets_by_length_and_rarity(monkeypatch):
    """The training text has "the" 100 times, "old" 10 times and "house" once."""
    training = ["the"] * 90 + ["The old"] * 9 + ["the old house"]
    tokenizer = SimpleNamespace(decode=lambda ids, side: training[ids])
    monkeypatch.setattr(buckets_module, "load_tokenizer", lambda file: tokenizer)

    class Split(list):
        def rows(self, indices):
            return [SimpleNamespace(to_pylist=indices.tolist)]

    corpus = SimpleNamespace(tokenizer_file="", folder="here", split=lambda name: Split(training))
    sources = ["the The", "the OLD", "The house", "the unseen", "...", "a b c d e f"]
    (lengths, rarities), where = divisions(TestSet("x", sources, ["x"] * 6, corpus))
    assert [lengths[1][index] for index in lengths[2]] == ["1-5"] * 5 + ["6-10"]
    assert (lengths[0], rarities[0]) == (
        "Words in the source",
        "Count of its rarest word in training",
    )
    expected = [
        "100 times or more",
        "10 to 99 times",
        "1 to 9 times",
        "never",
        "100 times or more",
        "never",
    ]
    assert [rarities[1][index] for index in rarities[2]] == expected
    assert where == "100 of the 100 training source lines in here"
    [(title, _, _)], where = divisions(TestSet("x", None, ["a b"]))
    assert (title, where) == ("Words in the reference", "")
