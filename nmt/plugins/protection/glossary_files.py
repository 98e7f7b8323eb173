"""Glossary files: tables of terms and their translations."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from nmt.config import NMTError, require, without_compression
from nmt.plugins.protection.glossary import Entry, Glossary
from nmt.plugins.protection.occurrences import term_words
from nmt.text import (
    CELL_SEPARATORS,
    MalformedLine,
    Row,
    canonical,
    clean,
    comma_separated_rows,
    read_texts,
    separator_of,
)

CASE = "case"
"""The third cell of a term whose case matters."""
QUOTED = re.compile(r'".+"')


def entry_of(cells: Sequence[str], separator: str) -> Entry:
    """The entry in a row of a glossary; `separator` is the name of the sign between cells."""
    # Sources are compared with what the model reads, translations with what it writes.
    source, *others = cells
    # A file without the separator is probably in another format.
    columns = [clean(source), *map(canonical, others)]
    if len(columns) < 2:
        how = f"write a term, a {separator} and its translation"
        raise NMTError(f"no {separator}: {how}, or export a spreadsheet as TSV or CSV")
    source, target, *more = columns
    # Spreadsheets write a separator after an empty last cell.
    if more not in ([], [CASE], [""]):
        raise NMTError(f'only a {separator} and "case" may follow the translation')
    # A cell may consist of invisible characters, and `first_word` needs a word.
    require(bool(term_words(source)), "the source is empty")
    require(bool(term_words(target)), "the target is empty")
    return Entry(source, target, case=more == [CASE])


def unquoted(cell: str) -> str:
    """A cell without the quotes that spreadsheets put around it."""
    return cell[1:-1].replace('""', '"') if QUOTED.fullmatch(cell) else cell


def rows_of_tabs(name: str) -> Iterator[Row]:
    """The numbered rows of a file whose cells are separated by tabs, without comments."""
    for number, line in enumerate(read_texts(name), 1):
        # Comments keep their number, so that messages name the line that an editor shows.
        if not line.startswith("#"):
            yield number, [unquoted(cell) for cell in line.split("\t")]


def rows_of_commas(path: Path, separator: str) -> Iterator[Row]:
    """The numbered rows of a CSV file, without comments."""
    for number, cells in comma_separated_rows(path, separator):
        if isinstance(cells, MalformedLine) or not cells[0].startswith("#"):
            yield number, cells


def read_glossary(name: str, source: str = "", target: str = "") -> Glossary:
    """Read a glossary file between two languages.

    An NMTError names the first invalid line.
    """
    separator = "\t"
    rows = rows_of_tabs(name)
    # By the name and not the content, because terms may contain commas and semicolons.
    if Path(without_compression(name)).suffix == ".csv":
        separator = separator_of(Path(name))
        rows = rows_of_commas(Path(name), separator)
    entries = list[Entry]()
    for number, cells in rows:
        try:
            if isinstance(cells, MalformedLine):
                raise NMTError(str(cells)) from cells
            if any(map(str.strip, cells)):
                entries.append(entry_of(cells, CELL_SEPARATORS[separator]))
        except NMTError as error:
            raise NMTError(f"{name}, line {number}: {error}") from error
    require(bool(entries), f"{name}: contains no terms")
    return Glossary(entries, source, target)
