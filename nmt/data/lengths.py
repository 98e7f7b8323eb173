"""The lengths of all sentences of a split, read in place from its memory-mapped files.

All processes on a machine share the pages of the files, so the lengths need no memory per process.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from nmt.hardware import usable_cores

if TYPE_CHECKING:
    from nmt.data.mapped_files import MappedFiles

Item = TypeVar("Item")
Result = TypeVar("Result")

Ints = NDArray[np.int64]
Int32s = NDArray[np.int32]
Rows = NDArray[np.integer[Any]]

ITEM_BYTES = np.dtype(np.int32).itemsize


class MappedLengths:
    """An int32 column of a split's files. Supports the parts of NumPy that planning needs.

    An index may be a slice without a step, or an array of row numbers.
    """

    def __init__(self, files: "MappedFiles", name: str) -> None:
        self.files = files
        self.name = name

    @classmethod
    def open(cls, file: Path, name: str) -> "MappedLengths":
        """Raise ValueError if the column is not stored as plain numbers."""
        # Here, because pyarrow takes 0.2 seconds to import, which a search need not spend.
        from nmt.data.mapped_files import MappedFiles

        return cls(MappedFiles([file], [name]), name)

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, rows: slice | Rows) -> Int32s:
        if isinstance(rows, slice):
            begin, end, _ = rows.indices(len(self))
            # NumPy cannot concatenate an empty list.
            return np.concatenate([np.empty(0, np.int32), *self.parts(begin, end)])
        return self.files.lookup(rows).values(self.name)

    def parts(self, begin: int, end: int) -> Iterator[Int32s]:
        """The rows from `begin` to `end`, as views of the blocks that contain them."""
        for file in self.files.between(begin, end):
            yield from file.columns.parts(self.name, file.begin, file.end)

    def max(self, begin: int = 0, end: int | None = None) -> int:
        """The maximum of the rows from `begin` to `end`, by default of all."""
        if end is None:
            end = len(self)
        longest = 0
        for file in self.files.between(begin, end):
            if file.is_whole:
                extent = self.extent(file.number)
            else:
                extent = extent_of(file.columns.parts(self.name, file.begin, file.end))
            longest = max(longest, extent.longest)
        return longest

    def sum(self) -> int:
        return sum(self.extent(number).total for number in range(len(self.files.paths)))

    def tolist(self) -> list[int]:
        return list(self[:].tolist())

    def extent(self, number: int) -> "Extent":
        """The longest and the sum of the lengths in a file, remembered if the split is large."""

        def examine() -> str:
            extent = extent_of(self.parts_of_file(number))
            return f"{extent.longest} {extent.total}"

        answer = self.files.remembered(number, f"extent of {self.name}", examine)
        longest, total = answer.split()
        return Extent(int(longest), int(total))

    def digest_of_file(self, number: int) -> str:
        """The SHA-256 of the lengths in a file, remembered if the split is large."""

        def examine() -> str:
            digest = hashlib.sha256()
            for part in self.parts_of_file(number):
                digest.update(part.data)
            return digest.hexdigest()

        return self.files.remembered(number, f"SHA-256 of {self.name}", examine)

    def parts_of_file(self, number: int) -> Iterator[Int32s]:
        columns = self.files[number]
        return columns.parts(self.name, 0, len(columns))

    def digest(self) -> bytes:
        """The SHA-256 of how many lengths each file has, and of their digests."""
        numbers = range(len(self.files.paths))
        digests = in_threads(self.digest_of_file, numbers)
        content = f"{self.files.starts.tolist()} {digests}"
        return hashlib.sha256(content.encode()).digest()


class Extent(NamedTuple):
    """What planning needs to know about all lengths of a file."""

    longest: int
    total: int


def extent_of(parts: Iterable[Int32s]) -> Extent:
    """The extent of the lengths in several arrays."""
    longest = 0
    total = 0
    for part in parts:
        longest = max(longest, int(part.max()))
        total += int(part.sum(dtype=np.int64))
    return Extent(longest, total)


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
        # A longer sentence never grows less, so the longest one of each source is enough.
        spans = pairwise(self.bounds.tolist())
        for (begin, end), growth in zip(spans, self.growth, strict=True):
            if begin < end:
                grown = longest_between(self.lengths, begin, end) * growth
                longest = max(longest, int(np.ceil(grown)))
        return longest

    def digest(self) -> bytes:
        """The SHA-256 of everything that decides these lengths."""
        content = hashlib.sha256(digest_of(self.lengths))
        content.update(self.bounds.astype("<i8").tobytes())
        content.update(self.growth.astype("<f8").tobytes())
        return content.digest()


def longest_between(lengths: Lengths, begin: int, end: int) -> int:
    if isinstance(lengths, MappedLengths):
        return lengths.max(begin, end)
    return int(lengths[begin:end].max())


def digest_of(lengths: Lengths | GrownLengths) -> bytes:
    """The SHA-256 of lengths in memory, or of everything that decides other lengths."""
    if isinstance(lengths, MappedLengths | GrownLengths):
        return lengths.digest()
    return hashlib.sha256(np.ascontiguousarray(lengths, np.int32).data).digest()


def in_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """The results for all items, in as many threads as this process has cores."""
    items = [*items]
    if len(items) == 1:
        return [function(items[0])]
    with ThreadPoolExecutor(usable_cores()) as pool:
        # If one call fails, calls that have not begun are canceled.
        return [*pool.map(function, items)]
