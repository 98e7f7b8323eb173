"""Words of others stay words in Markdown: as a renderer for GitHub's Markdown shows them."""

import html
import re

import pytest

from nmt.files import plain
from nmt.files.markdown import block, cell, code

HOSTILE = [
    "<script>alert(1)</script>",
    "a\n# b",
    "a | b",
    "`a` ``b``",
    "[x](javascript:y) ![](z)",
    "**a** ~~b~~",
    "&lt;b&gt; &#60;",
    r"a\|b \<i> \\",
    "quickstart_en_de & Co. (x) 日本 #1",
]


def rendered(text: str) -> str:
    """The text of an inline that holds no markup, as CommonMark reads it: escapes and entities; NMT's own or not."""
    bare = re.sub(r"\\[!-/:-@\[-`{-~]", "", text)
    assert not re.search(r"[`*\[\]<>|~]|&#?\w+;", bare), text
    return html.unescape(re.sub(r"\\([!-/:-@\[-`{-~])", lambda found: f"&#{ord(found[1])};", text))


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_is_shown_as_it_is_on_one_line(text):
    assert rendered(plain(text)) == " ".join(text.split())


def test_letters_that_hide_are_replaced():
    assert plain("a\0b\x1b[31m\u202ec\x7f") == "a\ufffdb\ufffd\\[31m\ufffdc\ufffd"


@pytest.mark.parametrize("text", [*HOSTILE, "`", "``` ````", ""])
def test_code_ends_where_it_should(text):
    span = code(text)
    marks = re.match("`+", span)[0]
    inner = span[len(marks) : -len(marks)]
    assert marks not in re.findall("`+", inner)
    assert inner.strip() == " ".join(text.split())
    fence, *lines, last = block(text).split("\n")
    assert fence == last
    assert "\n".join(lines) == text
    assert not any(line.strip().startswith(fence) for line in lines)


def test_code_in_a_table_is_one_cell():
    assert cell(code("nrefs:1|case:mixed")) == r"`nrefs:1\|case:mixed`"
