"""The file of suggested translations: a table (TSV) with a row for each."""

import fcntl
import os
import re
from pathlib import Path

from nmt.config import NMTError, require

BREAKS = re.compile(r" *[\x00-\x1f\x7f-\x9f\u2028\u2029][ \x00-\x1f\x7f-\x9f\u2028\u2029]*")
"""Control characters, tabs and line breaks, with the blanks around them."""
CLOSED_BY = dict.fromkeys("\u202a\u202b\u202d\u202e", "\u202c") | dict.fromkeys(
    "\u2066\u2067\u2068", "\u2069"
)
"""The characters that begin text in another direction, and the character that ends it."""
DIRECTIONS = re.compile(f"[{''.join({*CLOSED_BY, *CLOSED_BY.values()})}]")


def has_balanced_directions(text: str) -> bool:
    """Whether all text in another direction also ends, so that what follows a text is shown as it is."""
    open_ones = list[str]()
    for character in DIRECTIONS.findall(text):
        if character in CLOSED_BY:
            open_ones.append(CLOSED_BY[character])
        elif not open_ones or open_ones.pop() != character:
            return False
    return not open_ones


def cell_of(text: str) -> str:
    """A text as a cell: as it was typed, except for characters that would break the row or change how others look."""
    text = BREAKS.sub(" ", text).strip(" ")
    return text if has_balanced_directions(text) else DIRECTIONS.sub("", text)


def is_blank(text: str) -> bool:
    """Whether a text has no visible character."""
    return not any(character.isprintable() and not character.isspace() for character in text)


def collect(path: str | None, *cells: str) -> None:
    """Append a row to a TSV file, as other servers may do at the same time; raise NMTError if that is impossible.

    Without cells, only check that the file can be written.
    """
    row = "\t".join(map(cell_of, cells)) + "\n" if cells else ""
    try:
        with Path(path or os.devnull).open(
            "ab"
        ) as file:  # the row is written at once, when the block ends
            fcntl.flock(file, fcntl.LOCK_EX)
            require(
                file.tell() < 2**28, f"suggestions={path}: has more than 256 MiB; pass another file"
            )
            file.write(row.encode())
    except OSError as error:
        raise NMTError(
            f"suggestions={path}: {error.strerror}; pass a file that the server can write"
        ) from error
