"""Arrow files, which are written and read one block at a time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nmt.preparation.selection import Flags, Rows
from nmt.text import Pair

TEXT_SCHEMA = pa.schema({"source": pa.string(), "target": pa.string(), "line": pa.int64()})
Numbered = list[tuple[int, Pair]]  # pairs with their line numbers in the corpus


@contextmanager
def arrow_writer(path: Path, schema: pa.Schema) -> Iterator[Callable[[pa.RecordBatch], None]]:
    """Open an Arrow stream file and yield a function that appends blocks to it, except empty ones."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
        yield lambda block: writer.write_batch(block) if len(block) else None


def arrow_blocks(path: Path, chosen: Flags | None = None) -> Iterator[pa.RecordBatch]:
    """The blocks of an Arrow stream file, with only the `chosen` pairs if given. Not memory-mapped, to save memory."""
    start = 0
    with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
        for block in reader:
            yield (
                block
                if chosen is None
                else block.filter(pa.array(chosen[start : start + len(block)]))
            )
            start += len(block)


def arrow_rows(path: Path, rows: Rows) -> Iterator[pa.RecordBatch]:
    """For each block of an Arrow stream file, its part of these ascending rows."""
    start = 0
    for block in arrow_blocks(path):
        begin, end = np.searchsorted(rows, [start, start + len(block)])
        yield block.take(pa.array(rows[begin:end] - start))
        start += len(block)


def text_block(numbered: Numbered) -> pa.RecordBatch:
    sides = ([pair[side] for _, pair in numbered] for side in (0, 1))
    return pa.record_batch([*sides, [line for line, _ in numbered]], schema=TEXT_SCHEMA)


def with_first_line(block: pa.RecordBatch, first: int) -> pa.RecordBatch:
    """A text block whose lines are counted from `first` instead of 0."""
    lines = pc.add(block.column("line"), first)
    return block.set_column(block.schema.get_field_index("line"), TEXT_SCHEMA.field("line"), lines)


def text_pairs(block: pa.RecordBatch | pa.Table) -> list[Pair]:
    return list(zip(block.column(0).to_pylist(), block.column(1).to_pylist(), strict=True))
