"""What is drawn is what was measured: places, gaps, the best point, what the pointer finds."""

import math
import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from nmt.report.bars import BASE, Bar, draw_bars
from nmt.report.curves import BOTTOM, LEFT, RIGHT, TOP, Chart, Series, draw_chart

TRAINING = [(step, 8 / (1 + step / 20)) for step in range(10, 201, 10)]
VALIDATION = [(50, 3.0), (100, 1.5), (150, 1.5), (200, 2.0)]


def drawing(chart: Chart, last: int = 200) -> ET.Element:
    return ET.fromstring(draw_chart(chart, last))


def loss(**changes) -> Chart:
    series = [Series("training", TRAINING), Series("validation", VALIDATION, "validation")]
    return Chart(**{"title": "Loss", "unit": "nats", "series": series, "best": "lowest", **changes})


def of_class(root: ET.Element, name: str) -> list[ET.Element]:
    return [element for element in root.iter() if name in element.get("class", "").split()]


def places(line: ET.Element) -> list[tuple[float, float]]:
    return [(float(a), float(b)) for a, b in re.findall(r"[ML]([\d.]+) ([\d.]+)", line.get("d"))]


def test_a_curve_lies_where_its_values_are():
    root = drawing(loss(from_zero=True))
    line = next(line for line in of_class(root, "line") if "training" in line.get("class"))
    for (x, y), (step, value) in zip(places(line), TRAINING, strict=True):
        assert x == pytest.approx(LEFT + (RIGHT - LEFT) * step / 200, abs=0.06)
        assert y == pytest.approx(BOTTOM - (BOTTOM - TOP) * value / 6, abs=0.06)


def test_on_a_log_axis_equal_factors_are_equal_distances():
    points = [(step, 2.0**step) for step in range(1, 11)]
    line = of_class(drawing(Chart("P", "", [Series("training", points)], log=True), 10), "line")[0]
    heights = [y for _, y in places(line)]
    assert [a - b for a, b in pairwise(heights)] == pytest.approx([heights[0] - heights[1]] * 9, abs=0.21)


def test_the_first_of_the_best_validations_is_marked_and_named():
    root = drawing(loss())
    (mark,) = of_class(root, "best")
    assert float(mark.get("cx")) == pytest.approx(LEFT + (RIGHT - LEFT) * 100 / 200, abs=0.06)
    assert [text.text for text in of_class(root, "summary")] == ["best 1.5 at update 100"]


def test_the_highest_bleu_is_the_best():
    chart = Chart("BLEU", "", [Series("validation", [(1, 3.0), (2, 9.5), (3, 9.0)], "validation")], best="highest")
    assert [text.text for text in of_class(drawing(chart, 3), "summary")] == ["best 9.5 at update 2"]


def test_the_pointer_finds_every_validation_and_what_was_trained_then():
    root = drawing(loss())
    readings = ["".join(text.itertext()) for text in of_class(root, "reading")]
    for step, value in VALIDATION:
        (reading,) = (text for text in readings if f"update {step} " in text)
        assert f"validation {value:g}".removesuffix(".0") in reading
        assert "training" in reading


def test_the_strips_of_the_pointer_cover_the_plot_side_by_side():
    strips = [stop.find("rect") for stop in of_class(drawing(loss()), "stop")]
    edges = [(float(s.get("x")), float(s.get("x")) + float(s.get("width"))) for s in strips]
    assert edges[0][0] == LEFT
    assert edges[-1][1] == pytest.approx(RIGHT, abs=0.11)
    assert all(a[1] == pytest.approx(b[0], abs=0.11) for a, b in pairwise(edges))


def test_a_long_run_stays_a_small_page():
    points = [(step, math.sin(step)) for step in range(100_000)]
    assert len(draw_chart(Chart("Long", "", [Series("training", points)]), 100_000)) < 100_000


@pytest.mark.parametrize("log", [False, True])
def test_what_is_not_finite_is_left_out(log):
    points = [(1, 2.0), (2, math.nan), (3, math.inf), (4, 3.0)]
    root = drawing(Chart("Loss", "", [Series("training", points)], log=log), 4)
    assert len(places(of_class(root, "line")[0])) == 2


def test_nothing_to_draw_is_no_drawing():
    for points in ([], [(1, math.nan)]):
        assert draw_chart(Chart("Loss", "", [Series("training", points)]), 1) == ""
    assert draw_chart(Chart("Norm", "", [Series("training", [(1, 0.0)])], log=True), 1) == ""


@pytest.mark.parametrize("value", [0.0, 5.0, -2.0, 1e-30, 1e30])
@pytest.mark.parametrize("from_zero", [False, True])
def test_a_single_point_is_drawn_within_the_plot(value, from_zero):
    root = drawing(Chart("Loss", "", [Series("training", [(7, value)])], from_zero=from_zero), 7)
    (dot,) = of_class(root, "dot")
    assert TOP <= float(dot.get("cy")) <= BOTTOM


def test_shares_are_in_percent():
    root = drawing(Chart("MFU", "", [Series("training", [(1, 0.1), (2, 0.18)])], from_zero=True, percent=True), 2)
    assert "last 18%" in [text.text for text in of_class(root, "summary")]
    assert {"0%", "5%", "20%"} <= {text.text for text in root.iter("text")}


def test_bars_are_as_high_as_their_values():
    bars = [Bar(40.0, "40.0", "1-5", "30"), Bar(10.0, "10.0", "6-10", "3", pale=True), Bar(0.0, "0.0", "11-15", "1")]
    root = ET.fromstring(draw_bars("BLEU", bars, ("words", "lines")))
    heights = [float(bar.get("height")) for bar in of_class(root, "bar")]
    assert heights == pytest.approx([BASE - TOP, (BASE - TOP) / 4, 0], abs=0.11)
    assert len(of_class(root, "few")) == 1
    assert {"40.0", "1-5", "30"} <= {text.text for text in root.iter("text")}
