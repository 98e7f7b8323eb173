"""The columns of a memory-mapped Arrow stream, read in place without Arrow objects.

A large split has hundreds of thousands of blocks, and pyarrow keeps several kilobytes for each.
Here, a block is only a few numbers: where its buffers begin in the file. All processes on a machine
share the pages of the file.
"""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from nmt.data.lengths import ITEM_BYTES, Int32s, Ints

OTHER_COLUMNS = "it does not have a prepared corpus's columns"


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

    content: Int32s
    """The whole file as numbers, so that a single index reads from any block."""
    starts: Ints
    """Each block's first row, then the end, [blocks + 1]."""
    numbers: dict[str, Ints]
    """Where each block of a column of numbers, or of the numbers in a column of lists, begins."""
    offsets: dict[str, Ints]
    """Where the offsets of each block of a column of lists begin."""

    @classmethod
    def open(cls, content: pa.Buffer, index: "BlockIndex") -> "MappedColumns":
        """The columns of a file with these blocks."""
        numbers = np.frombuffer(content, np.int32, content.size // ITEM_BYTES)
        return cls(numbers, index.starts, index.numbers, index.offsets)

    def __len__(self) -> int:
        return int(self.starts[-1])

    def parts(self, name: str, begin: int, end: int) -> Iterator[Int32s]:
        """The rows from `begin` to `end` of a column of numbers, as views of the blocks."""
        if begin >= end:
            return
        first, last = np.searchsorted(self.starts, [begin, end - 1], side="right") - 1
        for block in range(first, last + 1):
            shift = self.numbers[name][block] - self.starts[block]
            block_begin = max(begin, self.starts[block])
            block_end = min(end, self.starts[block + 1])
            yield self.content[shift + block_begin : shift + block_end]


@dataclass
class BlockIndex:
    """Where the blocks of an Arrow stream are. The arrays are as in MappedColumns."""

    starts: Ints
    numbers: dict[str, Ints]
    offsets: dict[str, Ints]

    @classmethod
    def of_stream(
        cls, content: pa.Buffer, names: Sequence[str], schema: pa.Schema | None
    ) -> "BlockIndex":
        """Find the buffers of all blocks of some columns.

        Raises ValueError if one is compressed or misaligned, or if the stream has nulls or another
        schema than a given one, and ArrowException if the stream is damaged.
        """
        stream = pa.ipc.open_stream(content)
        numbers = {name: Places() for name in names}
        offsets = {name: Places() for name in names if pa.types.is_list(type_of(stream, name))}
        if schema is not None and stream.schema.remove_metadata() != schema:
            raise ValueError(OTHER_COLUMNS)
        sizes = []
        for block in stream:
            # A schema allows nulls, but an id or a length must be a number.
            if any(column.null_count for column in block.columns):
                raise ValueError(OTHER_COLUMNS)
            if not len(block):
                continue
            sizes.append(len(block))
            for name in names:
                column = block.column(name)
                size = len(column)
                # The first buffer says which values are null, the second has offsets or numbers.
                buffers = column.buffers()
                buffer = buffers[1]
                if name in offsets:
                    offsets[name].add(buffer, size + 1)
                    buffer = buffers[3]
                    # `column.values` fails with a SystemError if the stream is damaged.
                    size = buffer.size // ITEM_BYTES if buffer else 0
                numbers[name].add(buffer, size)
        return cls(
            starts=np.cumsum([0, *sizes]),
            numbers={name: places.within(content, name) for name, places in numbers.items()},
            offsets={name: places.within(content, name) for name, places in offsets.items()},
        )

    def to_text(self) -> str:
        """The form in which a fact stores the index."""
        rows = [self.starts[1:], *self.numbers.values(), *self.offsets.values()]
        content = base64.b64encode(np.stack(rows).astype("<i8").tobytes()).decode()
        return f"{','.join(self.numbers)} {','.join(self.offsets)} {content}"

    @classmethod
    def from_text(cls, text: str) -> "BlockIndex":
        """The index that `to_text` stored."""
        names, names_of_lists, content = text.split(" ")
        columns = names.split(",")
        lists = [name for name in names_of_lists.split(",") if name]
        table = np.frombuffer(base64.b64decode(content), "<i8").astype(np.int64)
        ends, *rows = table.reshape(1 + len(columns) + len(lists), -1)
        return cls(
            starts=np.append(0, ends),
            numbers=dict(zip(columns, rows[: len(columns)], strict=True)),
            offsets=dict(zip(lists, rows[len(columns) :], strict=True)),
        )


def type_of(stream: pa.RecordBatchStreamReader, name: str) -> pa.DataType:
    """The type of a column; ValueError if the stream lacks it."""
    if name not in stream.schema.names:
        raise ValueError(OTHER_COLUMNS)
    return stream.schema.field(name).type
