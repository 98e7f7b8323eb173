"""Subtitles: SubRip and WebVTT (https://www.w3.org/TR/webvtt1), told apart by their content."""

import re
from collections.abc import Sequence
from functools import partial
from html import escape, unescape

from nmt.plugins.documents.document import Part, Spliced, Text
from nmt.plugins.documents.readings import READINGS_LEFT_OUT, lost_readings
from nmt.plugins.documents.string_markup import BEGINS_PARAGRAPH, DASH, LINE, string_markup
from nmt.plugins.documents.string_reader import Kind, Reader
from nmt.plugins.documents.subtitle_rows import Row, is_webvtt, rows_of, spans_of_text
from nmt.text import direction, direction_of_text
from nmt.translation import Translated

# `\h` is the hard space of SubStation Alpha, which converters leave in SubRip files.
HARD_SPACE = r"(?P<hard_space>(?:\\h)+)"
WEBVTT_MARKUP = re.compile(
    "|".join(
        [
            rf"(?P<line>\r\n?|\n)(?P<paragraph>(?={BEGINS_PARAGRAPH}))?",
            DASH,
            # Another voice begins another sentence.
            r"(?P<speaker><v(?:[.\s][^<>]*)?>)",
            r"</?(?P<name>[a-zA-Z]\w*)?[^<>]*>",
        ]
    )
)
# An empty line would end the subtitle, so a line break may be dropped.
SUBRIP = Kind(markup=re.compile(f"{string_markup(LINE)}|{HARD_SPACE}"), drops_lines=True)
WEBVTT = Kind(
    markup=WEBVTT_MARKUP,
    # WebVTT has character references, such as &amp;. In SubRip, they are text.
    read=unescape,
    write=partial(escape, quote=False),
    is_html=False,
    drops_lines=True,
)
RIGHT_TO_LEFT_MARK = "\u200f"
UNSEEN = re.compile(r"</?[a-zA-Z][^<>]*>|\{\\[^{}]*\}")
"""Text that players do not show: tags, even with speakers or classes, and style overrides."""
OVERRIDES = re.compile(r"(?:\{\\[^{}]*\})+")
"""Style overrides at the beginning of a subtitle."""
NAMED_LINES = 5
"""The maximum number of lines that a notice lists."""


class Subtitles(Text):
    """The text below each line of times up to the next such line, even after an empty line."""

    def parts(self, text: str, target: str) -> list[Part]:
        self.is_rtl = bool(target) and direction(target) == "rtl"
        kind = WEBVTT if is_webvtt(text) else SUBRIP
        rows, first = rows_of(text)
        self.left = notice_of_lines(rows, first)
        self.notice = self.left
        parts = list[Part]()
        # Everything before the first times is the header of WebVTT, or no subtitle.
        for begin, end in spans_of_text(rows[first:]):
            parts += Reader(text[begin:end], begin, kind).parts
        return parts

    def join(self, translations: Sequence[Translated]) -> bytes:
        text = self.text.render(translations)
        readings = lost_readings(self.text.text, text)
        notices = [self.left]
        if readings:
            notices.append(f"{READINGS_LEFT_OUT}: {readings:,}")
        self.notice = "; ".join(filter(None, notices))
        # As a reference, the mark would be shown in SubRip.
        if self.is_rtl and can_encode(RIGHT_TO_LEFT_MARK, self.encoding):
            text = with_marks(text, self.text.text)
        return self.mark + text.encode(self.encoding, "xmlcharrefreplace")


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
        notices.append(f"text before the first subtitle left unchanged: {listed(outside)}")
    if damaged:
        notices.append(f"lines that are not valid as times left unchanged: {listed(damaged)}")
    return "; ".join(notices)


def listed(numbers: list[int]) -> str:
    """How many lines there are, and the numbers of the first ones."""
    names = ", ".join(map(str, numbers[:NAMED_LINES]))
    if len(numbers) > NAMED_LINES:
        names += ", ..."
    return f"{len(numbers):,} (line {names})"
