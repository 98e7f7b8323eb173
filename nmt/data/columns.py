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
            block_begin = self.starts[block]
            shift = self.numbers[name][block] - block_begin
            block_begin = max(begin, block_begin)
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
        if not has_columns(stream.schema.remove_metadata(), names, schema):
            raise ValueError(OTHER_COLUMNS)
        numbers = {name: Places() for name in names}
        lists = [name for name in names if pa.types.is_list(stream.schema.field(name).type)]
        offsets = {name: Places() for name in lists}
        sizes = []
        for block in stream:
            check_no_nulls(block)
            if not len(block):
                continue
            sizes.append(len(block))
            for name in names:
                column = block.column(name)
                add_places(column, numbers[name], offsets.get(name))
        return cls(
            starts=np.cumsum([0, *sizes]),
            numbers=all_within(numbers, content),
            offsets=all_within(offsets, content),
        )

    def to_text(self) -> str:
        """The form in which a fact stores the index."""
        rows = [self.starts[1:], *self.numbers.values(), *self.offsets.values()]
        table = np.stack(rows).astype("<i8")
        content = base64.b64encode(table.tobytes()).decode()
        names = ",".join(self.numbers)
        names_of_lists = ",".join(self.offsets)
        return f"{names} {names_of_lists} {content}"

    @classmethod
    def from_text(cls, text: str) -> "BlockIndex":
        """The index that `to_text` stored."""
        names, names_of_lists, content = text.split(" ")
        columns = names.split(",")
        # Without lists, there is an empty string to split.
        lists = names_of_lists.split(",") if names_of_lists else []
        numbers = np.frombuffer(base64.b64decode(content), "<i8")
        rows = 1 + len(columns) + len(lists)
        ends, *places = numbers.astype(np.int64).reshape(rows, -1)
        places_of_lists = places[len(columns) :]
        return cls(
            starts=np.append(0, ends),
            numbers=dict(zip(columns, places, strict=False)),
            offsets=dict(zip(lists, places_of_lists, strict=True)),
        )


def check_no_nulls(block: pa.RecordBatch) -> None:
    """Raise ValueError for nulls: a schema allows them, but an id or a length must be a number."""
    if any(column.null_count for column in block.columns):
        raise ValueError(OTHER_COLUMNS)


def all_within(places: dict[str, Places], content: pa.Buffer) -> dict[str, Ints]:
    """Where each column's buffers begin, as `Places.within` returns it."""
    begins = {}
    for name, places_of_column in places.items():
        begins[name] = places_of_column.within(content, name)
    return begins


def has_columns(actual: pa.Schema, names: Sequence[str], expected: pa.Schema | None) -> bool:
    """Whether a schema is the expected one or, if any will do, has some columns."""
    if expected is None:
        return {*names} <= {*actual.names}
    return bool(actual == expected)


def add_places(column: pa.Array, numbers: Places, offsets: Places | None) -> None:
    """Add where the numbers of a column begin and, if it has lists, where their offsets do."""
    buffers = column.buffers()
    # The first buffer says which values are null, the second has offsets or numbers.
    if offsets is None:
        numbers.add(buffers[1], len(column))
        return
    offsets.add(buffers[1], len(column) + 1)
    # `column.values` fails with a SystemError if the stream is damaged.
    content = buffers[3]
    numbers.add(content, content.size // ITEM_BYTES if content else 0)
