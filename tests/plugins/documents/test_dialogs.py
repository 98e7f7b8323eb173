"""Dialogs in subtitles: each turn is a sentence, and its mark stays."""

import pytest

from nmt.config import NMTError
from nmt.translation import read_document
from tests.helpers.pseudo import pseudo
from tests.plugins.documents.test_substation import EVENT, HEAD, reverse

TIMES = "00:00:01,000 --> 00:00:03,000"
SUBRIP = f"1\n{TIMES}\nTEXT\n"
WEBVTT = "WEBVTT\n\n00:01.000 --> 00:02.000\nTEXT\n"
TTML = '<tt xmlns="http://www.w3.org/ns/ttml"><body><div><p>TEXT</p></div></body></tt>'
TURNS = ["Where is it?", "In here."]


def texts_of(format, frame, text):
    """The lines of a subtitle with this text, and its text after a translation."""
    before, after = frame.split("TEXT")
    lines, result, _ = pseudo(format, frame.replace("TEXT", text), reverse)
    assert result.startswith(before)
    assert result.endswith(after)
    return lines, result[len(before) : len(result) - len(after)]


def turned(text):
    for turn in TURNS:
        text = text.replace(turn, reverse([turn])[0].text)
    return text


DIALOGS = [
    "- Where is it?\n- In here.",
    "-Where is it?\n-In here.",
    "<i>- Where is it?\n- In here.</i>",
    "<i>- Where is it?</i>\n- In here.",
    "- <i>Where is it?</i>\n- <i>In here.</i>",
    "-<i>Where is it?</i>\n-<i>In here.</i>",
    "<i><b>\u2013 Where is it?</b></i>\n<i>\u2013 In here.</i>",
    "Where is it?\n<i>-In here.</i>",
]


@pytest.mark.parametrize("text", [*DIALOGS, ">> Where is it?\n>>In here."])
@pytest.mark.parametrize(("format", "frame"), [("srt", SUBRIP), ("vtt", WEBVTT)])
def test_marks_stay_at_the_beginnings_of_lines(format, frame, text):
    assert texts_of(format, frame, text) == (TURNS, turned(text))


@pytest.mark.parametrize(
    "text",
    [
        r"{\an8}- Where is it?" "\n- In here.",
        r"{\an8}<i>- Where is it?</i>" "\n" r"{\an8}<i>- In here.</i>",
        '<font color="red">- Where is it?</font>\n<font color="blue">- In here.</font>',
        "Where is it? >> In here.",
    ],
)
def test_marks_in_subrip(text):
    assert texts_of("srt", SUBRIP, text) == (TURNS, turned(text))


@pytest.mark.parametrize(
    "text",
    [
        "<v Mary>- Where is it?</v>\n<v Bob>- In here.</v>",
        "<c.red>- Where is it?</c>\n<c.blue>- In here.</c>",
        "&gt;&gt; Where is it?\n&gt;&gt; In here.",
    ],
)
def test_marks_in_webvtt(text):
    assert texts_of("vtt", WEBVTT, text) == (TURNS, turned(text))


@pytest.mark.parametrize(
    "text",
    [
        *[text.replace("\n", "<br/>") for text in DIALOGS if "<" not in text],
        "\n  - Where is it?\n  <br/>\n  - In here.\n",
        "<span>- Where is it?</span><br/><span>- In here.</span>",
        "<span>- Where is it?<br/>- In here.</span>",
        "- Where is it?<br/><br/>- In here.",
        "&gt;&gt; Where is it?<br/>&gt;&gt; In here.",
    ],
)
def test_marks_in_ttml(text):
    assert texts_of("ttml", TTML, text) == (TURNS, turned(text))


@pytest.mark.parametrize("line_break", ["\n", "<br/>"])
def test_lines_of_songs_are_sentences(line_break):
    format, frame = ("srt", SUBRIP) if line_break == "\n" else ("ttml", TTML)
    lines, _ = texts_of(format, frame, f"\u266a One two{line_break}\u266a three \u266a")
    assert lines == ["\u266a One two", "\u266a three \u266a"]


@pytest.mark.parametrize(
    "text", ["<b>One</b> - two", "-5 degrees", "<b>One</b>-two", "cin >> x", "-> File", "-- so"]
)
def test_other_signs_are_text(text):
    lines, _ = texts_of("srt", SUBRIP, text)
    assert lines == [text.replace("<b>", "").replace("</b>", "")]


def test_overrides_of_subrip_are_paired():
    lines, result = texts_of("srt", SUBRIP, r"One {\b1}two three{\b0} four")
    assert (lines, result) == (["One two three four"], r"ruof {\b1}eerht owt{\b0} enO")
    lines, result = texts_of("srt", SUBRIP, r"{a remark} {\i1}One")
    assert lines == ["{a remark} One"]


def test_markup_behind_a_dialog_of_substation_is_found():
    text = r"- One\N- {\i1}two{\i0} three\Nfour"
    lines, result, _ = pseudo("ass", f"{HEAD}{EVENT}{text}\n")
    assert lines == ["One", "two three four"]
    assert result == f"{HEAD}{EVENT}" + r"- ONE\N- {\i1}TWO{\i0} THREE\NFOUR" + "\n"


def test_lines_that_are_no_events_are_reported():
    source = (
        "[Events]\n\nDialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0\n"
        f"{EVENT}One\ntwo\n; a remark\n{EVENT.lower()}three\n{EVENT}\nPicture: a.png\n"
    )
    lines, result, notice = pseudo("ass", source)
    assert (lines, result) == (["One"], source.replace("One", "ONE"))
    assert notice == "lines that are not valid as events left unchanged: 3 (line 3, 5, 7)"


def test_subtitles_with_data_stay_and_are_counted():
    source = f'WEBVTT\n\n{TIMES}\n{{"title": "One two",\n"n": 1}}\n\n{TIMES}\n["Three"]\n\n'
    source += f"{TIMES}\n[music]\n"
    lines, result, notice = pseudo("vtt", source)
    assert (lines, result) == (["[music]"], source.replace("[music]", "[MUSIC]"))
    assert notice == "subtitles with data (JSON) left unchanged: 2 (number 1, 2)"


def test_another_encoding_is_refused_with_the_command_that_converts_it():
    with pytest.raises(NMTError, match=r"iconv -f windows-1252 -t utf-8 old\.srt > new\.srt"):
        read_document("srt", f"1\n{TIMES}\nÜber\n".encode("cp1252"))
