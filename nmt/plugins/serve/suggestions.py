"""The file of suggested translations: a table (TSV) with a row for each."""

import fcntl
import os
from pathlib import Path

from nmt.config import NMTError, require
from nmt.files import printable


def collect(path: str | None, *cells: str) -> None:
    """Append a row to a TSV file, as other servers may do at the same time; raise NMTError if that is impossible."""
    row = "\t".join(printable(" ".join(cell.split())) for cell in cells) + "\n" * bool(cells)
    try:
        with Path(path or os.devnull).open("ab") as file:  # the row is written at once, when the block ends
            fcntl.flock(file, fcntl.LOCK_EX)
            require(file.tell() < 2**28, f"suggestions={path}: has more than 256 MiB; pass another file")
            file.write(row.encode())
    except OSError as error:
        raise NMTError(f"suggestions={path}: {error.strerror}; pass a file that the server can write") from error
