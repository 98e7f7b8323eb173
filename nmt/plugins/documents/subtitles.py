"""Subtitles: SubRip and WebVTT (https://www.w3.org/TR/webvtt1), told apart by their content."""

import json
import re
from collections.abc import Sequence
from functools import partial
from html import escape, unescape

from nmt.plugins.documents.cues import Cue, Notation, listed, notice_of_limits
from nmt.plugins.documents.dialogs import BEGINS_TURN, SPEAKER, line_mark
from nmt.plugins.documents.document import Part, Spliced
from nmt.plugins.documents.override_blocks import insets_of_tags
from nmt.plugins.documents.readings import READINGS_LEFT_OUT, lost_readings
from nmt.plugins.documents.string_markup import string_markup
from nmt.plugins.documents.string_reader import Kind
from nmt.plugins.documents.subtitle_layout import Markup
from nmt.plugins.documents.subtitle_options import SubtitleText
from nmt.plugins.documents.subtitle_rows import Row, is_webvtt, rows_of, texts_of
from nmt.plugins.documents.subtitle_times import duration
from nmt.text import direction, direction_of_text, language_tag, match_language
from nmt.translation import Translated

# `\h` is the hard space of SubStation Alpha, which converters leave in SubRip files.
HARD_SPACE = r"(?P<hard_space>(?:\\h)+)"
MARK = line_mark(r"\n\r>}")
LINE = rf"(?P<line>\r\n?|\n)(?P<paragraph>(?={BEGINS_TURN}|\d+[.)]))?"
SUBRIP_MARKUP = re.compile(f"(?P<speaker>{SPEAKER})|{string_markup(LINE, MARK)}|{HARD_SPACE}")
WEBVTT_MARKUP = re.compile(
    "|".join(
        [
            rf"(?P<line>\r\n?|\n)(?P<paragraph>(?={BEGINS_TURN}))?",
            MARK,
            # Another voice begins another sentence.
            rf"(?P<speaker><v(?:[.\s][^<>]*)?>|{SPEAKER})",
            r"</?(?P<name>[a-zA-Z]\w*)?[^<>]*>",
        ]
    )
)
# An empty line would end the subtitle, so a line break may be dropped.
SUBRIP = Kind(markup=SUBRIP_MARKUP, drops_lines=True)
WEBVTT = Kind(
    markup=WEBVTT_MARKUP,
    # WebVTT has character references, such as &amp;. In SubRip, they are text.
    read=unescape,
    write=partial(escape, quote=False),
    is_html=False,
    drops_lines=True,
)
IN_SUBRIP = Notation(
    SUBRIP,
    Markup(unseen=r"</?[a-zA-Z][^<>]*+>|\{\\[^{}]*+\}", line_break=r"(?:\r\n?|\n)[ \t]*+"),
    fixed=re.compile(r"\\(?:pos|move|org|k)"),
    insets=insets_of_tags,
)
IN_WEBVTT = Notation(
    WEBVTT,
    Markup(unseen=r"</?[a-zA-Z0-9][^<>]*+>", line_break=r"(?:\r\n?|\n)[ \t]*+"),
    timing=re.compile(r"<(?:\d{1,9}:)?\d\d:\d\d\.\d{3}>"),
)
LANGUAGE = re.compile(r"WEBVTT[^\r\n]*(?:\r\n?|\n)(?:[^\r\n]+(?:\r\n?|\n))*?Language: *([\w-]+)")
"""The header of a file from YouTube, with its language."""
RIGHT_TO_LEFT_MARK = "\u200f"
UNSEEN = re.compile(r"</?[a-zA-Z][^<>]*>|\{\\[^{}]*\}")
"""Text that players do not show: tags, even with speakers or classes, and style overrides."""
OVERRIDES = re.compile(r"(?:\{\\[^{}]*\})+")
"""Style overrides at the beginning of a subtitle."""


class Subtitles(SubtitleText):
    """The text below each line of times up to the next such line, even after an empty line."""

    def parts(self, text: str, target: str) -> list[Part]:
        self.is_rtl = bool(target) and direction(target) == "rtl"
        in_webvtt = is_webvtt(text)
        notation = IN_WEBVTT if in_webvtt else IN_SUBRIP
        rows, first = rows_of(text)
        self.left = notice_of_lines(rows, first)
        self.notice = self.left
        parts = list[Part]()
        data = list[int]()
        if in_webvtt:
            parts += language_part(text, self.source, target)
        # Everything before the first times is the header of WebVTT, or no subtitle.
        for span, number, times in texts_of(rows[first:]):
            if is_data(text[slice(*span)]):
                data.append(number)
                continue
            cue = Cue(text, span, notation, self.options, number, duration(times))
            if cue.lines:
                parts.append(cue)
        if data:
            what = f"subtitles with data (JSON) left unchanged: {listed(data, 'number')}"
            self.left = "; ".join(filter(None, [self.left, what]))
            self.notice = self.left
        return parts

    def join(self, translations: Sequence[Translated]) -> bytes:
        text = self.text.render(translations)
        readings = lost_readings(self.text.text, text)
        notices = [self.left, notice_of_limits(self.text.parts, self.options)]
        if readings:
            notices.append(f"{READINGS_LEFT_OUT}: {readings:,}")
        self.notice = "; ".join(filter(None, notices))
        # As a reference, the mark would be shown in SubRip.
        if self.is_rtl and can_encode(RIGHT_TO_LEFT_MARK, self.encoding):
            text = with_marks(text, self.text.text)
        return self.mark + text.encode(self.encoding, "xmlcharrefreplace")


def language_part(text: str, source: str, target: str) -> list[Part]:
    """The language in the header of WebVTT, which YouTube writes, if it is that of the source."""
    declared = LANGUAGE.match(text)
    if not declared or not target or not source or not match_language(declared[1], [source]):
        return []
    return [Part(*declared.span(1), otherwise=language_tag(target) or target)]


def is_data(text: str) -> bool:
    """Whether a subtitle is an object or array of JSON, as in tracks with metadata."""
    text = text.strip()
    # Usual text, and [music], need no parser.
    if text[:1] + text[-1:] not in ("{}", "[]") or '"' not in text:
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def can_encode(character: str, encoding: str) -> bool:
    return bool(character.encode(encoding, "ignore"))


def with_marks(text: str, source: str) -> str:
    """Mark the lines of a translation that players would show from left to right.

    Players take the direction of a line from its first letter, so that a line of Arabic that begins
    with a Latin name would be shown in the wrong order. Lines of the source stay as they are.
    """
    rows, first = rows_of(text)
    unchanged = frozenset(source.splitlines())
    marks = list[Part]()
    for row in rows[first:]:
        if row.is_text and row.text not in unchanged and needs_mark(row.text):
            # The mark belongs to the text, and overrides are at the beginning of a subtitle.
            override = OVERRIDES.match(row.text)
            at = row.begin + (override.end() if override else 0)
            marks.append(Part(at, at, otherwise=RIGHT_TO_LEFT_MARK))
    return Spliced(text, marks).render(())


def needs_mark(line: str) -> bool:
    """Whether a line has letters from right to left, but begins with one from left to right."""
    # Tags and overrides have Latin letters, which players do not show.
    shown = unescape(UNSEEN.sub("", line))
    has_rtl = any(direction_of_text(letter) == "rtl" for letter in shown)
    return has_rtl and direction_of_text(shown) == "ltr"


def notice_of_lines(rows: list[Row], first: int) -> str:
    """A notice about text before the row `first`, the first subtitle, and about damaged times."""
    outside = list[int]()
    damaged = list[int]()
    for number, row in enumerate(rows, start=1):
        if row.is_timing and not row.is_valid:
            damaged.append(number)
        elif number <= first and row.is_text and any(map(str.isalpha, row.text)):
            outside.append(number)
    notices = list[str]()
    if outside:
        notices.append(f"text before the first subtitle left unchanged: {listed(outside, 'line')}")
    if damaged:
        notices.append(
            f"lines that are not valid as times left unchanged: {listed(damaged, 'line')}"
        )
    return "; ".join(notices)
