"""Nothing that a text holds can become markup."""

import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from markupsafe import Markup

from nmt.plugins.report.pages import templates

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</style></svg>&lt;b&gt;",
    "nul \0 bell \x07 delete \x7f",
    "half \ud800 pair",
    "\u202eright to left\u2066",
    "\ufffe\uffff",
    "]]>",
    "{{ 7 * 7 }}",
]


class Texts(HTMLParser):
    """The elements and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text):
    made = templates().from_string('<p title="{{ text }}">{{ text }}</p>').render(text=text)
    made.encode()
    root = ET.fromstring(made)
    assert root.tag == "p"
    assert list(root) == []
    assert root.text == root.get("title")
    parsed = Texts(made)
    assert parsed.names == ["p"]
    assert parsed.text == "".join("\ufffd" if c in "\0\x07\x7f\ud800\ufffe\uffff" else c for c in text)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text_in_what_the_pages_make_of_it(text):
    source = (
        '{% from "training_parts.html" import fact, text_example, tree_example with context %}'
        "<p>{% call fact('Validation ' ~ text, text) %}{{ text }}{% endcall %}"
        "{{ text_example(example, sides, {'source': text}) }}{{ tree_example(example, labels) }}</p>"
    )
    example = {"source": text, "reference": text, "hypothesis": text, "value": 1.0}
    label = {"text": text, "kind": "word", "row": 1, "start": 0, "end": 1}
    sides = ([(text, True)], [(text, False)])
    made = templates().from_string(source).render(text=text, example=example, sides=sides, labels=[label])
    made.encode()
    shown = "".join("\ufffd" if c in "\0\x07\x7f\ud800\ufffe\uffff" else c for c in text)
    root = ET.fromstring(made)
    assert {element.tag for element in root.iter()} <= {"p", "div", "dt", "dd", "article", "dl", "mark", "span"}
    assert {key for e in root.iter() for key in e.attrib} <= {"class", "lang", "dir", "style", "role", "aria-label"}
    assert "".join(root.itertext()).count(shown) == 7
    assert "\0" not in made


def test_what_is_markup_already_is_not_escaped_again_and_nothing_is_printed_for_none():
    assert templates().from_string("{{ a }}{{ b }}{{ c }}").render(a=Markup("<i>"), b="<i>", c=None) == "<i>&lt;i&gt;"
