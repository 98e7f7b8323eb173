"""Cells of tables in AsciiDoc.

Source: https://docs.asciidoctor.org/asciidoc/latest/tables/build-a-basic-table/
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SPAN = r"(?:(?P<columns>\d{1,3})?(?:\.(?P<rows>\d{1,3}))?(?P<operator>[*+]))?"
ALIGNMENT = r"(?:[<^>](?:\.[<^>])?|\.[<^>])?"
STYLES = "adehlmsv"
COLUMNS = re.compile(r"\bcols=(?:\"([^\"]*)\"|'([^']*)'|([^,\s\]]+))")
COLUMN = re.compile(r"[ \t]*(?:(?P<times>\d{1,3})\*)?[<^>.\d~%]{0,10}(?P<style>[a-z]?)[ \t]*")


@dataclass(frozen=True)
class Cell:
    begin: int
    end: int
    columns: int
    """The number of columns that it occupies."""
    times: int
    """How often it is repeated."""
    has_rows: bool
    style: str


def columns_of(attributes: str) -> list[str]:
    """The styles of the columns; no style is an empty text. The list is empty if unknown."""
    declared = COLUMNS.search(attributes)
    if not declared:
        return []
    styles = list[str]()
    for column in re.split("[,;]", declared[1] or declared[2] or declared[3] or ""):
        match = COLUMN.fullmatch(column)
        times = int(match["times"] or 1) if match else 1
        styles += [match["style"] if match else ""] * times
    return styles


class Table:
    """The cells between two offsets, which a sign separates."""

    def __init__(self, text: str, begin: int, end: int, sign: str) -> None:
        self.cells = list[Cell]()
        separator = re.compile(
            rf"(?:(?<!\S){SPAN}{ALIGNMENT}(?P<style>[{STYLES}])?|(?<!\\)){re.escape(sign)}"
        )
        last: re.Match[str] | None = None
        for match in separator.finditer(text, begin, end):
            self.add(text, last, match.start())
            last = match
        self.add(text, last, end)

    def add(self, text: str, opening: re.Match[str] | None, end: int) -> None:
        if opening is None:
            return
        content = text[opening.end() : end]
        begin = opening.end() + len(content) - len(content.lstrip())
        number = int(opening["columns"] or 1)
        repeats = opening["operator"] == "*"
        cell = Cell(
            begin,
            max(begin, opening.end() + len(content.rstrip())),
            columns=1 if repeats else number,
            times=number if repeats else 1,
            has_rows=bool(opening["rows"]) and not repeats,
            style=opening["style"] or "",
        )
        self.cells.append(cell)

    def is_regular(self, columns: Sequence[str]) -> bool:
        """Whether the column of each cell, and so its style, is known."""
        return not any(columns) or not any(cell.has_rows for cell in self.cells)

    def cells_with_styles(self, columns: Sequence[str]) -> Iterator[Cell]:
        """The cells, with the style of their column if they have none."""
        column = 0
        for cell in self.cells:
            style = cell.style
            if not style and columns:
                style = columns[column % len(columns)]
            column += cell.columns * cell.times
            yield Cell(cell.begin, cell.end, cell.columns, cell.times, cell.has_rows, style)
