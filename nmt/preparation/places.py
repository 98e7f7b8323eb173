"""Where the numbered pairs of a split are in its files."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.text import FirstPairs, LineBlock, PairBlock

Where = Callable[[int], str]
"""Says where a pair is, from its number in the split, counted from 1."""


class Origin(NamedTuple):
    """Where the pairs of a block come from."""

    file: str | None
    """None: the same as the block before, or no file."""
    line: int | None
    """The first line of the block; None if only the pairs of its file are counted."""


class Known(NamedTuple):
    """A block whose first pair has a number."""

    number: int
    file: str
    line: int
    """Of the first pair, or its number in the file."""
    skipped: Sequence[int]
    """The ascending numbers of the malformed lines in the block."""
    unit: str
    """What `line` counts: lines or pairs."""


def in_words(number: int) -> str:
    """A pair of a corpus whose files are not known."""
    return f"pair {number:,}"


def origin_of(block: PairBlock) -> Origin:
    """Where the pairs of a block come from."""
    if isinstance(block, LineBlock):
        return Origin(str(block.paths[0]), block.first)
    return Origin(str(block.path) if isinstance(block, FirstPairs) else None, None)


def is_continued(earlier: Known, block: Known) -> bool:
    """Whether a block begins after the last line of an earlier one that has no skipped lines."""
    distance = block.number - earlier.number
    continues = block.line - earlier.line == distance and block.unit == earlier.unit
    return continues and block.file == earlier.file and not earlier.skipped


class Places:
    """The lines of the pairs of a split, whose blocks are added in order."""

    def __init__(self) -> None:
        self.blocks: list[Known] = []
        self.files: set[str] = set()
        self.is_plain = True
        """Whether the numbers of all pairs are those of their lines."""

    def add(self, origin: Origin, number: int, skipped: Sequence[int] = ()) -> None:
        """Add the next block: its origin, the number of its first pair, and its malformed lines."""
        # Without a file, these are the next pairs of the same table, or of no file.
        if origin.file is None:
            return
        unit = "line" if origin.line else "pair"
        self.files.add(origin.file)
        block = Known(number, origin.file, origin.line or 1, skipped, unit)
        # Otherwise, a corpus of a billion pairs would have a million blocks.
        if not (self.blocks and not skipped and is_continued(self.blocks[-1], block)):
            self.blocks.append(block)
        self.is_plain = self.is_plain and len(self.files) == 1 and not skipped

    def __call__(self, number: int) -> str:
        """Such as "pair 7"; "line 7 of FILE" if lines were skipped or there are several files."""
        after = bisect_right(self.blocks, number, key=lambda block: block.number)
        if self.is_plain or not after:
            return in_words(number)
        block = self.blocks[after - 1]
        line = block.line + number - block.number
        for skipped in block.skipped:
            line += skipped <= line
        return f"{block.unit} {line:,} of {self.shown(block.file)}"

    def shown(self, file: str) -> str:
        """The name of a file, without its folder if no other file has the same name."""
        names = {Path(other).name for other in self.files}
        return Path(file).name if len(names) == len(self.files) else file

    def remark(self, skipped: int) -> str:
        """What to say about pair numbers if that many rows were skipped; "" if nothing."""
        # Only the rows of tables are read without their lines.
        if not skipped or all(block.unit == "line" for block in self.blocks):
            return ""
        return "; pairs are counted without header and skipped rows"
