"""The lengths of all sentences of a split, read in place from its memory-mapped file.

All processes on a machine share the pages of the file, so the lengths need no memory per process.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

Rows = NDArray[np.integer[Any]]
Int32s = NDArray[np.int32]
ITEM_BYTES = np.dtype(np.int32).itemsize
BLOCK_ROWS = 1 << 20


def map_table(file: Path) -> "tuple[pa.Buffer, pa.Table]":
    """A memory-mapped Arrow stream, as bytes and as a table of its blocks."""
    import pyarrow as pa  # takes 0.2 seconds, which a search need not wait for

    with pa.memory_map(str(file)) as mapped:
        content = mapped.read_buffer()
    table = pa.ipc.open_stream(content).read_all()
    return content, table.replace_schema_metadata(None)


class MappedLengths:
    """An int32 column of an Arrow stream. Supports the parts of NumPy that planning needs.

    An index may be a slice without a step, or an array of row numbers.
    """

    def __init__(self, file: Path, name: str, content: "pa.Buffer", table: "pa.Table") -> None:
        """Raise ValueError if the column is not stored as plain numbers in `content`."""
        self.file = file
        self.name = name
        self.content = np.frombuffer(content, np.int32, content.size // ITEM_BYTES)
        chunks = [chunk for chunk in table.column(name).chunks if len(chunk)]
        self.starts = np.cumsum([0, *map(len, chunks)])  # [blocks + 1], each block's first row
        places = [chunk.buffers()[1].address + chunk.offset * ITEM_BYTES for chunk in chunks]
        places_in_file = np.array(places, np.int64) - content.address
        ends = places_in_file + np.diff(self.starts) * ITEM_BYTES
        is_inside = (places_in_file >= 0) & (ends <= content.size)
        if not np.all(is_inside & (places_in_file % ITEM_BYTES == 0)):
            raise ValueError(f"its {name} is compressed or misaligned")
        self.places = places_in_file // ITEM_BYTES  # [blocks], where each block begins in `content`

    @classmethod
    def open(cls, file: Path, name: str) -> "MappedLengths":
        return cls(file, name, *map_table(file))

    def __reduce__(self) -> tuple[Any, tuple[Path, str]]:
        # A worker process maps the file again instead of receiving its content.
        return type(self).open, (self.file, self.name)

    def __len__(self) -> int:
        return int(self.starts[-1])

    def __getitem__(self, rows: slice | Rows) -> Int32s:
        if isinstance(rows, slice):
            return np.concatenate(
                [np.empty(0, np.int32), *self.parts(*rows.indices(len(self))[:2])]
            )
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
        return max(int(part.max()) for part in self.parts(0, len(self)))

    def sum(self) -> int:
        return sum(int(part.sum(dtype=np.int64)) for part in self.parts(0, len(self)))

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
        rows_of_sources = np.diff(self.bounds.clip(begin, end))
        grown = np.ceil(self.lengths[rows] * np.repeat(self.growth, rows_of_sources))
        return grown.astype(np.int32)

    def max(self) -> int:
        starts = range(0, len(self), BLOCK_ROWS)
        return max(int(self[start : start + BLOCK_ROWS].max()) for start in starts)
