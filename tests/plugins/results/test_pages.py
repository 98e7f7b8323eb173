"""Text never becomes markup; numbers and differences are readable."""

import math
import xml.etree.ElementTree as ET

from nmt.plugins.results import pages
from nmt.plugins.results.pages import differences, number, render

HOSTILE = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)> ' onmouseover='alert(1)",
    "</style></svg>&lt;b&gt; ]]> {{ 7 * 7 }}",
    "nul \0 bell \x07 delete \x7f, half \ud800 pair, \u202eright to left\u2066 \ufffe\uffff",
]


def test_hostile_text_stays_text(tmp_path, monkeypatch):
    source = (
        '{% from "training_parts.html" import fact, text_example with context %}'
        "<p>{% call fact('Validation ' ~ text, text) %}{{ text }}{% endcall %}"
        "{{ text_example(example, sides, {'source': text}) }}{{ none }}</p>"
    )
    (tmp_path / "x.html").write_text(source)
    (tmp_path / "training_parts.html").write_text((pages.TEMPLATES / "training_parts.html").read_text())
    monkeypatch.setattr(pages, "TEMPLATES", tmp_path)
    for text in HOSTILE:
        example = {"source": text, "reference": text, "hypothesis": text, "value": 1.0}
        page = render("x.html", text=text, example=example, sides=([(text, True)], [(text, False)]))
        page.encode()
        shown = "".join("\ufffd" if c in "\0\x07\x7f\ud800\ufffe\uffff" else c for c in text)
        root = ET.fromstring(page)
        assert {element.tag for element in root.iter()} <= {"p", "div", "dt", "dd", "article", "dl", "mark", "span"}
        assert {key for e in root.iter() for key in e.attrib} <= {"class", "lang", "dir"}
        assert "".join(root.itertext()).count(shown) == 6


def test_numbers_read_as_people_write_them():
    for value, text in (
        *((0, "0"), (math.nan, "nan"), (3.14159, "3.142"), (-0.5, "-0.5"), (12345.6, "12,346"), (0.0700, "0.07")),
        *((3.3e18, "3.3e+18"), (9999.9, "10,000"), (1_896_000_001, "1,896,000,001"), (65_123_456.0, "65,123,456")),
    ):
        assert number(value) == text


def test_parts_spell_both_texts_and_mark_what_differs():
    reference, hypothesis = "Der rote Hund läuft.", "Der blaue Hund läuft schnell!"
    missed, wrong = differences(reference, hypothesis)
    assert "".join(text for text, _ in missed) == reference
    assert "".join(text for text, _ in wrong) == hypothesis
    assert [text for text, differs in missed if differs] == ["rote", "."]
    assert [text for text, differs in wrong if differs] == ["blaue", "schnell!"]
    assert differences("Ja, gut.", "Ja, gut.") == ([("Ja, gut.", False)], [("Ja, gut.", False)])
    assert differences("Ja", "") == ([("Ja", True)], [])
