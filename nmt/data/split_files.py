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
from nmt.errors import NMTError, one_line

IDS = pa.list_(pa.int32())
IDS_SCHEMA = pa.schema(
    {
        "source": IDS,
        "target": IDS,
        "source_length": pa.int32(),
        "target_length": pa.int32(),
        "line": pa.int64(),
    }
)
"""Ids exclude the end symbol, but lengths include it.

`line` is the number of the pair's line in its source, counted from 1.
"""

READ_COLUMNS = [name for name in IDS_SCHEMA.names if name != "line"]

ONE_FILE = "pairs.arrow"
PATTERN = "pairs*.arrow"


def numbered_file(number: int) -> str:
    """The name of a file of a divided split, counted from 1."""
    return f"pairs-{number:05}.arrow"


def files_of_split(folder: Path, count: int | None = None) -> list[Path]:
    """The files of the split in `folder`, in the order of its rows.

    `count` is their number, if it is known. Raises NMTError if a file is missing, or if there are
    other files.
    """
    # A corpus may come from other people. A link in it could make nmt read any file.
    if folder.is_symlink():
        raise NMTError(f"{folder} is a link; prepare the corpus again")
    actual = sorted(path.name for path in folder.glob(PATTERN))
    if ONE_FILE in actual and len(actual) > 1:
        other = next(name for name in actual if name != ONE_FILE)
        raise NMTError(f"{folder} has {other} beside {ONE_FILE}; prepare the corpus again")
    if count is None and actual and ONE_FILE not in actual:
        expected = [numbered_file(number + 1) for number in range(len(actual))]
    elif count is None or count == 1:
        expected = [ONE_FILE]
    else:
        expected = [numbered_file(number + 1) for number in range(count)]
    missing = sorted({*expected} - {*actual})
    if missing:
        raise NMTError(
            f"{folder} lacks {missing[0]}, one of its {len(expected)} Arrow files: "
            "copy it there or prepare the corpus again"
        )
    foreign = sorted({*actual} - {*expected})
    if foreign:
        raise NMTError(
            f"{folder / foreign[0]} does not belong to this corpus, whose split has "
            f"{len(expected)} Arrow files: move it away or prepare the corpus again"
        )
    return [folder / name for name in expected]


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
