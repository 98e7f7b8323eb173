"""Find where lines of a training text do not continue the lines before them.

Joined training pairs must be consecutive in the original text. Most gaps show in the numbers of the
lines that are left. A new file and malformed lines, which have no number, do not, so they are
recorded.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from nmt.text import PairBlock, begins_file


class WatchedBlock(NamedTuple):
    """What the reading of a block shows about its beginning."""

    begins_file: bool
    has_gaps: bool
    """Whether the reader skipped lines in the block, or just before it."""


class Borders:
    """The borders of a source. Reading runs ahead of cleaning, but both are in order."""

    def __init__(self) -> None:
        self.skipped = Counter[str]()
        """The malformed lines that this process skips, by reason; workers count theirs."""
        self.waiting = deque[WatchedBlock]()
        """The blocks that have been read, but not added."""
        self.ranges: list[int] = []
        """As in nmt.data.manifest.Counts."""

    def watched(self, blocks: Iterable[PairBlock]) -> Iterator[PairBlock]:
        """The same blocks; notes for each what `add_block` needs to know."""
        skipped_before = 0
        for block in blocks:
            skipped = self.skipped.total()
            self.waiting.append(WatchedBlock(begins_file(block), skipped > skipped_before))
            skipped_before = skipped
            yield block

    def add_block(self, first: int, pairs: int, has_gaps: bool) -> None:
        """Add the next block: its first line, its number of pairs, and whether a worker skipped."""
        block = self.waiting.popleft()
        if has_gaps or block.has_gaps:
            # Where a skipped line was is not known. No line of the block may continue another, and
            # nor may the first line after it.
            self.ranges += [first, first + pairs]
        elif block.begins_file:
            self.ranges += [first, first]
