"""What is drawn is what was measured: positions, gaps, the best point, what the pointer finds."""

import math
import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from nmt.plugins.report.charts import BOTTOM, LEFT, RIGHT, TOP, Chart, Drawing, draw, linear_ticks, log_ticks

TRAINING = [(step, 8 / (1 + step / 20)) for step in range(10, 201, 10)]
VALIDATION = [(50, 3.0), (100, 1.5), (150, 1.5), (200, 2.0)]
PLAIN = Chart("Loss", "nats", ("loss", "valid_loss"), from_zero=False, best="lowest")
LOG = Chart("Perplexity", "", ("perplexity", ""), log=True)


def drawing(chart: Chart, last: int = 200, **curves) -> Drawing:
    found = draw(chart, curves, last)
    assert found
    return found


def lines(drawn: Drawing, kind: str) -> list[list[tuple[float, float]]]:
    """The points of each path of this color."""
    paths = [path for path in ET.fromstring(drawn.svg).iter() if f"stroke: var(--{kind});" in path.get("style", "")]
    paths = [path for path in paths if path.get("clip-path")]
    return [[(float(a), float(b)) for a, b in re.findall(r"[ML] ([\d.]+) ([\d.]+)", path.get("d"))] for path in paths]


def words(drawn: Drawing) -> list[str]:
    return [text.text for text in ET.fromstring(drawn.svg).iter() if text.tag.endswith("text")]


def test_a_curve_lies_where_its_values_are():
    (line,) = lines(drawing(Chart("Loss", "", ("", "")), training=TRAINING), "training")
    for (x, y), (step, value) in zip(line, TRAINING, strict=True):
        assert x == pytest.approx(LEFT + (RIGHT - LEFT) * step / 200, abs=0.11)
        assert y == pytest.approx(BOTTOM - (BOTTOM - TOP) * value / 6, abs=0.11)


def test_on_a_log_axis_equal_factors_are_equal_distances():
    (line,) = lines(drawing(LOG, 10, training=[(step, 2.0**step) for step in range(1, 11)]), "training")
    heights = [y for _, y in line]
    assert [a - b for a, b in pairwise(heights)] == pytest.approx([heights[0] - heights[1]] * 9, abs=0.31)


def test_the_first_of_the_best_validations_is_marked():
    drawn = drawing(PLAIN, training=TRAINING, validation=VALIDATION)
    assert drawn.best == (100, 1.5)
    uses = [use for use in ET.fromstring(drawn.svg).iter() if "fill: var(--ground)" in use.get("style", "")]
    assert float(uses[-1].get("x")) == pytest.approx(LEFT + (RIGHT - LEFT) * 100 / 200, abs=0.11)


def test_the_highest_bleu_is_the_best_and_the_averaged_models_is_no_point_of_its_curve():
    chart = Chart("BLEU", "", ("", "valid_bleu"), metric="bleu", best="highest")
    drawn = drawing(chart, 3, validation=[(1, 3.0), (2, 9.5), (3, 9.0)], averaged=[(3, 11.0)])
    assert drawn.best == (2, 9.5)
    assert [len(line) for line in lines(drawn, "validation")] == [3]
    assert drawn.stops[-1][-1] == "update 3   validation 9   averaged 11"


def test_the_pointer_finds_every_validation_and_what_was_trained_then():
    drawn = drawing(PLAIN, training=TRAINING, validation=VALIDATION)
    readings = [reading for *_, reading in drawn.stops]
    for step, value in VALIDATION:
        (reading,) = (text for text in readings if f"update {step} " in text)
        assert reading.endswith(f"validation {value:g}")
        assert "training" in reading


def test_a_long_run_stays_a_small_page():
    points = [(step, math.sin(step)) for step in range(100_000)]
    assert len(drawing(PLAIN, 100_000, training=points).svg) < 200_000


@pytest.mark.parametrize("chart", [PLAIN, LOG])
def test_what_is_not_finite_is_left_out(chart):
    (line,) = lines(drawing(chart, 4, training=[(1, 2.0), (2, math.nan), (3, math.inf), (4, 3.0)]), "training")
    assert len(line) == 2


def test_nothing_to_draw_is_no_drawing():
    assert draw(PLAIN, {"training": [(1, math.nan)]}, 1) is None
    assert draw(LOG, {"training": [(1, 0.0)]}, 1) is None


@pytest.mark.parametrize("value", [0.0, -2.0, 1e-30, 1e100])
def test_a_single_point_is_drawn_within_the_plot(value):
    drawn = drawing(Chart("Loss", "", ("", ""), from_zero=value < 1), 7, training=[(7, value)])
    (dot,) = (use for use in ET.fromstring(drawn.svg).iter() if use.tag.endswith("use"))
    assert TOP <= float(dot.get("y")) <= BOTTOM


@pytest.mark.parametrize("bad", [1e6, -1e6])
def test_one_bad_value_moves_no_axis_but_is_marked_and_counted(bad):
    before, drawn = (drawing(PLAIN, training=points) for points in (TRAINING, [*TRAINING, (180, bad)]))
    assert (before.stray, drawn.stray) == (0, 1)
    assert words(drawn) == words(before)
    (mark,) = (use for use in ET.fromstring(drawn.svg).iter() if use.tag.endswith("use"))
    assert float(mark.get("y")) == pytest.approx(TOP if bad > 0 else BOTTOM, abs=0.11)
    assert any("update 180" in reading for *_, reading in drawn.stops)


def test_colors_are_the_style_sheets_and_ids_are_each_charts_own():
    svgs = [drawing(chart, training=TRAINING, validation=VALIDATION).svg for chart in (PLAIN, LOG)]
    assert not re.search(r"#[0-9a-f]{6}\b", "".join(svgs))
    ids = [set(re.findall(r' id="([^"]+)"', svg)) for svg in svgs]
    assert all(ids)
    assert not ids[0] & ids[1]
    assert svgs[0] == drawing(PLAIN, training=TRAINING, validation=VALIDATION).svg


@pytest.mark.parametrize(
    ("ticks_of", "low", "high", "ticks"),
    [
        (linear_ticks, 2.9, 8.3, [2, 4, 6, 8, 10]),
        (linear_ticks, 0, 0.0067, [0, 0.002, 0.004, 0.006, 0.008]),
        (linear_ticks, 3, 3, [2.6, 2.8, 3.0, 3.2, 3.4]),
        (log_ticks, 8, 4000, [10, 100, 1000]),
        (log_ticks, 11, 320, [20, 50, 100, 200]),
        (log_ticks, 11.4, 12.59, [11.4, 11.6, 11.8, 12, 12.2, 12.4]),
    ],
)
def test_ticks_as_one_would_choose_them(ticks_of, low, high, ticks):
    assert ticks_of(low, high) == pytest.approx(ticks)
