"""The lengths of all sentences of a split, read in place from its memory-mapped file.

All processes on a machine share the pages of the file, so the lengths need no memory per process.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from nmt.data.columns import MappedColumns

Ints = NDArray[np.int64]
Int32s = NDArray[np.int32]
Rows = NDArray[np.integer[Any]]

ITEM_BYTES = np.dtype(np.int32).itemsize
BLOCK_ROWS = 1 << 20
"""Rows processed at a time, so that temporary arrays add little to peak memory."""


class MappedLengths:
    """An int32 column of an Arrow stream. Supports the parts of NumPy that planning needs.

    An index may be a slice without a step, or an array of row numbers.
    """

    def __init__(self, file: Path, name: str, columns: "MappedColumns") -> None:
        self.file = file
        self.name = name
        self.content = columns.all_numbers()
        self.starts = columns.starts
        # Where each block begins in `content`, [blocks]. A stream without rows has none.
        self.places = columns.numbers.get(name, np.empty(0, np.int64))

    @classmethod
    def open(cls, file: Path, name: str) -> "MappedLengths":
        """Raise ValueError if the column is not stored as plain numbers."""
        # Here, because pyarrow takes 0.2 seconds to import, which a search need not spend.
        from nmt.data.columns import MappedColumns, map_file

        return cls(file, name, MappedColumns.open(map_file(file), [name]))

    def __reduce__(self) -> tuple[Any, tuple[Path, str]]:
        # A worker process maps the file again instead of receiving its content.
        return type(self).open, (self.file, self.name)

    def __len__(self) -> int:
        return int(self.starts[-1])

    def __getitem__(self, rows: slice | Rows) -> Int32s:
        if isinstance(rows, slice):
            begin, end, _ = rows.indices(len(self))
            # NumPy cannot concatenate an empty list.
            return np.concatenate([np.empty(0, np.int32), *self.parts(begin, end)])
        blocks = np.searchsorted(self.starts, rows, side="right") - 1
        places = self.places[blocks] + rows - self.starts[blocks]
        return np.asarray(self.content[places])

    def parts(self, begin: int, end: int) -> list[Int32s]:
        """The rows from `begin` to `end`, as views of the blocks that contain them."""
        if begin >= end:
            return []
        first, last = np.searchsorted(self.starts, [begin, end - 1], side="right") - 1
        parts = []
        for block in range(first, last + 1):
            shift = self.places[block] - self.starts[block]
            block_begin = max(begin, self.starts[block])
            block_end = min(end, self.starts[block + 1])
            parts.append(self.content[shift + block_begin : shift + block_end])
        return parts

    def max(self) -> int:
        parts = self.parts(0, len(self))
        return max(int(part.max()) for part in parts)

    def sum(self) -> int:
        parts = self.parts(0, len(self))
        return sum(int(part.sum(dtype=np.int64)) for part in parts)

    def tolist(self) -> list[int]:
        return list(self[:].tolist())


Lengths = NDArray[Any] | MappedLengths


class GrownLengths:
    """Lengths that planning expects after transforms, computed for a few rows at a time."""

    def __init__(
        self, lengths: Lengths, bounds: NDArray[np.int64], growth: NDArray[np.float64]
    ) -> None:
        """`bounds` are each source's first row, then the end; `growth` is a factor per source."""
        self.lengths = lengths
        self.bounds = bounds
        self.growth = growth

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, rows: slice) -> Int32s:
        begin, end, _ = rows.indices(len(self))
        # The number of these rows in each source.
        rows_of_sources = np.diff(self.bounds.clip(begin, end))
        grown = np.ceil(self.lengths[rows] * np.repeat(self.growth, rows_of_sources))
        return grown.astype(np.int32)

    def max(self) -> int:
        longest = 0
        for start in range(0, len(self), BLOCK_ROWS):
            block = self[start : start + BLOCK_ROWS]
            longest = max(longest, int(block.max()))
        return longest
