"""The rows of CSV files (RFC 4180), whose cells may also be separated by semicolons or tabs."""

import csv
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from nmt.text.files import MalformedLine, decode, read_lines
from nmt.text.tab_separated import Row

CELL_SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}
FIRST_ROWS = 1000
"""The number of rows that decide the separator of a table's cells."""


def comma_separated_rows(path: Path, separator: str) -> Iterator[Row]:
    return RowReader(read_lines(path), separator).rows()


def separator_of(path: Path) -> str:
    """The separator of the cells of a table.

    It is the separator that gives most of the first rows the same number of cells. Of two such
    separators, the one that gives fewer cells is likelier, since the other occurs in sentences.
    """
    likely = ","
    most = (0, 0)
    for separator in CELL_SEPARATORS:
        widths = Counter[int]()
        # Each separator is tried as the whole table would
        # be read, because a quoted cell may contain any.
        for _, cells in islice(comma_separated_rows(path, separator), FIRST_ROWS):
            if not isinstance(cells, MalformedLine) and len(cells) > 1:
                widths[len(cells)] += 1
        for width, count in widths.most_common(1):  # none if no row has several cells
            # Ties are broken by the order of CELL_SEPARATORS:
            # a comma, then a semicolon, then a tab.
            if (count, -width) > most:
                likely = separator
                most = (count, -width)
    return likely


class RowReader:
    """Parses lines into rows. After a malformed row, it continues with the second line of that row.

    Otherwise, a quotation mark that is never closed would hide all rows after it.
    """

    def __init__(self, lines: Iterable[bytes], separator: str) -> None:
        self.lines = enumerate(lines, 1)
        self.read_again = deque[tuple[int, bytes]]()
        self.separator = separator
        self.row = list[tuple[int, bytes]]()
        """The numbered lines of the current row."""

    def rows(self) -> Iterator[Row]:
        parser = self.parser()
        while True:
            self.row = []
            try:
                cells = next(parser, None)
            except csv.Error as error:
                problem = (
                    f"not valid CSV ({error}): quotation marks around a cell must be closed, and "
                    "those inside it doubled"
                )
                yield self.row[0][0], MalformedLine("malformed", problem)
                # Only the first line of the malformed row is
                # lost; the rest may be good rows.
                self.read_again.extendleft(reversed(self.row[1:]))
                parser = self.parser()
                continue
            if cells is None:
                return
            yield self.row[0][0], self.checked(cells)

    def checked(self, cells: list[str]) -> list[str] | MalformedLine:
        """The cells of the current row, or why its lines cannot be decoded."""
        try:
            # `texts` replaced invalid bytes to keep the parser going. The row is refused here.
            decode(b"\n".join(line for _, line in self.row))
        except MalformedLine as error:
            return error
        # The parser gives an empty line no cells.
        return [without_breaks(cell) for cell in cells] or [""]

    def parser(self) -> Iterator[list[str]]:
        # `strict`, because the default accepts a quotation
        # mark that is never closed as the end of the file.
        return csv.reader(
            self.texts(), delimiter=self.separator, skipinitialspace=True, strict=True
        )

    def texts(self) -> Iterator[str]:
        """The lines to parse, which become part of the current row."""
        while True:
            numbered = self.read_again.popleft() if self.read_again else next(self.lines, None)
            if numbered is None:
                return
            self.row.append(numbered)
            line = numbered[1].decode(errors="replace")
            # For the parser, a carriage return would end a row; for nmt, it ends no line.
            yield line.replace("\r", " ") + "\n"


def without_breaks(cell: str) -> str:
    """A cell without line breaks and tabs, which become spaces."""
    return re.sub(r"[\n\t]+", " ", cell)
