"""Corpora as Arrow files, written and read in blocks of pairs, so that memory does not grow with them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nmt.text import Pair

TEXT_SCHEMA = pa.schema({"source": pa.string(), "target": pa.string(), "line": pa.int64()})
IDS_SCHEMA = pa.schema(
    {
        "source": pa.list_(pa.int32()),
        "target": pa.list_(pa.int32()),
        "source_length": pa.int32(),
        "target_length": pa.int32(),
        "line": pa.int64(),
    }
)


@contextmanager
def arrow_writer(path: Path, schema: pa.Schema) -> Iterator[Callable[[pa.RecordBatch], None]]:
    """Open an Arrow stream file, and give a function that appends a block to it, unless the block is empty."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
        yield lambda block: writer.write_batch(block) if len(block) else None


def arrow_blocks(path: Path) -> Iterator[pa.RecordBatch]:
    """The blocks of an Arrow stream file, one by one. Not memory-mapped: its pages would count as our memory."""
    with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
        yield from reader


def text_block(pairs: list[Pair], lines: list[int]) -> pa.RecordBatch:
    """Pairs and their line numbers in the corpus, as a block."""
    return pa.record_batch([*([pair[side] for pair in pairs] for side in (0, 1)), lines], schema=TEXT_SCHEMA)


def text_pairs(block: pa.RecordBatch) -> list[Pair]:
    """The pairs of a block."""
    return list(zip(block.column(0).to_pylist(), block.column(1).to_pylist(), strict=True))


def list_column(rows: list[list[int]], lengths: NDArray[np.int32]) -> pa.ListArray:
    """An Arrow column of lists, built without checking the type of each number."""
    ends = np.append(0, lengths.cumsum(dtype=np.int32))
    return pa.ListArray.from_arrays(ends, np.fromiter(chain.from_iterable(rows), np.int32, ends[-1]))
