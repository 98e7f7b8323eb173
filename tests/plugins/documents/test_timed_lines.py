"""Simple formats of subtitles and lyrics, and TTML."""

import pytest

from nmt.config import NMTError
from nmt.translation import read_document
from tests.helpers.pseudo import capitals, pseudo

MICRODVD = "{1}{1}25.000\n{10}{50}{y:i}One two|three\n{60}{}/- Four|/- five {C:$FF}six\n"
SUBVIEWER = "[TITLE]x\n[SUBTITLE]\n00:01:02.03,00:01:03.04\n- One[br]- two\n\n00:01:04.03,00:01:05.04\nSix\n"
SBV = "0:00:00.599,0:00:04.160\nOne\ntwo\n\n0:00:04.160,0:00:06.770\nThree\n"
LRC = "[ar:A name]\n[00:12.00][01:15.00]One two\n[00:15.30]<00:15.30> Three <00:16.00> four\n\n"


@pytest.mark.parametrize(
    ("format", "source", "lines"),
    [
        ("sub", MICRODVD, ["One two three", "Four", "five six"]),
        ("sub", SUBVIEWER, ["One", "two", "Six"]),
        ("sbv", SBV, ["One two", "Three"]),
        ("lrc", LRC, ["One two", "Three four"]),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_only_text_changes(format, source, lines, end):
    source = source.replace("\n", end)
    read, result, notice = pseudo(format, source)
    assert (read, notice) == (lines, "")
    words = " ".join(lines).split()
    expected = source.replace("<00:15.30> Three <00:16.00> f", " <00:15.30>Three <00:16.00>f")
    for word in words:
        expected = expected.replace(word, word.upper())
    assert result == expected


@pytest.mark.parametrize("format", ["sub", "sbv", "lrc"])
def test_other_files_are_refused(format):
    with pytest.raises(NMTError, match="no line has times"):
        read_document(format, b"Only text\n")


@pytest.mark.parametrize(("format", "root"), [("ttml", "tt"), ("xliff", "xliff")])
def test_xml_of_another_format_is_refused(format, root):
    with pytest.raises(NMTError, match=f"its root is <project>, not <{root}>"):
        read_document(format, b"<!-- a --><project><p>Text</p></project>")


TTML = """<?xml version="1.0" encoding="UTF-8"?>
<tt xmlns="http://www.w3.org/ns/ttml" xmlns:tts="http://www.w3.org/ns/ttml#styling" xml:lang="en">
<head><metadata><title>Stays</title></metadata></head><body><div>
<p begin="00:00:01.000" end="00:00:02.000">One <span tts:color="red">two</span><br/>three &amp; x</p>
<p xml:lang="fr">Un deux</p>
<p><span tts:ruby="container"><span tts:ruby="base">four</span>
<span tts:ruby="text">read</span></span> five</p>
</div></body></tt>
"""


def test_paragraphs_of_ttml():
    assert pseudo("ttml", TTML)[0] == ["One two three & x", "Un deux", "four five"]
    document = read_document("ttml", TTML.encode(), "de", "en")
    lines = document.lines
    result = document.join(capitals(lines)).decode()
    notice = document.notice
    assert lines == ["One two three & x", "four five"]
    assert 'xml:lang="de">\n<head>' in result
    assert '>ONE <span tts:color="red">TWO</span><br/>THREE &amp; X</p>' in result
    assert "<title>Stays</title>" in result
    assert "<p>FOUR FIVE</p>" in result
    assert notice == "elements in other languages left unchanged: 1; readings (ruby) left out: 1"
