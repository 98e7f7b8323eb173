"""Limits of the lines of subtitles: `max_line` and `max_cps`."""

import pytest

from nmt.config import DocumentOptions
from nmt.plugins.documents.subtitle_options import SubtitlesConfig
from nmt.translation import Translated, read_document

TIMES = "1\n00:00:01,000 --> 00:00:02,000\n"
TWO_LINES = "Where have you been all this time,\nmy dear old friend?"


def translated(source, translation, max_line=42, max_cps=None):
    options = SubtitlesConfig(max_line=max_line, max_cps=max_cps)
    content = f"{TIMES}{source}\n".encode()
    record = DocumentOptions(plugins={"subtitles": options})
    document = read_document("srt", content, options=record)
    result = document.join([Translated(translation) for _ in document.lines]).decode()
    return result.removeprefix(TIMES).rstrip("\n"), document.notice


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        # Balanced, and after punctuation if it is near.
        (
            TWO_LINES,
            "Wo bist du nur die ganze Zeit gewesen, mein lieber alter Freund?",
            "Wo bist du nur die ganze Zeit gewesen,\nmein lieber alter Freund?",
        ),
        (TWO_LINES, "Wo warst du denn?", "Wo warst du denn?"),
        # The source has more lines than it needs.
        ("Roses are red,\nso are you", "Rosen sind rot, wie du", "Rosen sind rot,\nwie du"),
        (
            "<i>Where have you</i> been all this time,\nmy dear old friend?",
            "Wo bist du denn nur die ganze lange Zeit gewesen, mein Freund?",
            "<i>Wo bist du denn</i> nur die ganze\nlange Zeit gewesen, mein Freund?",
        ),
        ("One line only", "Nur eine einzige Zeile", "Nur eine einzige Zeile"),
        (
            TWO_LINES,
            "这段时间你到底去哪里了，我亲爱的老朋友？我们都非常担心你的安全和健康。",
            "这段时间你到底去哪里了，我亲爱的老朋友？\n我们都非常担心你的安全和健康。",
        ),
    ],
)
def test_translations_are_wrapped_into_no_more_lines(source, translation, expected):
    assert translated(source, translation, max_line=43) == (expected, "")


def test_tags_with_blanks_are_never_split():
    source = 'Where <font color="red" face="A B">have you been all this</font> time,\nmy friend?'
    words = "Wo um alles in der ganzen weiten Welt bist du denn bloß gewesen?"
    text, _ = translated(source, words, max_line=34)
    assert '<font color="red" face="A B">' in text
    assert text.count("\n") == 1


def test_long_and_fast_subtitles_are_reported():
    text, notice = translated("Short\nlines", "Viel zu lange Wörter in Untertiteln", 12, 20)
    assert text == "Viel zu lange Wörter\nin Untertiteln"
    assert notice == (
        "subtitles wider than max_line=12: 1 (number 1); "
        "subtitles faster than max_cps=20: 1 (number 1)"
    )
    assert translated("Short\nlines", "Kurz", 12, 20) == ("Kurz", "")


def test_speakers_and_positions_keep_their_lines():
    words = "Wo bist du denn nur?"
    assert translated("- Where were you?\n- At home.", words, 10)[0] == f"- {words}\n- {words}"
    text, _ = translated("{\\pos(1,2)}Here\nand there, my friend", "Hier und dort", 10)
    assert text.startswith("{\\pos(1,2)}Hier")


def test_the_same_text_keeps_its_lines():
    assert translated("One two\nthree", "One two three", 10)[0] == "One two\nthree"
