"""Read values and lists in any rows of many files.

The rows of a batch are all over the files of a split. All arithmetic is done for all rows at once,
and only the reading itself is done file by file.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nmt.data.columns import MappedColumns
from nmt.data.lengths import Int32s, Ints, Rows

Number = TypeVar("Number", bound=np.generic)


@dataclass
class Blocks:
    """The blocks of some files, in the order of their rows."""

    starts: Ints
    """Each block's first row in the split, [blocks]."""
    numbers: dict[str, Ints]
    """As in MappedColumns, [blocks]."""
    offsets: dict[str, Ints]

    @classmethod
    def of(cls, files: Iterable[tuple[int, MappedColumns]]) -> "Blocks":
        """The blocks of files, each with its first row in the split."""
        starts = [np.empty(0, np.int64)]
        numbers = defaultdict[str, list[Ints]](list)
        offsets = defaultdict[str, list[Ints]](list)
        for first_row, columns in files:
            starts.append(first_row + columns.starts[:-1])
            for name, places in columns.numbers.items():
                numbers[name].append(places)
            for name, places in columns.offsets.items():
                offsets[name].append(places)
        return cls(
            starts=np.concatenate(starts),
            numbers=concatenated(numbers),
            offsets=concatenated(offsets),
        )


def concatenated(parts: dict[str, list[Ints]]) -> dict[str, Ints]:
    return {name: np.concatenate(arrays) for name, arrays in parts.items()}


class Stretch(NamedTuple):
    """Items that are read from the same file."""

    content: Int32s
    """The whole file."""
    begin: int
    end: int

    def of_items(self, offsets: Ints) -> "Stretch":
        """The stretch of the items in these lists, whose offsets are given."""
        begin = int(offsets[self.begin])
        end = int(offsets[self.end])
        return Stretch(self.content, begin, end)

    def read(self, places: Ints, result: Int32s) -> None:
        """Read the items of this stretch. The last axis contains all items."""
        part = slice(self.begin, self.end)
        result[..., part] = self.content[places[..., part]]


@dataclass
class Lookup:
    """Where some rows are. They are sorted by file; `order` is what sorts them.

    The rows of a single file keep their order, and `order` is None.
    """

    blocks: Blocks
    rows: Rows
    stretches: Sequence[Stretch]
    order: Ints | None

    @cached_property
    def block_of_row(self) -> Ints:
        return np.searchsorted(self.blocks.starts, self.rows, side="right") - 1

    @cached_property
    def places(self) -> Ints:
        """The place of each row in its block."""
        return self.rows - self.blocks.starts[self.block_of_row]

    def values(self, name: str) -> Int32s:
        """The values of a column of numbers, in the order in which the rows were asked for."""
        places = self.blocks.numbers[name][self.block_of_row] + self.places
        return self.in_asked_order(read(self.stretches, places))

    def lists(self, name: str) -> pa.ListArray:
        """Copies of the lists in a column, in the order in which the rows were asked for."""
        places = self.blocks.offsets[name][self.block_of_row] + self.places
        places_of_both = np.stack([places, places + 1])
        begins, ends = read(self.stretches, places_of_both).astype(np.int64)
        sizes = ends - begins
        offsets = offsets_of(sizes)
        # What to add to an index in the result for its place in the file.
        shifts = self.blocks.numbers[name][self.block_of_row] + begins - offsets[:-1]
        stretches = [stretch.of_items(offsets) for stretch in self.stretches]
        numbers = read(stretches, np.arange(offsets[-1]) + np.repeat(shifts, sizes))
        if self.order is not None:
            # With NumPy, because pyarrow would import pandas to take lists in another order.
            begins_in_sorted = self.in_asked_order(offsets[:-1])
            sizes = self.in_asked_order(sizes)
            offsets = offsets_of(sizes)
            shifts = begins_in_sorted - offsets[:-1]
            numbers = numbers[np.arange(offsets[-1]) + np.repeat(shifts, sizes)]
        return pa.ListArray.from_arrays(offsets.astype(np.int32), numbers)

    def in_asked_order(self, sorted_items: NDArray[Number]) -> NDArray[Number]:
        """One item per row, in the order in which the rows were asked for."""
        if self.order is None:
            return sorted_items
        items = np.empty_like(sorted_items)
        items[self.order] = sorted_items
        return items


def offsets_of(sizes: Ints) -> Ints:
    return np.append(0, sizes.cumsum())


def read(stretches: Sequence[Stretch], places: Ints) -> Int32s:
    """The numbers at these places of the files."""
    result = np.empty(places.shape, np.int32)
    for stretch in stretches:
        stretch.read(places, result)
    return result
