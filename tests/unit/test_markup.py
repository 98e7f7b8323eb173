"""Nothing that a text holds can become markup."""

import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest

from nmt.report.markup import Markup, escape, tag

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
    made = tag("p", text, title=text)
    made.encode()
    for root in (ET.fromstring(made),):
        assert root.tag == "p"
        assert list(root) == []
        assert root.text == root.get("title")
    parsed = Texts(made)
    assert parsed.names == ["p"]
    assert parsed.text == "".join("\ufffd" if c in "\0\x07\x7f\ud800\ufffe\uffff" else c for c in text)


def test_markup_is_not_escaped_again():
    assert tag("b", tag("i", "<")) == "<b><i>&lt;</i></b>"
    assert escape(Markup("<i>")) == "<i>"
    assert escape("<i>") == "&lt;i&gt;"


def test_attributes_are_written_as_html_has_them():
    assert tag("text", "a", text_anchor="end", class_="unit", x=1, y=None) == (
        '<text text-anchor="end" class="unit" x="1">a</text>'
    )
    assert tag("meta", name_="viewport") == '<meta name="viewport" />'
