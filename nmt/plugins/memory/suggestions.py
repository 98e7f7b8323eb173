"""Read a memory from the file in which `nmt serve` collects suggestions."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from nmt.config import DataConfig
from nmt.text import Pair, match_language

TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z")
"""The time of a suggestion, in the last column."""
CELLS = 5
"""Source, suggestion, both languages and time."""
MOST_OF_ROW = 2**20
"""The maximum number of characters of a row by which the file is recognized."""


def is_suggestion(cells: Sequence[str]) -> bool:
    return len(cells) == CELLS and TIME.fullmatch(cells[-1].strip()) is not None


def is_of_suggestions(paths: Sequence[Path]) -> bool:
    """Whether a file is one of suggestions, or an empty table that may become one."""
    if len(paths) != 1 or paths[0].suffix != ".tsv":
        return False
    with paths[0].open(encoding="utf-8", errors="replace") as file:
        row = file.readline(MOST_OF_ROW)
    return not row or is_suggestion(row.split("\t"))


def read_suggestions(path: Path, config: DataConfig) -> Iterator[Pair]:
    """The suggestions in a direction, and rows of two cells.

    Rows of any other form are left out.
    """
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        for row in file:
            cells = row.strip("\r\n").split("\t")
            # A server may be writing the last row.
            is_pair = len(cells) == 2 and row.endswith("\n")
            if is_pair or (is_suggestion(cells) and fits(cells, config)):
                yield cells[0], cells[1]


def fits(cells: Sequence[str], config: DataConfig) -> bool:
    """Whether a suggestion is in a direction."""
    is_source = match_language(cells[2], [config.source]) is not None
    return is_source and match_language(cells[3], [config.target]) is not None
