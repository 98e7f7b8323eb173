"""The lines of a file with subtitles: text, times, numbers and other lines."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from nmt.plugins.documents import subtitle_times

# Only \r and \n end a line. `str.splitlines` would also split at other characters.
LINE = re.compile(r"[^\r\n]+(?:\r\n?|\n|\Z)|\r\n?|\n")
WEBVTT_HEADER = re.compile(r"WEBVTT(?=[ \t\r\n]|\Z)")
INDEX = re.compile(r"[ \t\ufeff]*#?\d+[.:]?[ \t]*")
"""The number of a subtitle."""
REMARK = re.compile(r"(?:NOTE(?:[ \t].*)?|STYLE[ \t]*|REGION[ \t]*)")
"""The first line of a comment of WebVTT, or of another block without text."""


@dataclass
class Row:
    """A line of a file."""

    begin: int
    end: int
    text: str
    """The text of the row, without its line break."""
    is_text: bool = True
    is_timing: bool = False
    """True for times, even if they are damaged."""

    @property
    def is_blank(self) -> bool:
        return not self.text.strip()

    @property
    def is_valid(self) -> bool:
        return subtitle_times.is_valid(self.text)


def is_webvtt(text: str) -> bool:
    return WEBVTT_HEADER.match(text) is not None


def rows_of(text: str) -> tuple[list[Row], int]:
    """The lines of a file, and the index of the first line with times."""
    rows = list[Row]()
    for line in LINE.finditer(text):
        rows.append(Row(line.start(), line.end(), line[0].rstrip("\r\n")))
    for index, row in enumerate(rows):
        begins = begins_subtitle(rows, index)
        row.is_timing = subtitle_times.is_timing(row.text, begins)
    mark_structure(rows, is_webvtt(text))
    for index, row in enumerate(rows):
        if row.is_timing:
            return rows, index
    return rows, len(rows)


def begins_subtitle(rows: list[Row], index: int) -> bool:
    """True if an empty line or the number of a subtitle precedes a row."""
    if index == 0:
        return True
    before = rows[index - 1]
    return before.is_blank or INDEX.fullmatch(before.text) is not None


def mark_structure(rows: list[Row], in_webvtt: bool) -> None:
    """Mark the rows that are not text: times, numbers and names; in WebVTT, header and remarks."""
    in_remark = in_webvtt  # the header ends at an empty line, as remarks do
    in_block = False  # a remark that is not the header, in which damaged times are no times
    for index, row in enumerate(rows):
        if in_block and subtitle_times.ARROW not in row.text:
            row.is_timing = False
        if row.is_blank:
            in_remark = False
            in_block = False
        elif row.is_timing or names_subtitle(rows, index, in_webvtt):
            row.is_text = False
            in_remark = False
            in_block = False
        # A remark continues to the next empty line, unless times begin before.
        elif in_remark or (in_webvtt and begins_remark(rows, index)):
            in_block = in_block or not in_remark
            row.is_text = False
            in_remark = True


def names_subtitle(rows: list[Row], index: int, in_webvtt: bool) -> bool:
    """Whether a row before times is the number of a subtitle.

    In WebVTT, it may also be a name, which is any text after an empty line.
    """
    # Numbers elsewhere are text that somebody says.
    if index + 1 == len(rows) or not rows[index + 1].is_timing:
        return False
    if INDEX.fullmatch(rows[index].text):
        return True
    # Damaged times do not make a remark the name of a subtitle.
    is_certain = subtitle_times.ARROW in rows[index + 1].text
    return (
        in_webvtt and is_after_blank(rows, index) and (is_certain or not begins_remark(rows, index))
    )


def begins_remark(rows: list[Row], index: int) -> bool:
    return is_after_blank(rows, index) and REMARK.fullmatch(rows[index].text) is not None


def is_after_blank(rows: list[Row], index: int) -> bool:
    return index == 0 or rows[index - 1].is_blank


def texts_of(rows: list[Row]) -> Iterator[tuple[tuple[int, int], int, str]]:
    """The spans of adjacent rows of text, each with its subtitle's number and line of times."""
    begin: int | None = None
    end = 0
    number = 0
    times = ""
    for row in rows:
        if row.is_text and begin is None:
            # Rows without text, such as numbers, end a span; empty rows are part of it.
            begin = row.begin
        elif not row.is_text and begin is not None:
            yield (begin, end), number, times
            begin = None
        if row.is_timing:
            number += 1
            times = row.text
        end = row.end
    if begin is not None:
        yield (begin, end), number, times
