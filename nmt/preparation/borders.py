"""Find where lines of a training text do not continue the lines before them.

Joined training pairs must be consecutive in the original text. Most gaps show in the numbers of the
lines that are left. A new file and malformed lines, which have no number, do not, so they are
recorded.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from nmt.preparation.places import Origin, Places, origin_of
from nmt.text import PairBlock, begins_file


class WatchedBlock(NamedTuple):
    """What the reading of a block shows about its beginning."""

    origin: Origin
    begins_file: bool
    has_gaps: bool
    """Whether the reader skipped lines in the block, or just before it."""


class Borders:
    """The borders of a source. Reading runs ahead of cleaning, but both are in order."""

    def __init__(self) -> None:
        self.skipped_by_reader = Counter[str]()
        """The malformed lines that this process skips, by reason."""
        self.skipped_by_workers = Counter[str]()
        """Counted apart, because reading runs ahead of the workers."""
        self.waiting = deque[WatchedBlock]()
        """The blocks that have been read, but not added."""
        self.ranges: list[int] = []
        """As in nmt.data.manifest.Counts."""
        self.places = Places()

    @property
    def skipped(self) -> Counter[str]:
        """All malformed lines, by reason."""
        return self.skipped_by_reader + self.skipped_by_workers

    def watched(self, blocks: Iterable[PairBlock]) -> Iterator[PairBlock]:
        """The same blocks; notes for each what `add_block` needs to know."""
        skipped_before = 0
        for block in blocks:
            skipped = self.skipped_by_reader.total()
            has_gaps = skipped > skipped_before
            self.waiting.append(WatchedBlock(origin_of(block), begins_file(block), has_gaps))
            skipped_before = skipped
            yield block

    def add_block(
        self,
        first: int,
        pairs: int,
        skipped: Counter[str],
        skipped_lines: Sequence[int] = (),
    ) -> None:
        """Add the next block: its first line, its number of pairs, and what a worker skipped."""
        self.skipped_by_workers += skipped
        block = self.waiting.popleft()
        self.places.add(block.origin, first, skipped_lines)
        if skipped or block.has_gaps:
            # Where a skipped line was is not known. No line of the block may continue another, and
            # nor may the first line after it.
            self.ranges += [first, first + pairs]
        elif block.begins_file:
            self.ranges += [first, first]
