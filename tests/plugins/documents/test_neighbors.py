"""Elements that adjoin without white space: each keeps its own text, and words stay whole."""

import json
import re
from itertools import combinations, product

import pytest

from nmt.items import COPY
from nmt.translation import Translated, read_document
from tests.plugins.documents.test_documents import translated, turned

EMPTY_OR_NESTED = re.compile(r"<(\w+)></\1>|<a>(?:(?!</a>).)*<a>")
"""An element without content, or a link in a link."""
LINKS = '<a href="/">Home</a><a href="/a">About us</a>'
ROWS = [
    # Format, file, its line for the model, translations in the same and in the opposite order.
    (
        "html",
        f"<nav>{LINKS}</nav>",
        "Home About us",
        '<nav><a href="/">HOME</a><a href="/a">ABOUT US</a></nav>',
        '<nav><a href="/a">US ABOUT</a><a href="/">HOME</a></nav>',
    ),
    (
        "html",
        "<b>Name:</b><span>Bob</span>",
        "Name: Bob",
        "<b>NAME:</b><span>BOB</span>",
        "<span>BOB</span><b>NAME:</b>",
    ),
    (
        "html",
        "<a>Home</a><!-- x --><a><b>Go</b></a> now",
        "Home Go now",
        "<a>HOME</a><!-- x --><a><b>GO</b></a> NOW",
        "NOW <a><b>GO</b></a><a>HOME</a><!-- x -->",
    ),
    (
        "html",
        "<b>One</b><i>Two</i><u>Three</u>",
        "One Two Three",
        "<b>ONE</b><i>TWO</i><u>THREE</u>",
        "<u>THREE</u><i>TWO</i><b>ONE</b>",
    ),
    (
        "html",
        "<a>One</a>|<a>Two</a>, <b>not</b><i>(really)</i>",
        "One| Two, not (really)",
        "<a>ONE</a>|<a>TWO</a>, <b>NOT</b><i>(REALLY)</i>",
        "<i>(REALLY)</i><b>NOT</b> <a>TWO</a>, <a>ONE</a>|",
    ),
    (
        "html",
        "<em>a</em><a>[1]</a><a>[2]</a> b",
        "a [1] [2] b",
        "<em>A</em><a>[1]</a><a>[2]</a> B",
        "B <a>[2]</a><a>[1]</a><em>A</em>",
    ),
    (
        "html",
        "<ruby>base<rt>reading</rt></ruby> word",
        "base word",
        "BASE WORD",
        "WORD BASE",
    ),
    (
        "html",
        "<ruby>a<rp>(<rt>x<rp>)</ruby> b",
        "a b",
        "A B",
        "B A",
    ),
    (
        "markdown",
        "[Home](/)[About us](/a)",
        "Home About us",
        "[HOME](/)[ABOUT US](/a)",
        "[US ABOUT](/a)[HOME](/)",
    ),
    (
        "markdown",
        "[**Home**](/)[*About*](/a) so",
        "Home About so",
        "[**HOME**](/)[*ABOUT*](/a) SO",
        "SO [*ABOUT*](/a)[**HOME**](/)",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1])
def test_adjoining_elements_keep_their_own_texts(row):
    format, source, line, same_order, opposite_order = row
    assert read_document(format, source.encode()).lines == [line]
    assert translated(format, source) == same_order
    assert translated(format, source, turned) == opposite_order


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("<b>O</b>pen <i>it</i>s", "Open its"),
        ("<b>O</b><i>pen</i> it", "Open it"),
        ("Un<b>believ</b><i>able</i> it", "Unbelievable it"),
        ("<b>2</b><b>1</b> of <b>a</b>/<b>b</b>", "21 of a/b"),
        ("<b>so</b><wbr><i>me</i>", "some"),
        ("<b>設</b><i>定</i>", "設定"),
        ("<b>Yes</b>/<i>no</i> <b>file</b><i>(s)</i>", "Yes/no file(s)"),
        ("<b>l'</b><i>eau</i>", "l'eau"),
    ],
)
def test_elements_inside_a_word_do_not_split_it(source, line):
    assert read_document("html", source.encode()).lines == [line]


def test_strings_of_programs_have_adjoining_elements_too():
    links = LINKS.replace('"', "'")
    source = f'["{links}"]'
    assert read_document("json", source.encode()).lines == ["Home About us"]
    expected = source.replace("Home", "HOME").replace("About us", "ABOUT US")
    assert translated("json", source) == expected


def test_a_button_beside_a_superscript_is_a_word_of_its_own():
    source = json.dumps(["Save<sup>[1]</sup><button>Go</button> x<sup>2</sup>"])
    [line] = read_document("json", source.encode()).lines
    assert COPY.sub("*", line) == "Save Go *"


@pytest.mark.parametrize(
    ("format", "text", "combination"),
    [
        ("html", "<p>Press <kbd>Ctrl</kbd>+<kbd>S</kbd> now.</p>", "<kbd>Ctrl</kbd>+<kbd>S</kbd>"),
        (
            "html",
            "<p>Open <code>a</code> &gt; <code>b</code> now.</p>",
            "<code>a</code> &gt; <code>b</code>",
        ),
        ("markdown", "Press `Ctrl` + `Alt` + `Del` now.\n", "`Ctrl` + `Alt` + `Del`"),
    ],
)
def test_a_key_combination_is_one_item(format, text, combination):
    document = read_document(format, text.encode(), "de", "en")
    [line] = document.lines
    [item] = [copy[0] for copy in COPY.finditer(line)]
    result = document.join([Translated(f"Jetzt {item} dr\u00fccken.")]).decode()
    assert f"Jetzt {combination} dr\u00fccken." in result


def test_text_between_elements_that_are_put_into_each_other_occurs_once():
    # Two source words are aligned with one, so the first link goes around the last element.
    source = "<em>a</em><a>[1]</a><a>[2]</a> b"
    document = read_document("html", source.encode())
    result = document.join([Translated("der [1]", [(1, 1), (3, 1)])]).decode()
    assert re.sub("<[^>]*>", "", result) == "der[1]"


@pytest.mark.parametrize("translation", ["der [1] [2]", "[1] der und", "[2] x [1]"])
def test_no_element_is_empty_and_no_link_is_in_another_link(translation):
    document = read_document("html", b"<em>a</em><a>[1]</a><a>[2]</a> b")
    pairs = list(product(range(4), range(3)))
    for alignment in [[], *([pair] for pair in pairs), *combinations(pairs, 2)]:
        result = document.join([Translated(translation, list(alignment))]).decode()
        assert not EMPTY_OR_NESTED.search(result), alignment


def test_an_element_inside_a_distant_element_keeps_its_word():
    source = f"<em>a</em>{' b' * 60} <a>c</a>"
    document = read_document("html", source.encode())
    assert document.join([Translated("der", [])]).decode() == "<a><em>der</em></a>"


def test_a_word_between_links_is_no_divider():
    document = read_document("html", b"<em>a</em><a>[1]</a><a>[2]</a> b")
    result = document.join([Translated("der [1] und", [(1, 0), (2, 2)])]).decode()
    assert result == "<em><a>der</a></em> [1] <a>und</a>"
