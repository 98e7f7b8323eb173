"""Scores, intervals and p-values are those of sacreBLEU's command line."""

import os
import random
import re
import subprocess
import sys
from pathlib import Path
from statistics import fmean, stdev

import pytest
import sacrebleu

from nmt.plugins.compare.page import p_value
from nmt.plugins.compare.significance import Sampling, difference, measure

METRICS = ["bleu", "chrf", "ter"]
SAMPLES = {"bs": 120, "ar": 300}


def texts(lines: int = 60) -> tuple[list[str], list[list[str]]]:
    """References, and three systems that get one word in 3, 4 and 4 wrong."""
    generator = random.Random(1)
    words = ["der", "die", "das", "Haus", "Hund", "Katze", "läuft", "schläft", "und", "in", "unter", "12", "3,5", "."]
    references = [" ".join(generator.choices(words, k=generator.randint(4, 14))) for _ in range(lines)]

    def spoilt(share: float) -> list[str]:
        return [" ".join("x" if generator.random() < share else w for w in line.split()) for line in references]

    return references, [spoilt(1 / 3), spoilt(1 / 4), spoilt(1 / 4)]


def command_line(test: str, seed: int, folder: Path, systems: list[list[str]], references: list[str]) -> str:
    """What `sacrebleu --paired-bs` or `--paired-ar` prints."""
    names = [str(folder / f"system{number}") for number in range(len(systems))]
    for name, lines in zip([str(folder / "reference"), *names], [references, *systems], strict=True):
        Path(name).write_text("".join(f"{line}\n" for line in lines))
    command = [sys.executable, "-m", "sacrebleu", str(folder / "reference"), "-i", *names, "-m", *METRICS, "-w", "6"]
    # Not as JSON: sacreBLEU 2.6.0 cannot write the bootstrap of TER so.
    options = [f"--paired-{test}", f"--paired-{test}-n", str(SAMPLES[test]), "--format", "text", "--no-color"]
    environment = {**os.environ, "SACREBLEU_SEED": str(seed)}
    ended = subprocess.run([*command, *options], env=environment, capture_output=True, text=True, check=True)
    return ended.stdout


@pytest.mark.parametrize(("test", "seed"), [("bs", 7), ("ar", 12345)])
def test_p_values_are_those_of_sacrebleus_command_line(test, seed, tmp_path, monkeypatch):
    monkeypatch.setenv("SACREBLEU_SEED", "99")  # what is configured counts
    references, systems = texts()
    numbers = measure([[s] for s in systems], references, METRICS, Sampling(seed, SAMPLES["bs"], SAMPLES["ar"]))
    printed = command_line(test, seed, tmp_path, systems, references)
    rows = [line.split("│")[2:-1] for line in printed.splitlines() if line.startswith("│")][1:]
    scores, p_values = [row for row in rows if "=" not in row[0]], [row for row in rows if "=" in row[0]]
    assert (len(scores), len(p_values)) == (3, 2)
    for row, seeds in zip(scores, numbers["scores"], strict=True):
        for cell, metric in zip(row, METRICS, strict=True):
            keys = ["value", "mean", "margin"] if test == "bs" else ["value"]
            ours = [seeds[0][metric][key] for key in keys]
            assert [float(number) for number in re.findall(r"[\d.]+", cell)] == pytest.approx(ours, abs=1e-6)
    for row, differences in zip(p_values, numbers["differences"], strict=True):
        assert [cell.strip(" ()*") for cell in row] == [f"p = {differences[m]['p'][test]:.4f}" for m in METRICS]
    for metric in METRICS:
        assert f" {numbers['signatures'][metric][test]}\n" in f"{printed}\n"


@pytest.mark.parametrize(("lines", "tested"), [(1, False), (49, False), (50, True)])
def test_fewer_than_50_lines_are_not_tested(lines, tested):
    """sacreBLEU gives one line the least p-value."""
    references, systems = texts(lines)
    [results] = measure([[systems[0]], [references]], references, METRICS, Sampling(1, 120, 300))["differences"]
    for result in results.values():
        assert (result["significant"], result["better"], bool(result["p"])) == (tested, True, tested)


def test_a_p_below_alpha_beside_no_difference_has_a_reason():
    for gaps, bs, ar, verdict in (
        ([0], 0.001, 0.0001, "not different at all"),
        ([1], 0.001, 0.0001, "significantly better"),
        ([-1], 0.001, 0.0001, "significantly worse"),
        ([1], 0.2, 0.3, "not significantly different"),
        ([1], 0.2, 0.001, "not significantly different: only the approximate randomization has p < 0.05"),
        ([1], 0.001, 0.2, "not significantly different: only the paired bootstrap has p < 0.05"),
        ([1, -1], 0.001, 0.001, "not significantly different: pairs of seeds disagree which is better"),
    ):
        result = difference("bleu", [30], [30 + gap for gap in gaps], {"bs": [bs], "ar": [ar]}, 0.05, 60)
        assert (result["verdict"], result["significant"]) == (verdict, verdict.startswith("significantly"))


def test_the_least_p_that_resamples_can_give_is_a_bound():
    for p, shown in (({"bs": 1 / 1001, "ar": 0.02}, ("<= 0.001", "= 0.0200")), ({}, ("", ""))):
        assert (p_value(vars(Sampling()), {"p": p}, "bs"), p_value(vars(Sampling()), {"p": p}, "ar")) == shown


def test_one_line_alone_is_not_significant():
    """Any exchange of one line's translations gives the same difference, so approximate randomization rejects it."""
    references, (bad, *_) = texts()
    numbers = measure([[bad], [[references[0], *bad[1:]]]], references, ["bleu"], Sampling(1, 120, 300))
    result = numbers["differences"][0]["bleu"]
    assert result["value"] > 0
    assert result["p"]["ar"] < 0.05 < result["p"]["bs"]
    assert not result["significant"]


def test_of_several_seeds_every_pair_is_tested_and_the_largest_p_counts():
    references, (bad, good, other) = texts()
    sampling = Sampling(1, 120, 300)
    numbers = measure([[bad, good], [other, references]], references, ["bleu"], sampling)
    pairs = [(a, b) for a in (bad, good) for b in (other, references)]
    alone = [measure([[a], [b]], references, ["bleu"], sampling)["differences"][0]["bleu"] for a, b in pairs]
    result = numbers["differences"][0]["bleu"]
    assert result["p"] == {test: max(pair["p"][test] for pair in alone) for test in ("bs", "ar")}
    assert result["value"] == pytest.approx(fmean(pair["value"] for pair in alone))
    assert not result["significant"]  # good and other do not differ
    scores = [sacrebleu.corpus_bleu(lines, [references]).score for lines in (bad, good)]
    assert numbers["means"][0]["bleu"] == {
        "mean": pytest.approx(fmean(scores)),
        "deviation": pytest.approx(stdev(scores)),
    }
    clear = measure([[bad, good], [references]], references, ["bleu"], sampling)
    assert clear["differences"][0]["bleu"]["significant"]
    assert clear["means"][1]["bleu"]["deviation"] is None
    assert clear["scores"][1][0]["bleu"]["value"] == pytest.approx(100)
