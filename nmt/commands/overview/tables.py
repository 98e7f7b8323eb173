"""The tables that `nmt runs` prints; rich is imported only here."""

import sys
import time
from itertools import groupby
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

from nmt import files
from nmt.commands.overview.listing import Row
from nmt.config import shown

WIDE = 10_000
"""The width of an output that is not a terminal, so that no cell is wrapped."""


def print_tables(rows: list[Row]) -> None:
    """Print a table of each kind of folder, without empty columns.

    Columns are plain if the output is not a terminal.
    """
    is_terminal = sys.stdout.isatty()
    # No markup or emoji codes: a folder's name such as [red] or :smile: is printed as it is.
    console = Console(
        width=None if is_terminal else WIDE, markup=False, highlight=False, emoji=False
    )
    # The rows are sorted by kind already.
    for kind, group in groupby(rows, lambda row: row["kind"]):
        group_rows = [*group]
        table = Table(box=SIMPLE_HEAD if is_terminal else None, padding=(0, 1, 0, 0))
        cells = [cells_of(row) for row in group_rows]
        titles = titles_of(group_rows, kind)
        for key, title in titles.items():
            # A name stays on one line, so that it can be copied.
            table.add_column(title, no_wrap=key == "name")
        for row in cells:
            table.add_row(*[row.get(key, "") for key in titles])
        console.print(table)


def cells_of(row: Row) -> dict[str, str]:
    """The text of each value that is not empty, except for the kind."""
    # Not the kind, because it is the title of the first column.
    return {key: cell(key, value) for key, value in row.items() if value and key != "kind"}


def titles_of(rows: list[Row], kind: str) -> dict[str, str]:
    """The title of each column in which a row has a cell, in the order of the rows' keys."""
    renamed = {"name": kind, "bytes": "size", "modified": "age"}
    titles = {}
    keys = dict[str, None]()  # in the order of the rows
    for row in rows:
        keys |= dict.fromkeys(row)
    keys.pop("kind", None)
    for key in keys:
        if any(row.get(key) for row in rows):
            titles[key] = renamed.get(key, key.replace("_", " "))
    return titles


def cell(key: str, value: Any) -> str:
    """A value as a user reads it; `modified` becomes an age."""
    if key == "bytes":
        return decimal(value)
    if key == "modified":
        return files.duration(time.time() - value)
    if key == "problem":
        return shown(value)
    if isinstance(value, str):
        return files.printable(value)
    if isinstance(value, int):
        return f"{value:,d}"
    # Losses differ less than scores do.
    return f"{value:.3f}" if key == "valid_loss" else f"{value:.2f}"
