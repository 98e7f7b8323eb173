"""Sentence pairs in the columns of tables, as people and spreadsheets write them."""

import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from nmt.config import DataConfig, NMTError
from nmt.text.comma_separated import CELL_SEPARATORS, comma_separated_rows, separator_of
from nmt.text.files import MalformedLine
from nmt.text.language_names import all_names
from nmt.text.pairs import Pair
from nmt.text.tab_separated import Rows, tab_separated_rows

SAMPLE_ROWS = 1000
"""The first rows of a table, whose cells show which columns have texts."""
FEWEST_ROWS = 3
"""Fewer rows do not show what a column contains."""
LETTERS = re.compile(r"[^\W\d_]{2}")
FEW_CELLS = 20
"""Up to this many cells may be equal by chance."""
LARGEST_REPETITION = 0.02
"""The largest share of distinct cells in a column of labels, such as language codes."""
log = logging.getLogger(__name__)


@dataclass
class Survey:
    """Statistics of the columns of a whole table."""

    widths: Counter[int] = field(default_factory=Counter)
    """The number of rows by their number of columns."""
    sample: list[list[str]] = field(default_factory=list)
    """The first rows."""

    def add(self, cells: list[str]) -> None:
        self.widths[len(cells)] += 1
        if len(self.sample) < SAMPLE_ROWS:
            self.sample.append(cells)

    @property
    def width(self) -> int:
        """The number of columns of most rows.

        A row with one column has no pair, so it does not count if there are others.
        """
        widths = [width for width in self.widths if width > 1]
        if not widths:
            widths = list(self.widths)
        return max(widths, key=lambda width: self.widths[width], default=0)


def survey_of(rows: Rows) -> Survey:
    """Read a whole table once, so that every row counts."""
    survey = Survey()
    for _, cells in rows():
        if not isinstance(cells, MalformedLine):
            survey.add(cells)
    return survey


def titles(code: str, *others: str) -> set[str]:
    """The possible headers of a column in a language."""
    language = re.split("[-_]", code)[0]
    # A header may say en_US, en, English, or the language's name in itself.
    return {code.casefold(), language.casefold(), *all_names(code), *others}


def column_titles(cell: str) -> set[str]:
    """A cell in lower case, and its first part: en for "en-US", source for source_text."""
    cell = re.sub(r"^\W+|\W+$", "", cell).casefold()
    return {cell, re.sub(r"^([^\W_]+)[-_]\w+$", r"\1", cell)}


def columns_of_header(cells: list[str], config: DataConfig) -> tuple[int, int] | None:
    """The columns that a header row names; None if the row is not a header."""
    source = column_titled(cells, titles(config.source, "source", "src"))
    target = column_titled(cells, titles(config.target, "target", "tgt", "trg"))
    if source is None or target is None or source == target:
        return None
    return source, target


def column_titled(cells: list[str], titles: set[str]) -> int | None:
    """The only column of a header row with one of these titles; None if there is no such column."""
    columns = [number for number, cell in enumerate(cells) if titles & column_titles(cell)]
    return columns[0] if len(columns) == 1 else None


def header_of(survey: Survey, config: DataConfig) -> tuple[int, int] | None:
    """The columns that the first row names; None if it is not a header.

    Columns of language codes name the languages in every row.
    """
    # If the second row says the same, both are data: language codes.
    first_rows = [columns_of_header(cells, config) for cells in survey.sample[:2]]
    is_header = bool(first_rows) and first_rows[0] not in first_rows[1:]
    return first_rows[0] if is_header else None


def is_text_column(cells: Iterable[str]) -> bool:
    """Whether most cells have letters, and the cells are not the same few labels."""
    # Empty cells say nothing about a column.
    filled = [cell for cell in cells if cell.strip()]
    with_letters = sum(LETTERS.search(cell) is not None for cell in filled)
    # A single letter, such as a Chinese one, may be a word.
    only_letters = sum(not cell.isascii() and cell.isalpha() for cell in filled)
    if 2 * max(with_letters, only_letters) <= len(filled):
        return False
    most_labels = max(2, LARGEST_REPETITION * len(filled))
    return len(filled) <= FEW_CELLS or len(set(filled)) > most_labels


def text_columns(path: Path, survey: Survey, config: DataConfig) -> tuple[int, int]:
    """The columns of source and target, counted from 0; NMTError if they are not evident."""
    # The user's choice comes first, then the header, then the content of the columns.
    if config.columns:
        if max(config.columns) > survey.width:
            raise NMTError(f"data.columns={config.columns}: {path} has {survey.width} columns")
        return config.columns[0] - 1, config.columns[1] - 1
    header = header_of(survey, config)
    if header:
        return header
    # Longer headers would hide what the column contains.
    # Only rows of the usual width, because a separator in a sentence shifts the columns after it.
    sample = [cells for cells in survey.sample if len(cells) == survey.width]
    if survey.width < 2 or len(sample) < FEWEST_ROWS:
        return 0, 1
    return columns_of_sample(path, sample)


def columns_of_sample(path: Path, sample: list[list[str]]) -> tuple[int, int]:
    """The columns of source and target in rows of equal width, by their content."""
    width = len(sample[0])
    candidates = columns_of_text(sample)
    if width == 2:
        if len(candidates) == 1:
            lacking = 2 - candidates[0]
            log.warning(f"notice: {path}: column {lacking} contains hardly any text")
        return 0, 1
    # Columns after the pair may contain text, too, such as comments or the names of authors.
    if candidates[:2] == [0, 1]:
        return 0, 1
    if len(candidates) == 2:
        return candidates[0], candidates[1]
    first_row = " | ".join(cell[:30] for cell in sample[0])
    raise NMTError(
        f"{path}: cannot tell which of its {width} columns hold source and target. The "
        f"first row is {first_row!r:.200}; pass data.columns=[SOURCE,TARGET], such as "
        "data.columns=[2,3]"
    )


def columns_of_text(rows: list[list[str]]) -> list[int]:
    """The columns of rows of equal width that contain text, counted from 0."""
    columns = []
    for column in range(len(rows[0])):
        if is_text_column(cells[column] for cells in rows):
            columns.append(column)
    return columns


def has_other_columns(cells: list[str], width: int) -> bool:
    """Whether a row lacks columns of the table or has more text; spreadsheets add empty cells."""
    return len(cells) < width or any(cells[width:])


def pair_in(
    cells: list[str],
    columns: tuple[int, int],
    width: int,
    separator: str,
    is_chosen: bool,
) -> Pair:
    """The texts of a row; MalformedLine if they may be in other columns than in most rows.

    A row may lack columns after the texts. More columns than usual may come from a `separator` in
    a sentence, unless the user has chosen the columns (`is_chosen`).
    """
    if len(cells) == 1:
        raise MalformedLine("malformed", f"no {separator} between source and target")
    lacks_text = len(cells) <= max(columns)
    has_more_text = any(cells[width:])
    if lacks_text or (has_more_text and not is_chosen):
        problem = f"{len(cells)} columns, but most rows have {width}"
        # The row may be fine, and the user can say so. A row that lacks a text cannot be.
        if not lacks_text:
            option = f"data.columns={shown(columns)}"
            problem += f", so a sentence may contain a {separator} (if not, pass {option})"
        raise MalformedLine("other number of columns", problem)
    return cells[columns[0]], cells[columns[1]]


def shown(columns: tuple[int, int]) -> str:
    """The value of data.columns for columns that count from 0."""
    return f"[{columns[0] + 1},{columns[1] + 1}]"


def read_tsv(path: Path, config: DataConfig, counts: Counter[str]) -> Iterator[Pair]:
    return read_table(path, tab_separated_rows(path), "tab", config, counts)


def read_csv(path: Path, config: DataConfig, counts: Counter[str]) -> Iterator[Pair]:
    separator = separator_of(path)
    rows = partial(comma_separated_rows, path, separator)
    return read_table(path, rows, CELL_SEPARATORS[separator], config, counts)


def read_table(
    path: Path,
    rows: Rows,
    separator: str,
    config: DataConfig,
    counts: Counter[str],
) -> Iterator[Pair]:
    """The pairs of a table; malformed rows are errors or, with data.errors=skip, only counted."""
    # Two passes: a table shows its columns only as a whole, and does not fit into memory.
    survey = survey_of(rows)
    columns = text_columns(path, survey, config)
    header = header_of(survey, config)
    if survey.width > 2:
        log.warning(
            f"notice: {path}: columns {columns[0] + 1} and {columns[1] + 1} of {survey.width} are "
            "the texts",
            # Only some commands have this option.
            extra={"advice": "data.columns=[SOURCE,TARGET] chooses other columns"},
        )
    is_chosen = bool(config.columns)
    other_rows = 0
    first_other = 0
    for number, cells in rows():
        try:
            if isinstance(cells, MalformedLine):
                raise cells
            if number == 1 and header:
                counts["header row"] += 1
                continue
            pair = pair_in(cells, columns, survey.width, separator, is_chosen)
        except MalformedLine as error:
            if config.errors == "strict":
                advice = "fix it, or pass data.errors=skip"
                raise NMTError(f"{path}, line {number}: {error}; {advice}") from error
            counts[error.counted_as] += 1
            continue
        if has_other_columns(cells, survey.width):
            other_rows += 1
            if not first_other:
                first_other = number
        yield pair
    if other_rows:
        log.warning(
            f"notice: {path}: {other_rows:,} rows do not have {survey.width} columns as most rows "
            f"do, first line {first_other}; their texts were read from columns {shown(columns)}"
        )
