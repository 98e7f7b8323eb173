"""Lines of text: a translation is wrapped as its source was."""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

TAB = 8
SOFT_BREAK = re.compile(r"(?<![ \t])[ \t]*\r?\n[ \t]*")
BLANK = re.compile(r"(?<![\\ ]) (?! )")
"""A blank at which a line may end. A backslash would escape the line break."""


def display_width(text: str) -> int:
    """The number of columns of a text on a terminal."""
    width = 0
    for character in text:
        if unicodedata.combining(character):
            continue
        is_wide = unicodedata.east_asian_width(character) in "WF"
        width += 2 if is_wide else 1
    return width


@dataclass(frozen=True)
class Layout:
    """How a block of text is written on lines."""

    column: int = 0
    """The column at which the text begins on its first line."""

    indent: str = ""
    """The white space at the beginning of its further lines."""

    width: int = 0
    """The longest line; 0 for a text on one line."""

    newline: str = "\n"

    def wrapped(self, text: str, may_begin: Callable[[str], bool]) -> str:
        """The text on lines of this width; `may_begin` tells whether a word may begin a line."""
        if not self.width:
            return text
        lines = list[str]()
        # Line breaks in the text have a meaning.
        for segment in text.split("\n"):
            lines += self.lines_of(segment, may_begin, is_first=not lines)
        return f"{self.newline}{self.indent}".join(lines)

    def lines_of(self, text: str, may_begin: Callable[[str], bool], is_first: bool) -> list[str]:
        """A text without line breaks on lines of this width, without their indentation."""
        lines = list[str]()
        line = ""
        further = self.width - len(self.indent.expandtabs(TAB))
        room = self.width - self.column if is_first else further
        for word in BLANK.split(text.strip()):
            if not line:
                line = word
            elif len(line) + 1 + len(word) > room and may_begin(word):
                lines.append(line)
                line = word
                room = further
            else:
                line += f" {word}"
        return [*lines, line]


def layout_of(text: str, begin: int, end: int) -> Layout:
    """The layout of the block of text between two offsets of a file."""
    first = text.rfind("\n", 0, begin) + 1
    column = len(text[first:begin].expandtabs(TAB))
    breaks = list(SOFT_BREAK.finditer(text, begin, end))
    if not breaks:
        return Layout(column)
    # Lines of a block have the same indentation, apart from the first.
    whitespace = breaks[0][0].lstrip(" \t")
    indent = whitespace.lstrip("\r\n")
    last = text.find("\n", end)
    lines = text[first : last if last >= 0 else len(text)].split("\n")
    width = max(len(line.expandtabs(TAB).rstrip()) for line in lines)
    return Layout(column, indent, width, whitespace.removesuffix(indent))
