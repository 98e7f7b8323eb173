"""What a corpus's training pairs hold: by which a model knows what it cannot know."""

from collections import Counter
from collections.abc import Iterable
from math import ceil
from typing import Any

import pyarrow as pa

SIDES = ("source", "target")
MOST = 20_000
"""Different characters of a side that are recorded at most; a corpus of more holds what there is."""


def characters(block: pa.RecordBatch) -> tuple[set[str], set[str]]:
    """Those of the sources, and of the targets, of a block of pairs."""
    source, target = (set().union(*column.to_pylist()) for column in block.columns[:2])
    return source, target


def quantile(counts: Counter[int], share: float) -> int:
    """The least value that so many of those counted do not exceed."""
    wanted = ceil(share * counts.total())
    for value in sorted(counts):
        wanted -= counts[value]
        if wanted <= 0:
            return value
    return 0


class Seen:
    """Lengths in tokens, without the end symbol, and characters of both sides, summed over blocks."""

    def __init__(self) -> None:
        self.counts = {side: Counter[int]() for side in SIDES}
        self.found = {side: set[str]() for side in SIDES}

    def add(self, encoded: pa.RecordBatch, found: Iterable[set[str]]) -> None:
        """A block of encoded pairs, and the characters of their texts by side."""
        for side, more in zip(SIDES, found, strict=True):
            self.counts[side].update((encoded.column(f"{side}_length").to_numpy() - 1).tolist())
            self.found[side] |= more

    def lengths(self) -> dict[str, Any]:
        """The length that 99 % of the lines do not exceed, and the longest, of each side."""
        return {side: {"p99": quantile(c, 0.99), "max": max(c, default=0)} for side, c in self.counts.items()}

    def characters(self) -> dict[str, str] | None:
        """Those of each side, in order; None where they are too many."""
        if max(map(len, self.found.values())) > MOST:
            return None
        return {side: "".join(sorted(found)) for side, found in self.found.items()}
