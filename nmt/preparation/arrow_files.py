"""Arrow files, which are written and read one block at a time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from nmt.text import Pair

# `pa.string` has offsets of 32 bits. That suffices, because long lines end a block early.
TEXT_SCHEMA = pa.schema(
    {
        "source": pa.string(),
        "target": pa.string(),
        "line": pa.int64(),
    }
)
Numbered = list[tuple[int, Pair]]
"""Pairs with their line numbers in the corpus."""


@contextmanager
def arrow_writer(path: Path, schema: pa.Schema) -> Iterator[Callable[[pa.RecordBatch], None]]:
    """Open an Arrow stream file and yield a function that appends blocks, except empty ones."""
    # The stream format, not the file format: blocks are only read in order, and nothing must be
    # known about them in advance.
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:

        def write(block: pa.RecordBatch) -> None:
            if len(block):
                writer.write_batch(block)

        yield write


def arrow_blocks(path: Path) -> Iterator[pa.RecordBatch]:
    """The blocks of an Arrow stream file, which is not memory-mapped, to save memory."""
    with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
        yield from reader


def text_block(numbered: Numbered) -> pa.RecordBatch:
    """A block of pairs, with the schema TEXT_SCHEMA."""
    sources = [source for _, (source, _) in numbered]
    targets = [target for _, (_, target) in numbered]
    lines = [line for line, _ in numbered]
    return pa.record_batch([sources, targets, lines], schema=TEXT_SCHEMA)


def with_first_line(block: pa.RecordBatch, first: int) -> pa.RecordBatch:
    """A text block whose lines are counted from `first` instead of 0."""
    # A worker does not know how many pairs the blocks before its own have.
    lines = pc.add(block.column("line"), first)
    index = block.schema.get_field_index("line")
    return block.set_column(index, TEXT_SCHEMA.field("line"), lines)


def text_pairs(block: pa.RecordBatch | pa.Table) -> list[Pair]:
    sources = block.column(0).to_pylist()
    targets = block.column(1).to_pylist()
    return list(zip(sources, targets, strict=True))
