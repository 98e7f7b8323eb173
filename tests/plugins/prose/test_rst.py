"""reStructuredText: only text changes, and its structure stays."""

import pytest

from nmt.config import NMTError
from nmt.translation import Translated, read_document
from tests.helpers.pseudo import pseudo


def turned(lines: list[str]) -> list[Translated]:
    """A translation into capitals in reverse order."""
    translations = []
    for line in lines:
        words = line.upper().split()[::-1]
        alignment = [(n, len(words) - 1 - n) for n in range(len(words))]
        translations.append(Translated(" ".join(words), alignment))
    return translations


def without_blanks(lines: list[str]) -> list[Translated]:
    """A translation into a script without blanks."""
    return [Translated("".join(line.upper().split())) for line in lines]


BLOCKS = [
    ("One\ntwo.\n", "ONE\nTWO.\n"),
    ("Title\n=====\n\nText.\n", "TITLE\n=====\n\nTEXT.\n"),
    ("====\nHead\n====\n\nText.\n", "====\nHEAD\n====\n\nTEXT.\n"),
    ("- one\n  two\n\n  * three\n", "- ONE\n  TWO\n\n  * THREE\n"),
    ("1. one\n#. two\n(a) three\n", "1. ONE\n#. TWO\n(a) THREE\n"),
    ("term\n    A text.\n", "TERM\n    A TEXT.\n"),
    ("x : int\n    A text.\n", "x : int\n    A TEXT.\n"),
    ("-o FILE  A file.\n--all   All of it.\n", "-o FILE  A FILE.\n--all   ALL OF IT.\n"),
    ("Text.\n\n:param x: a text\n:rtype: str\n", "TEXT.\n\n:param x: A TEXT\n:rtype: str\n"),
    ("| one\n| two\n", "| ONE\n| TWO\n"),
    ("Code::\n\n  code here\n\nText.\n", "CODE::\n\n  code here\n\nTEXT.\n"),
    ("Code::\n\n> code here\n\nText.\n", "CODE::\n\n> code here\n\nTEXT.\n"),
    (">>> print(one)\none\n\nText.\n", ">>> print(one)\none\n\nTEXT.\n"),
    (".. a comment\n   here\n\nText.\n", ".. a comment\n   here\n\nTEXT.\n"),
    (".. note:: one\n   two\n\n   three\n", ".. note:: ONE\n   TWO\n\n   THREE\n"),
    (".. note::\n   :class: x\n\n   one\n", ".. note::\n   :class: x\n\n   ONE\n"),
    (".. note::\n   See::\n\n     code\n", ".. note::\n   SEE::\n\n     code\n"),
    (".. topic:: A title\n\n   one\n", ".. topic:: A TITLE\n\n   ONE\n"),
    (".. code-block:: c\n   :caption: A text\n\n   code\n", None),
    (".. versionadded:: 3.8 A text.\n", ".. versionadded:: 3.8 A TEXT.\n"),
    (".. figure:: a.png\n   :alt: A text\n\n   Below.\n", None),
    (".. |x| replace:: a text\n", ".. |x| replace:: A TEXT\n"),
    (".. [1] A text.\n.. _name: target\n", ".. [1] A TEXT.\n.. _name: target\n"),
    (".. py:function:: f(x)\n\n   A text.\n", ".. py:function:: f(x)\n\n   A TEXT.\n"),
    ("Text.\n\n.. raw:: html\n\n   <b>\n\nEnd.\n", "TEXT.\n\n.. raw:: html\n\n   <b>\n\nEND.\n"),
]


@pytest.mark.parametrize(("source", "expected"), BLOCKS)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_blocks(source, expected, newline):
    if expected is None:
        expected = source.replace("A text", "A TEXT").replace("Below.", "BELOW.")
    source = source.replace("\n", newline)
    assert pseudo("rst", source)[1] == expected.replace("\n", newline)


INLINES = [
    ("*one* two ``code`` x", "X ``code`` TWO *ONE*"),
    ("see :ref:`the text <label>` now", "NOW :ref:`TEXT THE <label>` SEE"),
    ("see :class:`~x.Y` now", "NOW :class:`~x.Y` SEE"),
    ("a `link text <http://x.y>`_ b", "B `TEXT LINK <http://x.y>`__ A"),
    ("an `other part`_ b", "B `PART OTHER <other part_>`__ AN"),
    ("text [1]_ more |name| end", "END |name| [1]_ MORE TEXT"),
    ("two * three here", "HERE THREE * TWO"),
]


@pytest.mark.parametrize(("source", "expected"), INLINES)
def test_inline_markup(source, expected):
    assert pseudo("rst", source, turned)[1] == expected


def test_letters_beside_code():
    assert pseudo("rst", "see ``x`` now", without_blanks)[1] == "SEE\\ ``x``\\ NOW"


@pytest.mark.parametrize("beginning", ["- x", "1. x", ".. x", "A. x", ":x: y", ">>> x", "| x"])
def test_a_paragraph_stays_a_paragraph(beginning):
    document = read_document("rst", b"Text here.\n")
    result = document.join([Translated(beginning)])
    assert result.decode() == f"\\{beginning.replace('|', chr(92) + '|')}\n" or b"\\" in result
    assert read_document("rst", result).lines == [beginning]


def test_the_line_below_a_title_is_as_wide_as_the_title():
    document = read_document("rst", b"Title\n=====\n")
    assert document.join([Translated("Überschrift")]).decode() == "Überschrift\n===========\n"
    assert document.join([Translated("見出し")]).decode() == "見出し\n======\n"


def test_references_to_titles_resolve():
    source = "Quick start\n===========\n\nSee `Quick start`_.\n"
    result = pseudo("rst", source)[1]
    assert result == (
        ".. _`Quick start`:\n\nQUICK START\n===========\n\nSEE `QUICK START <Quick start_>`__.\n"
    )


def test_a_word_that_an_included_file_may_define_gets_no_target():
    source = "Clang\n=====\n\nUse clang_ now.\n"
    include = "\n.. include:: links.rst\n"
    assert ".. _`Clang`:" in pseudo("rst", source)[1]
    assert ".. _" not in pseudo("rst", source + include)[1]
    phrase = "Quick start\n===========\n\nSee `Quick start`_.\n"
    assert ".. _`Quick start`:" in pseudo("rst", phrase + include)[1]


def test_what_stays_is_counted():
    table = "+---+\n| a |\n+---+\n\n== ==\nab cd\n== ==\n"
    source = (
        f":Author: Me\n\n{table}\n.. glossary::\n\n   term\n      Text.\n\n.. odd:: x\n\n   y\n"
    )
    lines, result, notice = pseudo("rst", source)
    assert lines == ["Text."]
    assert result == source.replace("Text.", "TEXT.")
    assert notice == (
        "fields at the beginning left untranslated: 1; tables left untranslated: 2; "
        "terms of glossaries left untranslated: 1; unknown directives left untranslated: 1"
    )


def test_lost_markup_leaves_a_paragraph_untranslated():
    document = read_document("rst", b"See [1]_ and ``x`` *now*.\n")
    result = document.join([Translated("A ``new`` and `one`_.")])
    assert b"``x``" in result
    source = read_document("rst", result)
    assert source.join([Translated(line) for line in source.lines]) == result


HOSTILE = [
    "- ",
    "> ",
    ".. note:: ",
    "`a ",
    "*a ",
    "``a ",
    "|a ",
    "[a",
    "a_b ",
    ":a:`",
    " ",
    "  -\n",
    "\\",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_files_take_linear_time(piece):
    text = piece * (20_000 // len(piece))
    for form in (text, text.replace(" ", "\n")):
        try:
            document = read_document("rst", form.encode())
        except NMTError:
            continue
        assert document.join([Translated(line) for line in document.lines]) == form.encode()


def test_attributions_are_counted():
    source = "One.\n\n    Two.\n\n    -- Bob of it\n"
    lines, result, notice = pseudo("rst", source)
    assert lines == ["One.", "Two."]
    assert result.endswith("\n    -- Bob of it\n")
    assert notice == "attributions of quotations left untranslated: 1"
