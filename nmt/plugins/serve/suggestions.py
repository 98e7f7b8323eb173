"""The file of suggested translations: a table (TSV) with a row for each line."""

import fcntl
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from nmt.config import NMTError

BREAKS = re.compile(r" *[\x00-\x1f\x7f-\x9f\u2028\u2029][ \x00-\x1f\x7f-\x9f\u2028\u2029]*")
"""Control characters, tabs and line breaks, with the blanks around them."""
END_OF_EMBEDDING = "\u202c"
END_OF_ISOLATE = "\u2069"
CLOSED_BY = {
    "\u202a": END_OF_EMBEDDING,
    "\u202b": END_OF_EMBEDDING,
    "\u202d": END_OF_EMBEDDING,
    "\u202e": END_OF_EMBEDDING,
    "\u2066": END_OF_ISOLATE,
    "\u2067": END_OF_ISOLATE,
    "\u2068": END_OF_ISOLATE,
}
"""The characters that begin text in another direction, and the character that ends it."""
MOST_BYTES = 2**28
"""Maximum size of the file; the last row may exceed it."""
DIRECTIONS = re.compile(f"[{''.join({*CLOSED_BY, *CLOSED_BY.values()})}]")


def has_balanced_directions(text: str) -> bool:
    """Whether all text in another direction also ends, so that it does not affect what follows."""
    expected_ends = list[str]()
    for character in DIRECTIONS.findall(text):
        if character in CLOSED_BY:
            expected_ends.append(CLOSED_BY[character])
        elif not expected_ends or expected_ends.pop() != character:
            return False
    return not expected_ends


def cell_of(text: str) -> str:
    """A text as a cell.

    Without characters that would break the row or change how other cells look.
    """
    text = BREAKS.sub(" ", text).strip(" ")
    # Marks of direction are part of Arabic and Hebrew text, so they stay if they affect only this
    # cell.
    if has_balanced_directions(text):
        return text
    return DIRECTIONS.sub("", text)


def is_blank(text: str) -> bool:
    """Whether a text has no visible character."""
    # Zero-width characters are not text, and `strip` keeps them.
    printable = "".join(filter(str.isprintable, text))
    return not printable.strip()


def pairs_of_lines(text: str, suggestion: str) -> list[tuple[str, str]]:
    """The lines of a text with those of its translation; one pair if their numbers differ.

    Lines that are blank on one side are left out.
    """
    sources = text.split("\n")
    targets = suggestion.split("\n")
    if len(sources) != len(targets):
        return [(text, suggestion)]
    pairs = zip(sources, targets, strict=True)
    filled = [pair for pair in pairs if not any(map(is_blank, pair))]
    return filled or [(text, suggestion)]


def collect(path: str | None, rows: Iterable[Sequence[str]] = ()) -> None:
    """Append rows of cells to a TSV file, as other servers may do at the same time.

    Creates the file if there is none. Raises NMTError if that is impossible.
    """
    lines = ["\t".join(map(cell_of, cells)) + "\n" for cells in rows]
    try:
        # All rows are written at once, when the block ends.
        # The lock keeps other servers from writing between the check of the size and the write.
        with Path(path or os.devnull).open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            # A client could otherwise fill the disk.
            if file.tell() >= MOST_BYTES:
                raise NMTError(f"suggestions={path}: has more than 256 MiB; pass another file")
            file.write("".join(lines).encode())
    except OSError as error:
        advice = "pass a file that the server can write"
        raise NMTError(f"suggestions={path}: {error.strerror}; {advice}") from error
