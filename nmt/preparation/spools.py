"""Blocks of pairs that wait in temporary files, which worker processes write and read themselves.

A block is an Arrow message. The main process has only its place, so it passes on some dozens of
bytes for thousands of pairs.
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from nmt.preparation.arrow_files import TEXT_SCHEMA, with_first_line
from nmt.preparation.selection import Flags, Rows


class Place(NamedTuple):
    """Where a block is."""

    file: str
    offset: int
    size: int
    """In bytes."""
    pairs: int
    first_line: int = 0
    """What to add to the line numbers of the block."""

    def block(self) -> pa.RecordBatch:
        """Read a block with the schema TEXT_SCHEMA."""
        with Path(self.file).open("rb") as file:
            file.seek(self.offset)
            message = file.read(self.size)
        block = pa.ipc.read_record_batch(pa.py_buffer(message), TEXT_SCHEMA)
        return with_first_line(block, self.first_line)


class Part(NamedTuple):
    """Some pairs of a block."""

    place: Place
    chosen: Flags | Rows
    """A flag for each pair of the block, or ascending rows."""

    def block(self) -> pa.RecordBatch:
        block = self.place.block()
        chosen = pa.array(self.chosen)
        return block.filter(chosen) if pa.types.is_boolean(chosen.type) else block.take(chosen)


def append_block(block: pa.RecordBatch, spool: Path) -> Place:
    """Append a block to this worker's file; the file's name is `spool` and the process id."""
    path = spool.with_name(f"{spool.name}.{os.getpid()}")
    # Opened for each block: once the main process removes the file, no process keeps its content.
    with path.open("ab") as file:
        offset = file.tell()
        size = file.write(block.serialize())
    return Place(str(path), offset, size, len(block))


def write_block(block: pa.RecordBatch, folder: Path) -> Place:
    """Write a block to a new temporary file in a folder."""
    descriptor, path = tempfile.mkstemp(suffix=".block", dir=folder)
    with os.fdopen(descriptor, "wb") as file:
        size = file.write(block.serialize())
    return Place(path, 0, size, len(block))


def flagged_parts(places: Sequence[Place], flags: Flags) -> Iterator[Part]:
    """The flagged pairs of the blocks that have any; `flags` has one for each pair of all."""
    start = 0
    for place in places:
        end = start + place.pairs
        of_block = flags[start:end]
        if of_block.any():
            yield Part(place, of_block)
        start = end


def parts_of_rows(places: Sequence[Place], rows: Rows) -> Iterator[Part]:
    """The blocks that have any of these ascending rows of all blocks."""
    begins = np.cumsum([0, *(place.pairs for place in places)])
    # Ascending rows: those of a block are next to each other.
    edges = np.searchsorted(rows, begins)
    for block in np.flatnonzero(np.diff(edges)).tolist():
        of_block = rows[edges[block] : edges[block + 1]]
        yield Part(places[block], of_block - begins[block])


def read_part(part: Part) -> pa.RecordBatch:
    return part.block()


def remove_files(places: Sequence[Place]) -> None:
    for file in {place.file for place in places}:
        Path(file).unlink()
