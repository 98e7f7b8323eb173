"""Subtitles: SubRip and WebVTT (https://www.w3.org/TR/webvtt1), told apart by their content."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape, unescape

from nmt.plugins.documents.document import Part, Spliced, Text, Translated
from nmt.plugins.documents.html import READINGS_LEFT_OUT, lost_readings
from nmt.plugins.documents.strings import (
    BEGINS_PARAGRAPH,
    COMMENT,
    DASH,
    STRING_MARKUP,
    Kind,
    Reader,
)
from nmt.text import direction, direction_of_text

LINE = re.compile(r"[^\r\n]+(?:\r\n?|\n|\Z)|\r\n?|\n")
HEADER = re.compile(r"WEBVTT(?=[ \t\r\n]|\Z)")
ARROW = "-->"
COMMENTS = re.compile(COMMENT)
HARD_SPACE = r"(?P<hard_space>(?:\\h)+)"
TIME = r"-?\d{1,4}(?:[ \t]*[:.,][ \t]*\d{1,4}){1,4}"
SETTING = r"[A-Za-z][\w-]*[:=][^\s<>]*"
# SubRip may give coordinates, WebVTT settings: X1:40 X2:600, align:start. Players are lenient.
ARROWS = r"[ \t]*(?:-+|[\u2013\u2014])>[ \t]*"
TIMES = re.compile(rf"[ \t\ufeff]*{TIME}{ARROWS}{TIME}(?:[ \t]+{SETTING})*[ \t]*")
# Damaged times. People and optical readers confuse digits with letters, and break arrows.
NUMBER = r"[-\u2212]?[\dOolI]{1,7}"
COLON = r"[ \t]{0,3}[:;\uff1a][ \t]{0,3}"
POINT = r"[ \t]{0,3}[:;.,\uff1a\uff0c\uff0e][ \t]{0,3}"
HAS_DIGITS = r"(?=[^\r\n]*\d)"
CLOCK = rf"{NUMBER}{COLON}{NUMBER}(?:{POINT}{NUMBER}){{0,6}}"
SECONDS = rf"{NUMBER}{COLON}{NUMBER}(?:{POINT}{NUMBER}){{1,6}}"
EXACT = (
    rf"(?:{NUMBER}{COLON}{NUMBER}{COLON}{NUMBER}{POINT}{NUMBER}"
    rf"|{NUMBER}{COLON}{NUMBER}[ \t]?[.,][ \t]?\d{{3}})"
)
FORMATTING = re.compile(r"</?[a-zA-Z][^<>]{0,99}>|\{\\[^{}]{0,99}\}")
# An entity may stand for the point of an arrow.
SIGN = r"(?:&(?:\w{2,8}|#\w{2,6});|[^\w\r\n])"
ARROWS_OF_UNICODE = "\u2190-\u21ff\u2794-\u27bf\u27f0-\u27ff\u2900-\u297f"
POINTED = rf"(?:[>\uff1e{ARROWS_OF_UNICODE}]|&gt;|&\w?arr;|&#(?:62|x3[eE]);)"
ARROW_LIKE = rf"{SIGN}{{0,20}}?{POINTED}{SIGN}{{0,20}}"
LEAD = r"[^\w\r\n]{0,8}(?:\d{1,6}[.:)]?[ \t]+)?"
REST = rf"(?:[ \t]+{SETTING}){{0,20}}[^\w\r\n]*"
DAMAGED_TIMES = re.compile(
    rf"{HAS_DIGITS}{LEAD}(?:{CLOCK}{ARROW_LIKE}{CLOCK}{REST}"
    rf"|{SECONDS}{ARROW_LIKE}|{ARROW_LIKE}{SECONDS}{REST}"
    rf"|{SECONDS}{SIGN}{{1,20}}{SECONDS}{REST}|{EXACT}(?:[^\d\r\n]{{1,12}}{EXACT}.*)?{REST})"
)
# Times of a day may be said in a subtitle, but a subtitle does not begin with them.
CLOCK_TIMES = re.compile(
    rf"{HAS_DIGITS}{LEAD}(?:{CLOCK}{SIGN}{{1,20}}{CLOCK}|{SECONDS}[^\d\r\n]{{1,12}}{SECONDS}){REST}"
)
RIGHT_TO_LEFT_MARK = "\u200f"
# What players do not show: tags, with names of speakers and classes, and overrides of the style.
TAGS = re.compile(r"</?[a-zA-Z][^<>]*>|\{\\[^{}]*\}")
OVERRIDES = re.compile(r"(?:\{\\[^{}]*\})+")  # of the style, at the beginning of a subtitle
INDEX = re.compile(r"[ \t\ufeff]*#?\d+[.:]?[ \t]*")
REMARK = re.compile(r"(?:NOTE(?:[ \t].*)?|STYLE[ \t]*|REGION[ \t]*)")
WEBVTT_MARKUP = re.compile(
    rf"(?P<line>\r\n?|\n)(?P<paragraph>(?={BEGINS_PARAGRAPH}))?|{DASH}"
    r"|(?P<speaker><v(?:[.\s][^<>]*)?>)"
    r"|</?(?P<name>[a-zA-Z]\w*)?[^<>]*>"
)
SUBRIP = Kind(markup=re.compile(f"{STRING_MARKUP.pattern}|{HARD_SPACE}"), drops_lines=True)
escape_text = partial(escape, quote=False)
WEBVTT = Kind(
    markup=WEBVTT_MARKUP,
    read=unescape,
    write=escape_text,
    is_html=False,
    drops_lines=True,
)


@dataclass
class Row:
    """A line of a file."""

    begin: int
    end: int
    text: str  # without its end
    is_text: bool = True
    is_timing: bool = False  # times, even if they are damaged

    @property
    def is_blank(self) -> bool:
        return not self.text.strip()


class Subtitles(Text):
    """The text below each line of times up to the next such line, even after an empty line."""

    def parts(self, text: str, target: str) -> list[Part]:
        self.is_rtl = bool(target) and direction(target) == "rtl"
        is_webvtt = HEADER.match(text) is not None
        rows, first = rows_of(text)
        kind = WEBVTT if is_webvtt else SUBRIP
        spans = stretches(rows[first:])
        self.notice = self.left = notice_of(rows, first)
        return [part for begin, end in spans for part in Reader(text[begin:end], begin, kind).parts]

    def join(self, translations: Sequence[Translated]) -> bytes:
        text = self.text.render(translations)
        readings = lost_readings(self.text.text, text)
        notices = self.left, f"{READINGS_LEFT_OUT}: {readings:,}" if readings else ""
        self.notice = "; ".join(filter(None, notices))
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
        shown = unescape(TAGS.sub("", row.text))
        is_translation = row.is_text and row.text not in unchanged
        has_rtl = any(direction_of_text(letter) == "rtl" for letter in shown)
        if is_translation and has_rtl and direction_of_text(shown) == "ltr":
            override = OVERRIDES.match(row.text)
            at = row.begin + (override.end() if override else 0)
            marks.append(Part(at, at, otherwise=RIGHT_TO_LEFT_MARK))
    return Spliced(text, marks).render(())


def rows_of(text: str) -> tuple[list[Row], int]:
    """The lines of a file, and the index of the first line with times."""
    rows = [Row(*line.span(), line[0].rstrip("\r\n")) for line in LINE.finditer(text)]
    mark_times(rows)
    mark_structure(rows, is_webvtt=HEADER.match(text) is not None)
    first = next((index for index, row in enumerate(rows) if row.is_timing), len(rows))
    return rows, first


def notice_of(rows: list[Row], first: int) -> str:
    """A notice about text before the row `first`, the first subtitle, and about damaged times."""
    outside, damaged = list[int](), list[int]()
    for number, row in enumerate(rows):
        if row.is_timing and not is_valid(row):
            damaged.append(number + 1)
        elif number < first and row.is_text and any(map(str.isalpha, row.text)):
            outside.append(number + 1)
    reasons = {
        "text before the first subtitle": outside,
        "lines that are not valid as times": damaged,
    }
    notices = [f"{what} left unchanged: {named(lines)}" for what, lines in reasons.items() if lines]
    return "; ".join(notices)


def is_valid(row: Row) -> bool:
    return TIMES.fullmatch(row.text) is not None


def mark_times(rows: list[Row]) -> None:
    """Mark the rows with times, valid or damaged: text may not contain an arrow."""
    for index, row in enumerate(rows):
        if not any(map(str.isdigit, row.text)) and ARROW not in row.text:
            continue
        has_arrow = ARROW in row.text and ARROW in COMMENTS.sub("", row.text)
        text = FORMATTING.sub("", row.text)
        row.is_timing = (
            has_arrow
            or is_valid(row)
            or DAMAGED_TIMES.fullmatch(text) is not None
            or (begins_subtitle(rows, index) and CLOCK_TIMES.fullmatch(text) is not None)
        )


def begins_subtitle(rows: list[Row], index: int) -> bool:
    """True if an empty line or the number of a subtitle precedes a row."""
    before = rows[index - 1]
    return index == 0 or before.is_blank or INDEX.fullmatch(before.text) is not None


def mark_structure(rows: list[Row], is_webvtt: bool) -> None:
    """Mark the rows that are not text: times, numbers and names; in WebVTT, header and remarks."""
    in_remark = is_webvtt  # the header ends at an empty line, as remarks do
    for index, row in enumerate(rows):
        begins = index == 0 or rows[index - 1].is_blank
        is_last = index + 1 == len(rows)
        begins_name = is_webvtt and begins
        names_next = not is_last and rows[index + 1].is_timing
        if row.is_blank:
            in_remark = False
        elif row.is_timing or (names_next and (begins_name or INDEX.fullmatch(row.text))):
            row.is_text = in_remark = False
        elif in_remark or (begins_name and REMARK.fullmatch(row.text)):
            row.is_text, in_remark = False, True


def stretches(rows: list[Row]) -> Iterator[tuple[int, int]]:
    """The spans of adjacent rows of text."""
    begin = end = -1
    for row in rows:
        if row.is_text and begin < 0:
            begin = row.begin
        elif not row.is_text and begin >= 0:
            yield begin, end
            begin = -1
        end = row.end
    if begin >= 0:
        yield begin, end


def named(numbers: list[int]) -> str:
    """The number of some lines, and which these are."""
    names = ", ".join(map(str, numbers[:5])) + (", ..." if len(numbers) > 5 else "")
    return f"{len(numbers):,} (line {names})"
