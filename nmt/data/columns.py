"""The columns of a memory-mapped Arrow stream, read in place without Arrow objects.

A large split has hundreds of thousands of blocks, and pyarrow keeps several kilobytes for each.
Here, a block is only a few numbers: where its buffers begin in the file. All processes on a machine
share the pages of the file.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from nmt.data.lengths import ITEM_BYTES, Int32s, Ints


def map_file(file: Path) -> pa.Buffer:
    # The buffer keeps the file mapped after it is closed.
    with pa.memory_map(str(file)) as mapped:
        return mapped.read_buffer()


@dataclass
class Places:
    """Where a buffer of int32 numbers begins in each block, and how many it has."""

    addresses: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def add(self, buffer: pa.Buffer | None, size: int) -> None:
        # An empty buffer may have no address, or one outside the file.
        address = buffer.address if buffer and size else 0
        self.addresses.append(address)
        self.sizes.append(size)

    def within(self, content: pa.Buffer, name: str) -> Ints:
        """In numbers from the start of the file, [blocks].

        ValueError if a buffer is not stored as plain numbers in the file.
        """
        sizes = np.array(self.sizes, np.int64)
        addresses = np.array(self.addresses, np.int64)
        begins = np.where(sizes > 0, addresses - content.address, 0)
        # Divided, because a damaged size times its bytes could exceed 64 bits.
        is_inside = (begins >= 0) & (sizes <= (content.size - begins) // ITEM_BYTES)
        is_aligned = begins % ITEM_BYTES == 0
        # pyarrow decompresses a column into separate memory, outside the file.
        if not np.all(is_inside & is_aligned):
            raise ValueError(f"its {name} is compressed or misaligned")
        return np.asarray(begins // ITEM_BYTES)


@dataclass
class MappedColumns:
    """Some int32 columns, or columns of lists of int32, of an Arrow stream."""

    content: pa.Buffer
    starts: Ints
    """Each block's first row, then the end, [blocks + 1]."""
    numbers: dict[str, Ints]
    """Where each block of a column of numbers, or of the numbers in a column of lists, begins."""
    offsets: dict[str, Ints]
    """Where the offsets of each block of a column of lists begin."""
    has_nulls: bool

    @classmethod
    def open(cls, content: pa.Buffer, names: list[str]) -> "MappedColumns":
        """Find the buffers of all blocks.

        Raises ValueError if one is compressed or misaligned, and ArrowException if the stream is
        damaged.
        """
        numbers = defaultdict[str, Places](Places)
        offsets = defaultdict[str, Places](Places)
        sizes = []
        has_nulls = False
        for block in pa.ipc.open_stream(content):
            has_nulls |= any(column.null_count for column in block.columns)
            if not len(block):
                continue
            sizes.append(len(block))
            for name in names:
                column = block.column(name)
                size = len(column)
                # The first buffer says which values are null, the second has offsets or numbers.
                buffer = column.buffers()[1]
                if pa.types.is_list(column.type):
                    offsets[name].add(buffer, size + 1)
                    buffer = column.buffers()[3]
                    # `column.values` fails with a SystemError if the stream is damaged.
                    size = buffer.size // ITEM_BYTES if buffer else 0
                numbers[name].add(buffer, size)
        return cls(
            content=content,
            starts=np.cumsum([0, *sizes]),
            numbers={name: places.within(content, name) for name, places in numbers.items()},
            offsets={name: places.within(content, name) for name, places in offsets.items()},
            has_nulls=has_nulls,
        )

    def all_numbers(self) -> Int32s:
        """The whole file as numbers, so that a single index reads from any block."""
        return np.frombuffer(self.content, np.int32, self.content.size // ITEM_BYTES)


class MappedLists:
    """A column of lists of int32."""

    def __init__(self, columns: MappedColumns, name: str) -> None:
        empty = np.empty(0, np.int64)  # of a stream without rows
        self.content = columns.all_numbers()
        self.starts = columns.starts
        self.offsets = columns.offsets.get(name, empty)
        self.numbers = columns.numbers.get(name, empty)

    def take(self, rows: Ints) -> pa.ListArray:
        """Copies of the lists in these rows."""
        blocks = np.searchsorted(self.starts, rows, side="right") - 1
        places_of_offsets = self.offsets[blocks] + rows - self.starts[blocks]
        begins = self.content[places_of_offsets].astype(np.int64)
        sizes = self.content[places_of_offsets + 1] - begins
        ends = sizes.cumsum()
        # What to add to an index in the result for its place in the file.
        shifts = self.numbers[blocks] + begins - (ends - sizes)
        places = np.arange(sizes.sum()) + np.repeat(shifts, sizes)
        result_offsets = np.append(0, ends).astype(np.int32)
        return pa.ListArray.from_arrays(result_offsets, self.content[places])
