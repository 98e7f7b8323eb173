"""Charts and examples of the report. A run folder may be unfinished, damaged or untrusted."""

import json
import math
import re
import subprocess
import sys

import pytest
import yaml

from nmt.config import ModelConfig, NMTError
from nmt.plugins.results.charts import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    Chart,
    Drawing,
    draw,
    round_ticks,
)
from nmt.plugins.results.training_page import pick, sentence_score
from nmt.plugins.results.training_run import open_run
from nmt.training.run_folder import GROUPS

TRAINING = [(step, 8 / (1 + step / 20)) for step in range(10, 201, 10)]
VALIDATION = [(50, 3.0), (100, 1.5), (150, 1.5), (200, 2.0)]
PLAIN = Chart("Loss", "nats", "loss", "valid_loss", min)


def drawing(chart: Chart, last: int = 200, **curves) -> Drawing:
    drawn = draw(chart, curves, last)
    assert drawn
    return drawn


def test_positions_of_curve_and_ticks():
    drawn = drawing(Chart("Loss", "", ""), training=TRAINING)
    for (x, y), (step, value) in zip(drawn.lines["training"], TRAINING, strict=True):
        assert x == pytest.approx(LEFT + (RIGHT - LEFT) * step / 200, abs=0.06)
        assert y == pytest.approx(BOTTOM - (BOTTOM - TOP) * value / 6, abs=0.06)
    assert drawn.rows == [(BOTTOM, 0), (120.7, 2), (65.3, 4), (TOP, 6)]
    assert drawn.columns == [(LEFT, 0), (136.5, 50), (221, 100), (305.5, 150), (RIGHT, 200)]


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 6, [0, 2, 4, 6]),
        (0, 0.74, [0, 0.2, 0.4, 0.6, 0.8]),
        (-3, 11, [-5, 0, 5, 10, 15]),
        (0, 1e100, [0, 2e99]),
    ],
)
def test_round_ticks_cover_values(low, high, ticks):
    assert round_ticks(low, high)[: len(ticks)] == pytest.approx(ticks)
    assert round_ticks(low, high)[-2] < high <= round_ticks(low, high)[-1]


def test_first_of_equal_best_validations_is_marked():
    drawn = drawing(PLAIN, training=TRAINING, validation=VALIDATION)
    assert drawn.best == (100, 1.5)
    assert drawn.best_place == drawn.lines["validation"][1]
    highest = Chart("BLEU", "", "", "valid_bleu", max)
    assert drawing(highest, 3, validation=[(1, 3.0), (2, 9.5), (3, 9.0)]).best == (2, 9.5)


def test_long_curves_are_thinned_and_values_not_finite_left_out():
    points = [(step, math.sin(step)) for step in range(100_000)]
    assert 500 < len(drawing(PLAIN, 100_000, training=points).lines["training"]) <= 1000
    drawn = drawing(PLAIN, 4, training=[(1, 2.0), (2, math.nan), (3, math.inf), (4, 3.0)])
    assert drawn.curves == {"training": [(1, 2.0), (4, 3.0)]}
    assert draw(PLAIN, {"training": [(1, math.nan)]}, 1) is None


@pytest.mark.parametrize("value", [0.0, -2.0, 1e-30, 1e100])
def test_single_point_lies_within_plot(value):
    drawn = drawing(Chart("Loss", "", ""), 7, training=[(7, value)])
    [(_, y)] = drawn.lines["training"]
    assert TOP <= y <= BOTTOM


@pytest.mark.parametrize(("bad", "edge"), [(1e6, TOP), (-1e6, BOTTOM)])
def test_outlier_moves_no_axis_but_is_counted(bad, edge):
    before, drawn = (
        drawing(PLAIN, training=points) for points in (TRAINING, [*TRAINING, (180, bad)])
    )
    assert (before.stray, drawn.stray) == (0, 1)
    assert (drawn.rows, drawn.lines["training"][-1][1]) == (before.rows, edge)


@pytest.fixture
def run(tmp_path):
    """A run of three reports and nothing else."""
    groups: dict[str, object] = {group: {} for group in GROUPS}
    config = {**groups, "name": "x", "prepared": "nowhere", "trainer": {"max_steps": 100}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    header = "step,loss,learning_rate,tokens_per_second,seconds,valid_loss\n"
    (tmp_path / "metrics.csv").write_text(
        header + "10,5.5,0.1,1000,1.5,\n20,4.5,0.2,1100,3,\n20,,,,,4.25\n"
    )
    return tmp_path


@pytest.mark.parametrize(
    "tail", ["", "30", '30,"4.1', "\0\0\0\0", "x,4,,,,\n", "30,x,1,2,3,4,5,6\n", "30,,,,nan,\n"]
)
def test_metrics_skip_empty_cells_and_broken_rows(run, tail):
    with (run / "metrics.csv").open("a") as file:
        file.write(tail)
    opened = open_run(run, None)
    assert opened.series("loss") == [(10, 5.5), (20, 4.5)]
    assert (opened.series("valid_loss"), opened.series("mfu")) == ([(20, 4.25)], [])
    assert (opened.last("seconds"), opened.last("cost")) == (3, None)


def test_description_with_wrong_types_has_no_facts(run):
    """`run/model` has no weights."""
    (run / "model").mkdir()
    (run / "environment.json").write_text("{")
    base = {
        "format_version": 1,
        "model": vars(ModelConfig(name="m")),
        "vocabulary_size": 300,
        "source": "en",
    }
    base |= {"target": "de", "tokenizer": "0" * 64}
    for training in ({}, {"updates": "x"}, {"tokens": "x"}, {"versions": {"nmt": 1}}, {"score": 1}):
        description = {**base, "training": {"corpus": "abc", "updates": 30, **training}}
        (run / "model" / "config.json").write_text(json.dumps(description))
        assert (open_run(run, None).model is None, open_run(run, None).environment) == (
            bool(training),
            {},
        )


def test_missing_corpus_is_reported_and_requested_one_required(run):
    assert "nowhere" in open_run(run, None).corpus_problem
    with pytest.raises(NMTError, match="elsewhere"):
        open_run(run, "elsewhere")


def test_untrusted_run_gives_one_line(run):
    for file, content in (
        ("metrics.csv", "step,loss\n10,5"),  # no whole row
        ("metrics.csv", f"step,loss\n10,{'x' * 200_000}\n"),
        ("config.yaml", "trainer: [1]\n"),
        ("config.yaml", "a: &a [x]\nb: [*a, *a]\n"),
    ):
        (run / file).write_text(content)
        with pytest.raises(NMTError, match=file) as raised:
            open_run(run, None)
        assert "\n" not in str(raised.value)


def test_report_without_rows_fails_before_importing_torch(tmp_path):
    (tmp_path / "config.yaml").write_text("{}")
    (tmp_path / "metrics.csv").write_text("step,train/loss\n")
    command = [sys.executable, "-X", "importtime", "-m", "nmt", "report", f"run={tmp_path}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "metrics.csv has no rows yet" in done.stderr
    assert not re.search(r"\| +torch$", done.stderr, re.MULTILINE)


def test_sentence_score_of_trees():
    """By hand: S and NP are right, VP and ADJP are missing, PP is too many; a word alone has no brackets."""
    reference = "(TOP (S (NP (DT the) (NN end)) (VP (VBZ is) (ADJP (JJ near)))))"
    hypothesis = "(TOP (S (NP (DT the) (NN end)) (PP (VBZ is)) (JJ near)))"
    assert sentence_score(hypothesis, reference, "brackets") == pytest.approx(400 / 7)
    assert sentence_score("(TOP (NN hush))", "(TOP (UH hush))", "brackets") == 100


def test_pick_best_median_and_worst_without_repetition():
    nine = [50, 10, 90, 30, 70, 20, 60, 80, 40]
    three = {"Best": [90, 80], "Median": [60, 50], "Worst": [10, 20]}
    for values, count, groups in ((nine, 2, three), ([5], 3, {"Best": [5]}), ([5, 6, 7], 0, {})):
        examples = [{"source": "s" * (1 + i), "value": value} for i, value in enumerate(values)]
        assert {
            name: [e["value"] for e in group] for name, group in pick(examples, count).items()
        } == groups
