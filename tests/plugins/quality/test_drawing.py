"""The chart of a calibrated model, as a real browser draws it."""

from pathlib import Path
from typing import Any

from nmt.plugins.quality.drawing import svg_of
from nmt.plugins.quality.record import read_record
from nmt.plugins.results.risk_chart import RISK
from tests.plugins.serve import browsers

browser = browsers.browser
BOXES = """[...document.querySelectorAll("text")].map(text => {
    const { x, y, width, height } = text.getBBox();
    return [text.textContent, x, y, x + width, y + height];
})"""
VIEW = "[...document.documentElement.getAttribute('viewBox').split(' ').map(Number)]"


def overlap(one: list[Any], other: list[Any]) -> bool:
    is_apart_across = one[3] <= other[1] or other[3] <= one[1]
    is_apart_down = one[4] <= other[2] or other[4] <= one[2]
    return not (is_apart_across or is_apart_down)


def test_all_labels_of_the_chart_are_within_it_and_apart(browser, calibrated, tmp_path):
    chart = Path(tmp_path / "quality.svg")
    chart.write_text(svg_of(read_record(calibrated, str(calibrated))))
    page = browser.new_page()
    page.goto(chart.as_uri())
    x, y, width, height = page.evaluate(VIEW)
    texts = page.evaluate(BOXES)
    page.close()
    words = [text[0] for text in texts]
    assert {RISK.unit, RISK.by, "0%", "50%", "100%"} <= set(words)
    for _, left, top, right, bottom in texts:
        assert x <= left < right <= x + width
        assert y <= top < bottom <= y + height
    for number, text in enumerate(texts):
        assert [other[0] for other in texts[number + 1 :] if overlap(text, other)] == []
