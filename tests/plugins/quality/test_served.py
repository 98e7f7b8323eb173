"""Probabilities of `nmt serve`, and what its page shows of them in a real browser."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from nmt.plugins.results.risk_chart import RISK, risk_of
from tests.plugins.quality.conftest import random_lines
from tests.plugins.serve import browsers
from tests.plugins.serve.serving import Server, serving

browser = browsers.browser
open_page = browsers.open_page
GOOD, BAD = random_lines(2, seed=7)


@pytest.fixture(scope="module")
def server(calibrated: Path) -> Iterator[Server]:
    with serving(calibrated) as server:
        yield server


@pytest.fixture(scope="module")
def address(server: Server) -> str:
    return f"{server.url}/"


def test_details_have_probabilities_of_each_line(server):
    status, answer = server.translate(f"{GOOD}\n\n{BAD}", details=True, alternatives=2)
    assert status == 200
    good, bad = answer["details"]
    assert good["probability"] > 0.5 > bad["probability"]
    assert good["probabilities"][0] == good["probability"]
    assert len(good["probabilities"]) > 1
    _, answer = server.translate([GOOD, BAD], details=True)
    assert [[line["probability"] for line in text] for text in answer["details"]] == [
        [good["probability"]],
        [bad["probability"]],
    ]
    assert server.translate(GOOD)[1].keys() == {"translatedText"}


def test_alternatives_to_a_word_have_no_probability(server):
    prefix = server.translated(GOOD).split()[0]
    status, answer = server.translate(GOOD, details=True, prefix=prefix)
    assert status == 200
    [line] = answer["details"]
    assert line["alignment"]
    assert "probability" not in line


@pytest.mark.slow
def test_the_page_marks_doubtful_lines_without_changing_the_text(open_page, server):
    page = open_page(viewport={"width": 1200, "height": 800})
    page.get_by_role("textbox", name="Text to translate").fill(f"{GOOD}\n{BAD}")
    doubt = page.get_by_role("img", name="Please check this line: it is")
    doubt.wait_for()
    assert doubt.count() == 1
    assert doubt.get_attribute("title") == doubt.get_attribute("aria-label")
    _, answer = server.translate(f"{GOOD}\n{BAD}")
    assert page.locator("#translation").text_content() == answer["translatedText"]
    # Behind the second line.
    below = page.locator("#translation span").first.bounding_box()
    assert doubt.bounding_box()["y"] > below["y"] + below["height"] / 2
    page.get_by_role("textbox", name="Text to translate").fill(GOOD)
    doubt.wait_for(state="detached")


def test_a_report_draws_the_curve(calibrated):
    drawing = risk_of(calibrated)
    fit = json.loads((calibrated / "quality.json").read_text())["fits"][0]
    points = drawing.curves["validation"]
    assert drawing.chart is RISK
    assert [share for share, _ in points] == [round(100 * share) for share in fit["kept"]]
    assert [risk for _, risk in points] == [100 * risk for risk in fit["risk"]]
    assert drawing.best is None


def test_the_page_of_a_report_has_the_curve(nmt, calibrated, finished, tmp_path):
    """With the calibration of another model, changed to fit the weights of the run."""
    from nmt.files import sha256

    run = Path(shutil.copytree(finished, tmp_path / "run"))
    record = json.loads((calibrated / "quality.json").read_text())
    record["weights"] = sha256(run / "model/model.safetensors")
    (run / "model/quality.json").write_text(json.dumps(record))
    outcome = nmt("report", str(run), "sentences=0")
    assert outcome.code == 0, outcome.err
    page = (run / "report.html").read_text()
    assert "Risk and coverage" in page
    assert "by share of the validation lines kept: those with the highest probability" in page
