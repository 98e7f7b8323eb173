"""The files of a prepared split: their names, and the columns that training reads.

pairs.arrow                              a split in one file
pairs-00001.arrow, pairs-00002.arrow     a large training split, divided among files
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from nmt.data.columns import MappedColumns
from nmt.data.mapped_files import MappedFiles
from nmt.data.schema import IDS_SCHEMA
from nmt.errors import NMTError, one_line

READ_COLUMNS = [name for name in IDS_SCHEMA.names if name != "line"]

ONE_FILE = "pairs.arrow"
PATTERN = "pairs*.arrow"


def numbered_files(count: int) -> list[str]:
    """The names of the files of a divided split."""
    return [f"pairs-{number:05}.arrow" for number in range(1, count + 1)]


def files_of_split(folder: Path, count: int | None = None) -> list[Path]:
    """The files of the split in `folder`, in the order of its rows.

    `count` is their number, if it is known. Raises NMTError if a file is missing, or if there are
    other files.
    """
    # A corpus may come from other people. A link in it could make nmt read any file.
    if folder.is_symlink():
        raise NMTError(f"{folder} is a link; prepare the corpus again")
    actual = sorted(path.name for path in folder.glob(PATTERN))
    numbered = [name for name in actual if name != ONE_FILE]
    if numbered and ONE_FILE in actual:
        raise NMTError(f"{folder} has {numbered[0]} beside {ONE_FILE}; prepare the corpus again")
    if count is None:
        count = max(len(actual), 1)
        is_divided = bool(numbered)
    else:
        is_divided = count > 1
    expected = numbered_files(count) if is_divided else [ONE_FILE]
    check_names(folder, actual, expected)
    return [folder / name for name in expected]


def check_names(folder: Path, actual: list[str], expected: list[str]) -> None:
    """Raise NMTError unless a folder has the expected files and no others."""
    missing = sorted({*expected} - {*actual})
    if missing:
        raise NMTError(
            f"{folder} lacks {missing[0]} of its files {shown(expected)}: "
            "copy it there or prepare the corpus again"
        )
    foreign = sorted({*actual} - {*expected})
    if foreign:
        raise NMTError(
            f"{folder / foreign[0]} is none of this corpus's files {shown(expected)}: "
            "move it away or prepare the corpus again"
        )


def shown(names: list[str]) -> str:
    """The first and the last name of some files."""
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


class SplitFiles(MappedFiles):
    """The files of a prepared split."""

    schema = IDS_SCHEMA

    def __init__(self, paths: Sequence[Path], rows: Sequence[int] | None = None) -> None:
        super().__init__(paths, READ_COLUMNS, rows)

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return type(self), (self.paths, np.diff(self.starts).tolist())

    def open(self, number: int) -> MappedColumns:
        """The columns of a file; NMTError if it is damaged or has other columns."""
        try:
            return super().open(number)
        except (OSError, ValueError, MemoryError, pa.ArrowException) as error:
            raise damaged(self.paths[number], error) from error


def damaged(path: Path, error: Exception) -> NMTError:
    """The error for a file of a split whose content is invalid."""
    return NMTError(
        f"{path}: damaged or not a prepared corpus ({one_line(error)}); prepare it again"
    )
