"""Sentence pairs in the columns of tables, as people and spreadsheets write them."""

import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from nmt.config import DataConfig, NMTError
from nmt.text.codes import all_names
from nmt.text.comma_separated import CELL_SEPARATORS, comma_separated_rows, separator_of
from nmt.text.files import MalformedLine, Pair
from nmt.text.tab_separated import Rows, tab_separated_rows

SAMPLE_ROWS = 1000
LETTERS = re.compile(r"[^\W\d_]{2}")
LARGEST_REPETITION = 0.02
"""The largest share of distinct cells in a column of labels, such as language codes."""
log = logging.getLogger(__name__)


@dataclass
class Survey:
    """What a whole table shows about its columns."""

    widths: Counter[int] = field(default_factory=Counter)  # number of columns -> rows
    sample: list[list[str]] = field(default_factory=list)

    def add(self, cells: list[str]) -> None:
        self.widths[len(cells)] += 1
        if len(self.sample) < SAMPLE_ROWS:
            self.sample.append(cells)

    @property
    def width(self) -> int:
        """The number of columns of most rows. A row with one column has no pair, so it does not count."""
        tables = Counter({width: rows for width, rows in self.widths.items() if width > 1})
        counted = tables or self.widths
        return counted.most_common(1)[0][0] if counted else 0


def survey_of(rows: Rows) -> Survey:
    """Read a whole table once, so that every row counts."""
    survey = Survey()
    for _, cells in rows():
        if not isinstance(cells, MalformedLine):
            survey.add(cells)
    return survey


def titles(code: str, *others: str) -> set[str]:
    """What the header of a column in a language may say."""
    language = re.split("[-_]", code)[0]
    return {code.casefold(), language.casefold(), *all_names(code), *others}


def column_titles(cell: str) -> set[str]:
    """What a cell says in lower case, and its first part: en for "en-US", source for source_text."""
    cell = re.sub(r"^\W+|\W+$", "", cell).casefold()
    return {cell, re.sub(r"^([^\W_]+)[-_]\w+$", r"\1", cell)}


def columns_of_header(cells: list[str], config: DataConfig) -> tuple[int, int] | None:
    """The columns that a header row names; None if the row is not a header."""
    columns = list[int]()
    for names in (
        titles(config.source, "source", "src"),
        titles(config.target, "target", "tgt", "trg"),
    ):
        matching = [number for number, cell in enumerate(cells) if names & column_titles(cell)]
        if len(matching) != 1:
            return None
        columns += matching
    return None if columns[0] == columns[1] else (columns[0], columns[1])


def header_of(survey: Survey, config: DataConfig) -> tuple[int, int] | None:
    """The columns that the first row names; None if it is not a header.

    Columns of language codes name the languages in every row.
    """
    first_rows = [columns_of_header(cells, config) for cells in survey.sample[:2]]
    is_header = bool(first_rows) and first_rows[0] not in first_rows[1:]
    return first_rows[0] if is_header else None


def is_text_column(cells: Iterable[str]) -> bool:
    """Whether most cells have letters, and the cells are not the same few labels."""
    filled = [cell for cell in cells if cell.strip()]
    with_letters = sum(LETTERS.search(cell) is not None for cell in filled)
    without_blanks = sum(not cell.isascii() and cell.isalpha() for cell in filled)
    is_label = len(filled) > 20 and len(set(filled)) <= max(2, LARGEST_REPETITION * len(filled))
    return 2 * max(with_letters, without_blanks) > len(filled) and not is_label


def text_columns(path: Path, survey: Survey, config: DataConfig) -> tuple[int, int]:
    """The columns of source and target, counted from 0; NMTError if they are not evident."""
    if config.columns:
        if max(config.columns) > survey.width:
            raise NMTError(f"data.columns={config.columns}: {path} has {survey.width} columns")
        return config.columns[0] - 1, config.columns[1] - 1
    header = header_of(survey, config)
    if header or survey.width < 2:
        return header or (0, 1)
    # Longer headers would hide what the column contains.
    sample = [cells for cells in survey.sample if len(cells) == survey.width]
    if len(sample) < 3:
        return 0, 1
    candidates = list[int]()
    for column in range(survey.width):
        if is_text_column(cells[column] for cells in sample):
            candidates.append(column)
    if survey.width == 2 and len(candidates) == 1:
        lacking = 2 - candidates[0]
        log.warning(f"notice: {path}: column {lacking} contains hardly any text")
        return 0, 1
    if survey.width == 2 or candidates[:2] == [0, 1]:
        return 0, 1
    if len(candidates) == 2:
        return candidates[0], candidates[1]
    shown = " | ".join(cell[:30] for cell in sample[0])
    raise NMTError(
        f"{path}: cannot tell which of its {survey.width} columns hold source and target. The first row is "
        f"{shown!r:.200}; pass data.columns=[SOURCE,TARGET], such as data.columns=[2,3]"
    )


def has_other_columns(cells: list[str], width: int) -> bool:
    """Whether a row lacks columns of the table or has more text; spreadsheets add empty cells."""
    return len(cells) < width or any(cells[width:])


def pair_in(
    cells: list[str], columns: tuple[int, int], width: int, separator: str, is_chosen: bool
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
    path: Path, rows: Rows, separator: str, config: DataConfig, counts: Counter[str]
) -> Iterator[Pair]:
    """The pairs of a table; malformed rows are errors or, with data.errors=skip, only counted."""
    survey = survey_of(rows)
    columns = text_columns(path, survey, config)
    header = header_of(survey, config)
    if survey.width > 2:
        log.warning(
            f"notice: {path}: columns {columns[0] + 1} and {columns[1] + 1} of {survey.width} are "
            "the texts; data.columns=[SOURCE,TARGET] chooses other columns"
        )
    other_rows = 0
    first_other = 0
    for number, cells in rows():
        try:
            if isinstance(cells, MalformedLine):
                raise cells
            if number == 1 and header:
                counts["header row"] += 1
                continue
            pair = pair_in(cells, columns, survey.width, separator, is_chosen=bool(config.columns))
        except MalformedLine as error:
            if config.errors == "strict":
                advice = "fix it, or pass data.errors=skip"
                raise NMTError(f"{path}, line {number}: {error}; {advice}") from error
            counts[error.counted_as] += 1
            continue
        if has_other_columns(cells, survey.width):
            other_rows += 1
            first_other = first_other or number
        yield pair
    if other_rows:
        log.warning(
            f"notice: {path}: {other_rows:,} rows do not have {survey.width} columns as most rows "
            f"do, first line {first_other}; their texts were read from columns {shown(columns)}"
        )
