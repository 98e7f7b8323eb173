"""The lines of a document in reStructuredText, and what they begin with."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from nmt.plugins.prose.wrapping import TAB

BULLET = re.compile(r"[-*+\u2022\u2023\u2043](?:[ \t]+|$)")
ENUMERATOR = re.compile(
    r"(?:\((?:\d{1,9}|[a-zA-Z]|[ivxlcdmIVXLCDM]{1,15}|#)\)"
    r"|(?:\d{1,9}|[a-zA-Z]|[ivxlcdmIVXLCDM]{1,15}|#)[.)])(?:[ \t]+|$)"
)
FIELD = re.compile(r":(?![: ])(?P<name>(?:[^:\\]|\\.|:(?!(?:[ `]|$)))+)(?<! ):(?:[ \t]+|$)")
OPTION_ARGUMENT = r"(?:[a-zA-Z][\w-]{0,60}|<[^<>\n]{1,200}>)"
OPTION = (
    rf"(?:[-+][a-zA-Z0-9](?: ?{OPTION_ARGUMENT})?"
    rf"|(?:--|/)[a-zA-Z0-9][\w-]{{0,60}}(?:[ =]{OPTION_ARGUMENT})?)"
)
OPTIONS = re.compile(rf"{OPTION}(?:, {OPTION}){{0,9}}(?:[ \t]{{2,}}|$)")
DOCTEST = re.compile(r">>>(?:[ ]|$)")
LINE_BLOCK = re.compile(r"\|(?:[ \t]+|$)")
GRID_TABLE = re.compile(r"\+-[-+]+-\+[ \t]*$")
SIMPLE_TABLE = re.compile(r"=+(?:[ \t]+=+)+[ \t]*$")
EXPLICIT = re.compile(r"\.\.(?:[ \t]+|$)")
ANONYMOUS = re.compile(r"__(?:[ \t]+|$)")
ADORNMENT = re.compile(r"(?P<sign>[!-/:-@\[-`{-~])(?P=sign)*[ \t]*$")
BLANKS = " \t\r\f\v"
MUST_ESCAPE = re.compile(
    r"[-*+\u2022\u2023\u2043](?=\s|$)"
    r"|(?=\(?(?:\d{1,9}|[a-zA-Z]|[ivxlcdmIVXLCDM]{1,15}|#)[.)](?:\s|$))"
    r"|\.\.(?=\s|$)|__(?=\s|$)|\|(?=\s|$)|:(?=[^\s:][^:]{0,200}:(?:\s|$))"
    r"|>>>|--?\w|/\w|\+[-=\w]|=+ "
)
"""The beginning of a paragraph that would be another block."""


@dataclass(frozen=True)
class Line:
    """A line of a block, or the rest of a line behind the sign of a list."""

    begin: int
    """The offset of its first character that is not blank."""

    end: int
    """The offset behind its last character that is not blank."""

    column: int
    """The column of its first character."""

    text: str

    def __bool__(self) -> bool:
        """Whether the line is not blank."""
        return bool(self.text)


def line_from(text: str, begin: int, end: int, column: int = 0) -> Line:
    """The line between two offsets, which begins at a column."""
    # As docutils does.
    whole = text[begin:end].replace("\f", " ").replace("\v", " ")
    stripped = whole.strip(BLANKS)
    blanks = len(whole) - len(whole.lstrip(BLANKS))
    # Tabs count from the beginning of the line.
    before = (" " * column + whole[:blanks]).expandtabs(TAB)
    first = begin + blanks
    return Line(first, first + len(stripped), len(before), stripped)


def lines_of(text: str) -> list[Line]:
    """All lines of a text."""
    lines = list[Line]()
    begin = 0
    for line in text.split("\n"):
        lines.append(line_from(text, begin, begin + len(line)))
        begin += len(line) + 1
    return lines


def least_column(lines: Sequence[Line]) -> int:
    """The column at which a block begins."""
    return min((line.column for line in lines if line), default=0)
