"""The Arrow files of a split. A file is mapped into memory when a row in it is first needed.

A corpus of a billion pairs has 60 files with 200,000 blocks. Where the blocks of a large split are
is a fact that nmt remembers about each file, so that a file opens in a few milliseconds.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from nmt.data.columns import BlockIndex, MappedColumns, map_file
from nmt.data.lengths import Rows
from nmt.data.lookup import Blocks, Lookup, Stretch
from nmt.errors import NMTError
from nmt.files import check_regular, remembered

INDEX = "blocks, version 1"
"""Change the number whenever the text of a BlockIndex changes."""


class PartOfFile(NamedTuple):
    """Neighboring rows of a file, from `begin` to `end`."""

    files: "MappedFiles"
    number: int
    begin: int
    end: int

    @property
    def columns(self) -> MappedColumns:
        return self.files[self.number]

    @property
    def is_whole(self) -> bool:
        """Whether these are all rows of the file."""
        begin, end = self.files.starts[self.number : self.number + 2]
        return self.end - self.begin == int(end - begin)


class MappedFiles:
    """Some columns of one or more Arrow streams, whose rows follow each other."""

    schema: pa.Schema | None = None
    """What all files must have; None for any schema with these columns."""

    def __init__(
        self, paths: Sequence[Path], names: Sequence[str], rows: Sequence[int] | None = None
    ) -> None:
        """`rows` are the numbers of rows of the files; without them, all files are opened."""
        self.paths = paths
        self.names = names
        self.rows = rows
        self.opened: dict[int, MappedColumns] = {}
        # The number of files that were open when their blocks were joined, and these blocks.
        self.joined = (0, Blocks.of([]))
        sizes = rows
        if sizes is None:
            columns = [self[number] for number in range(len(paths))]
            sizes = [len(columns_of_file) for columns_of_file in columns]
        # Each file's first row, then the end, [files + 1].
        self.starts = np.cumsum([0, *sizes])

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        # A worker process maps the files again instead of receiving their content.
        return type(self), (self.paths, self.names, np.diff(self.starts).tolist())

    def __len__(self) -> int:
        return int(self.starts[-1])

    def __getitem__(self, number: int) -> MappedColumns:
        """The columns of a file.

        Raises NMTError if it is not a regular file or has another number of rows, ValueError if a
        column is not stored as plain numbers, and OSError or ArrowException if it is damaged.
        """
        columns = self.opened.get(number)
        if columns is None:
            columns = self.open(number)
            self.opened[number] = columns
        return columns

    def open(self, number: int) -> MappedColumns:
        path = self.paths[number]
        check_regular(path)
        content = map_file(path)

        def examine() -> str:
            return BlockIndex.of_stream(content, self.names, self.schema).to_text()

        index = self.remembered(number, f"{INDEX}, {self.names}, {self.schema}", examine)
        columns = MappedColumns.open(content, BlockIndex.from_text(index))
        if self.rows is not None and len(columns) != self.rows[number]:
            raise NMTError(
                f"{path} has {len(columns):,} pairs, "
                f"but the manifest says {self.rows[number]:,}: prepare it again"
            )
        return columns

    def remembered(self, number: int, question: str, examine: Callable[[], str]) -> str:
        """The answer to a question about a file, remembered if the split is large."""
        # Preparation divides only large splits.
        return remembered(self.paths[number], question, examine, is_large=len(self.paths) > 1)

    def lookup(self, rows: Rows) -> Lookup:
        """Find rows in any order; opens the files that hold them."""
        if len(self.paths) == 1 or not len(rows):
            content = self[0].content
            return Lookup(self.blocks(), rows, [Stretch(content, 0, len(rows))], None)
        numbers = np.searchsorted(self.starts, rows, side="right") - 1
        order = np.argsort(numbers, kind="stable")
        counts = np.bincount(numbers, minlength=len(self.paths))
        ends = counts.cumsum()
        stretches = []
        for number in np.flatnonzero(counts).tolist():
            end = int(ends[number])
            begin = end - int(counts[number])
            stretches.append(Stretch(self[number].content, begin, end))
        return Lookup(self.blocks(), rows[order], stretches, order)

    def blocks(self) -> Blocks:
        """The blocks of all files that are open."""
        count, blocks = self.joined
        if count != len(self.opened):
            numbers = sorted(self.opened)
            firsts = self.starts[numbers].tolist()
            files = [self.opened[number] for number in numbers]
            blocks = Blocks.of(zip(firsts, files, strict=True))
            self.joined = (len(files), blocks)
        return blocks

    def between(self, begin: int, end: int) -> Iterator[PartOfFile]:
        """The files with the rows from `begin` to `end`."""
        if begin >= end:
            return
        first, last = np.searchsorted(self.starts, [begin, end - 1], side="right") - 1
        for number in range(int(first), int(last) + 1):
            file_begin, file_end = self.starts[number : number + 2].tolist()
            part_begin = max(begin, file_begin) - file_begin
            part_end = min(end, file_end) - file_begin
            yield PartOfFile(self, number, part_begin, part_end)
