"""USFM: verses, notes and the order of markers."""

import re
from collections import Counter

import pytest

from nmt.errors import NMTError
from nmt.translation import Translated, read_document
from tests.helpers.pseudo import pseudo

MARKER = re.compile(r"\\\+?[a-z]+\d*(?:-[a-z\d]+)?\*?|\\\*")
BOOK = r"""\id GEN A book
\ide UTF-8
\rem A comment
\h Genesis
\toc1 The Book of Genesis
\mt1 Genesis
\is Introduction
\ip A first paragraph without an end
\ip A second one
\c 1
\s1 The Creation
\r (John 1:1-5)
\p
\v 1 In the beginning \nd God\nd* created~the heavens.
\q1
\v 3-4 \va 4\va* Judah was the father of Perez,
\q1 Perez the father of Hezron,
\b
\q2 and Hezron the \f + \fr 1:3 \ft Greek Aram, \fqa see \ft also \+xt 1 Chr 2:9\+xt*.\f*father of Ram.
\pi1 And more\x - \xo 1:3 \xt Gen 1\x* text
\v 5 a \w gnat|lemma="gnat" strong="H1"\w* is \qt-s |sid="a" who="b"\*here\qt-e |eid="a"\*
\fig A man|src="x.jpg" size="col" ref="1.1"\fig*
\tr \th1 Day \thr2 Tribe
\tr \tc1 1st \tcr2 Judah
\zfoo Something new
\v 6 \wj “I \add am\add*,”\wj* he said \zx oddly\zx*.
"""


def reversed_words(lines: list[str]) -> list[Translated]:
    """A translation into capitals in reverse order."""
    translations = []
    for line in lines:
        words = line.upper().split()[::-1]
        alignment = [(n, len(words) - 1 - n) for n in range(len(words))]
        translations.append(Translated(" ".join(words), alignment))
    return translations


def test_lines_of_a_book():
    lines, result, notice = pseudo("usfm", BOOK)
    # The reference in the footnote is an item.
    assert [line for line in lines if "Aram" not in line] == [
        "Genesis",
        "The Book of Genesis",
        "Genesis",
        "Introduction",
        "A first paragraph without an end",
        "A second one",
        "The Creation",
        "In the beginning God created the heavens.",
        "Judah was the father of Perez, Perez the father of Hezron, and Hezron the father of Ram.",
        "And more text",
        "a gnat is here",
        "A man",
        "Day",
        "Tribe",
        "1st",
        "Judah",
        "Something new",
        "“I am,” he said oddly.",
    ]
    # In the same order, each marker has the text that it had.
    assert MARKER.findall(result) == MARKER.findall(BOOK)
    assert result.upper() == BOOK.upper()
    assert notice == "cross references left untranslated: 2"


def test_markers_of_paragraphs_keep_their_order():
    _, result, _ = pseudo("usfm", BOOK, reversed_words)
    assert Counter(MARKER.findall(result)) == Counter(MARKER.findall(BOOK))
    inline = re.compile(r"\\f .*?\\f\*|\\(?:x|w|nd|wj|add|zx) .*?\*|\\qt-[se].*?\\\*")
    assert MARKER.findall(inline.sub("", result)) == MARKER.findall(inline.sub("", BOOK))
    assert '\\w GNAT|lemma="gnat" strong="H1"\\w*' in result
    # A line is before the words that were in it.
    assert "\\v 3-4 \\va 4\\va* RAM. OF \\f + \\fr 1:3 \\ft" in result
    assert "HEZRON,\n\\q1 OF FATHER THE PEREZ PEREZ,\n\\b\n\\q2 OF" in result


@pytest.mark.parametrize(
    ("text", "translated"),
    [
        # A marker before another one needs a blank before text.
        ("\\v 1 One,\n\\q1\\nd two\\nd* three", "\\v 1 THREE \\nd TWO\\nd*\n\\q1 ONE,"),
        # The sentence in a line ends.
        ("\\v 1 One.\n\\q1 Two", "\\v 1 ONE.\n\\q1 TWO"),
        # A figure of USFM 2 has a caption as its sixth field.
        ("\\fig no|a.jpg|col||no|One two|1.1\\fig*", "\\fig no|a.jpg|col||no|TWO ONE|1.1\\fig*"),
        ("\\p one\\fe * \\ft two\\fe*", "\\p ONE\\fe * \\ft TWO\\fe*"),
        # Milestones of older versions end with their line.
        ('\\v 1 \\k-s | x="a/b"\n\\w one\\w*\n\\k-e', '\\v 1 \\k-s | x="a/b"\n\\w ONE\\w*\n\\k-e'),
        ('\\v 1 \\qt-s |a="no"\n b="no"\\*One', '\\v 1 \\qt-s |a="no"\n b="no"\\*ONE'),
        # A backslash without a marker divides the text.
        ("\\v 1 one \\ two", "\\v 1 ONE \\ TWO"),
        ("\\v 1 one \\v3- two", "\\v 1 ONE \\v3- TWO"),
        ("\\ip See \\xt no\n\\p one", "\\ip SEE \\xt no\n\\p ONE"),
        ("\\id GEN no \\h One \\v 1 two \\rem no", "\\id GEN no \\h ONE \\v 1 TWO \\rem no"),
        ("\ufeff\\h One\r\n\\p two\r\n", "\ufeff\\h ONE\r\n\\p TWO\r\n"),
    ],
)
def test_markers(text, translated):
    _, result, _ = pseudo("usfm", text, reversed_words)
    assert result == translated


def test_usx_has_the_rules_of_usfm():
    text = (
        '<usx version="3.0"><book code="GEN" style="id">no</book><chapter number="1" style="c"/>'
        '<para style="rem">no</para><para style="s1">Heading</para><para style="r">(no)</para>'
        '<para style="p"><verse number="1" style="v"/>In the <char style="nd">Lord</char><note '
        'caller="+" style="f"><char style="fr">1:1 no </char><char style="ft">See </char>'
        '<char style="xt">no</char></note> again.<verse eid="a"/><verse number="2" style="v"/>'
        'Next <note caller="-" style="x"><char style="xt">no</char></note>verse'
        '<figure style="fig" alt="Picture" file="no"/></para></usx>'
    )
    document = read_document("usx", text.encode(), "de", "en")
    result = document.join(reversed_words(document.lines)).decode()
    assert [line for line in document.lines if "no" not in line] == [
        "Heading",
        "In the Lord again.",
        "Next verse",
        "Picture",
    ]
    assert Counter(re.findall("<[^>]*>", result)) == Counter(
        re.findall("<[^>]*>", text.replace("Picture", "PICTURE"))
    )
    assert set(re.findall(r"\b[a-z]+\b", re.sub("<[^>]*>", " ", result))) == {"no"}
    assert document.notice == "cross references left untranslated: 2"


def test_translations_contain_no_markers():
    document = read_document("usfm", rb"\v 1 One")
    assert document.join([Translated(r"\v 2 Eins|x")]) == rb"\v 1 v 2 Einsx"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            '\\id TIT\n\\v 1 \\zaln-s |x-content="a"\\*\\w b\\w*\\zaln-e\\*',
            "line 2: \\zaln-s aligns words with the original language",
        ),
        ("\\v 1 a\n\\f + \\ft b\n\\v 2", "line 2: \\f is not closed: add \\f* where it ends"),
    ],
)
def test_what_a_translation_cannot_keep_is_refused(text, problem):
    with pytest.raises(NMTError) as error:
        read_document("usfm", text.encode())
    assert str(error.value).startswith(problem)
