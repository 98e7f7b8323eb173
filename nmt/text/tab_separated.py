"""The rows of tab-separated tables, with or without the quotation marks of spreadsheets."""

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from nmt.text.files import MalformedLine, decode, read_lines

RECORD_LINES = 1000
"""The maximum number of lines in a row whose quoted cells contain line breaks."""
CELL = r'"[^"]*(?:""[^"]*)*"|[^"\t]*'
QUOTED_ROW = re.compile(rf"(?:{CELL})(?:\t(?:{CELL}))*")
Row = tuple[int, list[str] | MalformedLine]
"""The number of a row's first line, and its cells or the reason why it has none."""
Rows = Callable[[], Iterator[Row]]
"""Reads a table from its beginning with every call."""
log = logging.getLogger(__name__)


@dataclass
class Quotes:
    """Statistics of the quotation marks of a whole table."""

    widths: Counter[int] = field(default_factory=Counter)
    """The number of lines by the number of tabs in them."""
    quoted: int = 0
    doubled: int = 0
    """Quoted cells with doubled quotation marks."""
    broken: int = 0
    """Other quoted cells with line breaks or tabs."""
    needless: int = 0
    """Quoted cells without a comma, quotation mark, line break or tab."""
    bare: int = 0
    """Cells without quotation marks."""
    bare_commas: int = 0
    """Cells without quotation marks that contain a comma, which spreadsheets quote."""
    first_problem: int = 0
    """The line of the first row that breaks the rules of quoted cells."""

    @property
    def are_of_spreadsheet(self) -> bool:
        """Whether a spreadsheet wrote the quotation marks around cells, so they are no text.

        Spreadsheets quote only cells that contain a comma, quotation mark, line break or tab, and
        double the quotation marks inside. Other programs quote every cell.
        """
        # One row that breaks the rules shows that quotation marks belong to the text.
        if self.first_problem or not self.quoted:
            return False
        # Some quoted cells contain line breaks or tabs, without which the table would not be one:
        # its lines have different numbers of cells. Equal numbers prove nothing, because then each
        # line may be a row on its own.
        if self.broken and len(self.widths) > 1:
            return True
        # Hardly any text has doubled quotation marks.
        if self.doubled > 0:
            return True
        is_every_cell_quoted = self.bare == 0
        if is_every_cell_quoted:
            return True
        # Some quoted cells, all of them with a comma, and no other cell with a comma. Two such
        # cells may be a coincidence.
        only_commas_are_quoted = not (self.bare_commas or self.needless or self.broken)
        return only_commas_are_quoted and self.quoted > 2

    def add(self, cell: str) -> None:
        """Count a cell that is not empty."""
        if not cell.startswith('"'):
            self.bare += 1
            if "," in cell:
                self.bare_commas += 1
            return
        self.quoted += 1
        inner = cell[1:-1]
        if '"' in inner:
            self.doubled += 1
        elif "\n" in inner or "\t" in inner:
            self.broken += 1
        elif "," not in inner:
            self.needless += 1


def tab_separated_rows(path: Path) -> Rows:
    """The rows of a table; a notice says whether quotation marks are removed."""
    quotes = quotes_in(path)
    # One decision for the whole table, so that equal cells are read alike in all rows.
    is_quoted = quotes.are_of_spreadsheet
    if is_quoted:
        log.warning(
            f"notice: {path}: removed the quotation marks that a spreadsheet put around "
            f"{quotes.quoted:,} cells"
        )
    # Doubled quotation marks are those of a spreadsheet, so the user may want to correct that row.
    elif quotes.doubled and quotes.first_problem:
        log.warning(
            f"notice: {path}: cells look quoted by a spreadsheet, but line "
            f"{quotes.first_problem} does not, so quotation marks stay"
        )
    return partial(rows, path, is_quoted)


def quotes_in(path: Path) -> Quotes:
    """Count the quoted cells of a table, until a row is not written like quoted cells."""
    quotes = Quotes()
    for number, record in records(path, is_quoted=True):
        # Of lines, not of rows: equal widths mean that each line would be a row on its own.
        for line in record.split(b"\n"):
            quotes.widths[line.count(b"\t")] += 1
        text = record.decode(errors="replace")
        if '"' in text and not QUOTED_ROW.fullmatch(text):
            quotes.first_problem = number
            break
        for cell in cells_of(text):
            if cell:
                quotes.add(cell)
    return quotes


def records(path: Path, is_quoted: bool) -> Iterator[tuple[int, bytes]]:
    """The rows of a table, with the numbers of their first lines."""
    record = b""
    first = 0  # the number of the record's first line; 0 if it has none yet
    for number, line in enumerate(read_lines(path), 1):
        if first:
            record += b"\n" + line
        else:
            record = line
            first = number
        # An odd number of quotation marks: a quoted cell continues on the next line.
        is_open = is_quoted and record.count(b'"') % 2 == 1
        # Without the limit, one stray quotation mark would take the rest of the file into memory.
        if is_open and number - first < RECORD_LINES:
            continue
        yield first, record
        first = 0
    if first:
        yield first, record


def rows(path: Path, is_quoted: bool) -> Iterator[Row]:
    for number, record in records(path, is_quoted):
        try:
            text = decode(record)
        except MalformedLine as error:
            yield number, error
            continue
        if is_quoted:
            yield number, [unquoted(cell) for cell in cells_of(text)]
        else:
            yield number, text.split("\t")


def cells_of(row: str) -> list[str]:
    """The cells of a row, with the quotation marks around them."""
    if '"' not in row:
        return row.split("\t")
    # Not `split`, because a quoted cell may contain tabs.
    return re.findall(rf"(?:^|\t)({CELL})", row)


def unquoted(cell: str) -> str:
    """The text of a cell; line breaks and tabs inside a quoted cell become spaces."""
    if not cell.startswith('"'):
        return cell
    text = cell[1:-1].replace('""', '"')
    return re.sub(r"[\r\n\t]+", " ", text)
