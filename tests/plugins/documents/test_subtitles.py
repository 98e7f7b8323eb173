"""Subtitles, also those that deviate from the standards: only the text below times changes."""

import pytest

from nmt.translation import read_document
from tests.helpers.pseudo import capitals, pseudo

TIMES = "00:00:01,000 --> 00:00:03,000"
ODD_TIMES = [
    "00:00:01.000 --> 00:00:03.000",
    "00:01.000 --> 00:03.000",
    "0:0:1,0 --> 0:0:3,0",
    "00:00:01,000-->00:00:03,000",
    "  00:00:01,000  -->  00:00:03,000  ",
    "00:00:01,000 --> 00:00:03,000  X1:40 X2:600 Y1:20 Y2:50",
    "00:00:01 --> 00:00:03",
    "00:00:01:000 --> 00:00:03:000",
    "00:00:01,000 -> 00:00:03,000",
    "00: 00: 01, 000 --> 00: 00: 03, 000",
    "00:01.000 --> 00:03.000 align:start position:10%,line-left size:35% line:0",
    "100:00:01,000 ---> 100:00:03,000",
]


@pytest.mark.parametrize("times", ODD_TIMES)
@pytest.mark.parametrize("index", ["7\n", "", "#7\n", " 7 \n", "7.\n"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lenient_forms_of_times(times, index, end):
    cues = [
        f"1\n{TIMES}\nOne\n\n",
        f"{index}{times}\nTwo\nthree\n",
        f"{index}{times}\n- Four\n- five",
    ]
    source = "".join(cues).replace("\n", end)
    lines, result, notice = pseudo("srt", source)
    assert (lines, notice) == (["One", "Two three", "Four", "five"], "")
    for word in ("One", "Two", "three", "Four", "five"):
        source = source.replace(word, word.upper())
    assert result == source


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("blank", ["\n", "\n\n", "  \n", "\n\t\n"])
@pytest.mark.parametrize("cue", [1, 2, 3])
def test_text_after_an_empty_line_belongs_to_the_subtitle(end, blank, cue):
    texts = {number: f"One {number}\n" for number in (1, 2, 3)}
    texts[cue] += f"{blank}Two\n{blank}Three 3\n"
    source = ""
    expected_lines = []
    for number, text in texts.items():
        source += f"{number}\n{TIMES}\n{text}\n".replace("\n", end)
        expected_lines.append(f"One {number}")
        if number == cue:
            expected_lines += ["Two", "Three 3"]
    lines, result, notice = pseudo("srt", source)
    assert lines == expected_lines
    expected = source
    for word in ("One", "Two", "Three"):
        expected = expected.replace(word, word.upper())
    assert result == expected
    assert notice == ""


BEFORE, AFTER = "00:00:03,000", "00:00:04,000"
ODD_ARROWS = [
    " -- > ",
    " - - > ",
    " \u2192 ",
    " ==> ",
    " --&gt; ",
    " &rarr; ",
    " - ",
    " \u2192> ",
    " => ",
    " \u21d2 ",
    " \u2014 ",
    " ",
    "  ",
    "\t",
    ",",
    "-",
    " > ",
    " >> ",
    " to ",
    " -\u2013> ",
    " --) ",
    " .. ",
    " \u279c ",
]
DAMAGED_TIMES = [
    *(f"{BEFORE}{arrow}{AFTER}" for arrow in ODD_ARROWS),
    "0:0:3,0 \u2192 0:0:4,0",
    "00:00:03 \u2192 00:00:04",
    "00:00:03 00:00:04",
    "00:00:03:12 - 00:00:04:12",
    "00:00:03;12 \u2192 00:00:04;12",
    "-00:00:03,000 \u2192 00:00:04,000",
    "00:03.000 - 00:04.000",
    "00:03 \u2192 00:04",
    "00:03 - 00:04",
    "00:00:0l,000 \u2192 OO:00:04,000",
    "00:00:03,000 \u2192",
    "\u2192 00:00:04,000",
    "00:00:03,000",
    "(00:00:03,000 \u2192 00:00:04,000)",
    '<font color="red">00:00:03,000 \u2192 00:00:04,000</font>',
    "{\\an8}00:00:03,000 \u2192 00:00:04,000",
    "2 00:00:03,000 \u2192 00:00:04,000",
    "00:00:03,000 \u2192 00:00:04,000 X1:40 X2:600",
    "00:00:03,000 \u2192 00:00:04,000 Some text",
    "\uff10\uff10\uff1a00\uff1a03\uff0c000 \u2192 00:00:04,000",
]


@pytest.mark.parametrize("times", DAMAGED_TIMES)
@pytest.mark.parametrize("index", ["\n2\n", "\n", "2\n"])
def test_damaged_times_stay_and_are_reported(times, index):
    source = f"1\n{TIMES}\nOne\n{index}{times}\nTwo three.\n\n3\n{TIMES}\nFour\n"
    lines, result, notice = pseudo("srt", source)
    assert lines == ["One", "Two three.", "Four"]
    line = source.split("\n").index(times) + 1
    for text in ("One", "Two three", "Four"):
        source = source.replace(text, text.upper())
    assert result == source
    assert notice == f"lines that are not valid as times left unchanged: 1 (line {line})"


@pytest.mark.parametrize(
    "text",
    [
        "At 10:30 - 11:00 we meet",
        "10:30 - 11:00 we meet",
        "Bob: 10:30 \u2192 11:00",
        "They won 3:1 - 2:0",
        "We meet\n10:30 - 11:00\nin the hall",
        "At 00:00:03 sharp",
        "Menu -> File",
        "It rose from 1.5 \u2192 2.5",
        "the days\n(01.02.2024 - 03.04.2024)\nin May",
        "the range\n(192.168.0.1 - 192.168.0.9)\nis ours",
        "It is\n10:30",
    ],
)
def test_times_of_a_day_are_text(text):
    lines, _, notice = pseudo("srt", f"1\n{TIMES}\n{text}\n")
    assert (lines, notice) == ([text.replace("\n", " ")], "")


def test_a_hard_space_separates_words_and_stays():
    lines, result, _ = pseudo("srt", f"1\n{TIMES}\nRoom\\h12 is\\hopen\\h\\hnow\n")
    assert lines == ["Room 12 is open now"]
    assert result == f"1\n{TIMES}\nROOM\\h12 IS\\hOPEN\\h\\hNOW\n"


def test_text_outside_of_subtitles_is_reported():
    source = f"My credit\n12\n\n1\n{TIMES}\nOne\n\n2\n00:00:0l,000 --> 00:00:04,000\nTwo <!-- three -->\n"
    lines, result, notice = pseudo("srt", source)
    assert lines == ["One", "Two"]
    assert result == source.replace("One", "ONE").replace("Two", "TWO")
    assert notice == (
        "text before the first subtitle left unchanged: 1 (line 1); "
        "lines that are not valid as times left unchanged: 1 (line 9)"
    )
    assert pseudo("srt", "{0}{25}One\n")[::2] == (
        [],
        "text before the first subtitle left unchanged: 1 (line 1)",
    )


WEBVTT = """WEBVTT - A title
Kind: captions

NOTE a remark
of two lines

STYLE
::cue(b) { color: red }

REGION
id:fred

intro
00:01.000 --> 01:00:02.000 align:start region:fred
<v Bob>Hello <c.yellow.bg_blue>old</c> you &amp; me &lt;3&nbsp;x
<v.loud Al Bo>Hi <00:01.500>there</v>, <i.a>you</i>

after an empty line

NOTE

2 - a name
00:03.000 --> 00:04.000
- one
- <b>two</b> <lang fr>bof</lang>&lrm;

NOTE the end
"""


@pytest.mark.parametrize("format", ["vtt", "srt"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_only_the_text_of_webvtt_changes(format, end):
    lines, result, notice = pseudo(format, WEBVTT.replace("\n", end))
    spoken = [
        "Hello old you & me <3 x",
        "Hi there, you",
        "after an empty line",
        "one",
        "two bof\u200e",
    ]
    assert (lines, notice) == (spoken, "")
    expected = WEBVTT.replace("&nbsp;", " ").replace("&lrm;", "\u200e")
    for word in (
        "Hello",
        ">old",
        "you &",
        "me &",
        "3 x",
        "Hi ",
        ">there",
        ">you",
        "after an empty line",
        "- one",
        ">two",
        ">bof",
    ):
        expected = expected.replace(word, word.upper())
    assert result == expected.replace("\n", end)


def test_the_content_decides_the_format():
    assert pseudo("vtt", f"1\n{TIMES}\na {{x}} & b\n")[1] == f"1\n{TIMES}\nA {{x}} & B\n"
    assert pseudo("srt", "WEBVTT\n\n00:01.000 --> 00:02.000\na &amp; <b")[0] == ["a & <b"]


def test_blocks_of_webvtt_stay_even_with_damaged_times_inside():
    source = (
        "WEBVTT\nX-TIMESTAMP-MAP=LOCAL:00:00:00.000,MPEGTS:900000\n\n"
        "STYLE\n::cue { color: red } /*\n00:00:00.000 -- > 00:00:01.000\n*/\n\n"
        "00:01.000 --> 00:02.000 line:0%\none\n\n"
        "NOTE\n00:00:03.000 -- > 00:00:04.000\nremark\n\n"
        "00:05.000 --> 00:06.000\ntwo\n"
    )
    lines, result, notice = pseudo("vtt", source)
    assert (lines, notice) == (["one", "two"], "")
    assert result == source.replace("one\n", "ONE\n").replace("two\n", "TWO\n")


def test_times_of_words_in_webvtt_stay_in_order():
    words = "so<00:01.240><c> we</c><00:01.500><c> begin</c>"
    source = f"WEBVTT\nKind: captions\nLanguage: en\n\n00:01.000 --> 00:02.000\n{words}\n"
    lines, result, _ = pseudo("vtt", source)
    assert lines == ["so we begin"]
    assert result.endswith("SO <00:01.240><c>WE</c> <00:01.500><c>BEGIN</c>\n")
    document = read_document("vtt", source.encode(), "de", "en")
    result = document.join(capitals(document.lines)).decode()
    assert "Language: de\n" in result
