"""What is drawn is what was measured: positions, gaps, the best point."""

import math
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from nmt.plugins.report.charts import BOTTOM, LEFT, RIGHT, TOP, Chart, draw, round_ticks

TRAINING = [(step, 8 / (1 + step / 20)) for step in range(10, 201, 10)]
VALIDATION = [(50, 3.0), (100, 1.5), (150, 1.5), (200, 2.0)]
PLAIN = Chart("Loss", "nats", ("loss", "valid_loss"), "lowest", from_zero=False)


def drawing(chart: Chart, last: int = 200, **curves) -> dict[str, Any]:
    drawn = draw(chart, curves, last)
    assert drawn
    return drawn


def line(drawn: dict[str, Any], kind: str) -> list[tuple[float, float]]:
    """The points of the path of this color."""
    paths = [path for path in ET.fromstring(drawn["svg"]).iter() if f"stroke: var(--{kind});" in path.get("style", "")]
    (path,) = (path for path in paths if path.get("clip-path"))
    return [(float(a), float(b)) for a, b in re.findall(r"[ML] ([\d.]+) ([\d.]+)", path.get("d"))]


def elements(drawn: dict[str, Any], name: str) -> list[ET.Element]:
    return [element for element in ET.fromstring(drawn["svg"]).iter() if element.tag.endswith(name)]


def test_a_curve_lies_where_its_values_are():
    points = line(drawing(Chart("Loss", "", ("", "")), training=TRAINING), "training")
    for (x, y), (step, value) in zip(points, TRAINING, strict=True):
        assert x == pytest.approx(LEFT + (RIGHT - LEFT) * step / 200, abs=0.11)
        assert y == pytest.approx(BOTTOM - (BOTTOM - TOP) * value / 6, abs=0.11)


def test_the_first_of_the_best_validations_is_marked():
    drawn = drawing(PLAIN, training=TRAINING, validation=VALIDATION)
    assert drawn["best"] == (100, 1.5)
    marks = [use for use in elements(drawn, "use") if "fill: var(--ground)" in use.get("style", "")]
    assert float(marks[-1].get("x")) == pytest.approx(LEFT + (RIGHT - LEFT) * 100 / 200, abs=0.11)
    highest = Chart("BLEU", "", ("", "valid_bleu"), "highest")
    assert drawing(highest, 3, validation=[(1, 3.0), (2, 9.5), (3, 9.0)])["best"] == (2, 9.5)


def test_a_long_run_stays_a_small_page_and_what_is_not_finite_is_left_out():
    points = [(step, math.sin(step)) for step in range(100_000)]
    assert len(drawing(PLAIN, 100_000, training=points)["svg"]) < 200_000
    assert len(line(drawing(PLAIN, 4, training=[(1, 2.0), (2, math.nan), (3, math.inf), (4, 3.0)]), "training")) == 2
    assert draw(PLAIN, {"training": [(1, math.nan)]}, 1) is None


@pytest.mark.parametrize("value", [0.0, -2.0, 1e-30, 1e100])
def test_a_single_point_is_drawn_within_the_plot(value):
    (dot,) = elements(drawing(Chart("Loss", "", ("", ""), from_zero=value < 1), 7, training=[(7, value)]), "use")
    assert TOP <= float(dot.get("y")) <= BOTTOM


@pytest.mark.parametrize("bad", [1e6, -1e6])
def test_one_bad_value_moves_no_axis_but_is_counted(bad):
    before, drawn = (drawing(PLAIN, training=points) for points in (TRAINING, [*TRAINING, (180, bad)]))
    assert (before["stray"], drawn["stray"]) == (0, 1)
    assert [text.text for text in elements(drawn, "text")] == [text.text for text in elements(before, "text")]


def test_colors_are_the_style_sheets_and_ids_are_each_charts_own():
    svgs = [drawing(Chart(title, "", ("", "")), training=TRAINING, validation=VALIDATION)["svg"] for title in "ABA"]
    assert not re.search(r"#[0-9a-f]{6}\b", "".join(svgs))
    ids = [set(re.findall(r' id="([^"]+)"', svg)) for svg in svgs]
    assert all(ids)
    assert not ids[0] & ids[1]
    assert svgs[0] == svgs[2]


def test_ticks_as_one_would_choose_them():
    assert round_ticks(2.9, 8.3) == pytest.approx([2, 4, 6, 8, 10])
    assert round_ticks(0, 0.0067) == pytest.approx([0, 0.002, 0.004, 0.006, 0.008])
    assert round_ticks(3, 3) == pytest.approx([2.6, 2.8, 3.0, 3.2, 3.4])


def test_matplotlib_has_its_own_settings_and_not_those_of_the_working_directory(tmp_path):
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\n")
    program = "import nmt.plugins.report.charts, matplotlib; print(matplotlib.rcParams['text.usetex'])"
    done = subprocess.run([sys.executable, "-P", "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
