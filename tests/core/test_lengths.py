"""Memory-mapped sentence lengths equal the same lengths in memory."""

import pickle
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from nmt.config import BatchingConfig
from nmt.data import IDS_SCHEMA, BatchPlanner, PreparedSplit
from nmt.data.lengths import GrownLengths, MappedLengths
from nmt.data.mixing import Mixture
from nmt.errors import NMTError
from nmt.preparation import arrow_writer

BLOCK_SIZES = [1, 999, 7, 1000, 3]
PAIRS = sum(BLOCK_SIZES)
SOURCES = np.random.default_rng(1).integers(1, 40, PAIRS).astype(np.int32)
TARGETS = np.random.default_rng(2).integers(1, 40, PAIRS).astype(np.int32)
BOUNDS = np.array([0, 500, 1003, PAIRS])
"""Of three sources; the second ends inside a block."""


def table_of_pairs() -> pa.Table:
    ids = [[[7] * (length - 1) for length in side.tolist()] for side in (SOURCES, TARGETS)]
    return pa.table([*ids, SOURCES, TARGETS, np.arange(PAIRS)], schema=IDS_SCHEMA)


@pytest.fixture(scope="module")
def split(tmp_path_factory) -> PreparedSplit:
    folder = tmp_path_factory.mktemp("split")
    table = table_of_pairs()
    with arrow_writer(folder / "pairs.arrow", IDS_SCHEMA) as write:
        for begin, end in pairwise(np.cumsum([0, *BLOCK_SIZES]).tolist()):
            write(table.slice(begin, end - begin).combine_chunks().to_batches()[0])
    return PreparedSplit(folder)


@pytest.mark.parametrize(
    "rows",
    [
        slice(None),
        slice(0, 0),
        slice(5, 2),
        slice(0, 1),
        slice(1, 1000),
        slice(999, 1008),
        slice(2005, 9999),
        np.array([], np.int64),
        np.array([0, 1, 999, 1000, 1006, 1007, 2006, 2007, 2009, 3, 3]),
        np.arange(PAIRS)[::-1],
    ],
)
def test_indexing_a_mapped_column_equals_indexing_an_array(split, rows):
    assert split.target_lengths[rows].tolist() == TARGETS[rows].tolist()
    assert split.source_lengths[rows].tolist() == SOURCES[rows].tolist()


def test_lists_read_in_place_equal_those_that_arrow_takes(tmp_path):
    random = np.random.default_rng(1)
    sizes = [3, 0, 1, 500, 0, 40]  # of blocks; some are empty
    expected = []
    with arrow_writer(tmp_path / "pairs.arrow", IDS_SCHEMA) as write:
        for size in sizes:
            columns = []
            for _ in range(2):
                lengths = random.integers(0, 4, size)
                columns.append([random.integers(4, 99, length).tolist() for length in lengths])
            expected += zip(*columns, strict=True)
            recorded = [np.array([len(ids) + 1 for ids in side], np.int32) for side in columns]
            columns += [*recorded, np.arange(size)]
            arrays = [
                pa.array(column, kind)
                for column, kind in zip(columns, IDS_SCHEMA.types, strict=True)
            ]
            write(pa.RecordBatch.from_arrays(arrays, schema=IDS_SCHEMA))
    split = PreparedSplit(tmp_path)
    split.check((99, 99))
    for rows in (np.arange(544), random.permutation(544), np.array([7, 7, 543]), np.arange(0)):
        sources, targets = split.rows(rows)
        assert sources.type == targets.type == IDS_SCHEMA.field("source").type
        assert [*zip(sources.to_pylist(), targets.to_pylist(), strict=True)] == [
            expected[row] for row in rows
        ]


def test_a_split_keeps_little_memory_for_its_blocks(split):
    assert len(pickle.dumps(split)) < 500
    columns = split.files[0]
    arrays = [columns.starts, *columns.numbers.values(), *columns.offsets.values()]
    assert sum(array.nbytes for array in arrays) <= 7 * 8 * (len(BLOCK_SIZES) + 1)


def test_a_mapped_column_is_not_copied(split):
    lengths = split.source_lengths
    assert (len(lengths), lengths.max(), lengths.sum()) == (PAIRS, SOURCES.max(), SOURCES.sum())
    parts = [*lengths.parts(0, PAIRS)]
    assert [len(part) for part in parts] == BLOCK_SIZES
    content = split.files[0].content
    assert all(np.shares_memory(part, content) for part in parts)
    file = split.folder / "pairs.arrow"
    assert content.nbytes == file.stat().st_size // 4 * 4


def test_another_process_gets_only_the_name_of_the_file(split):
    lengths = split.source_lengths
    sent = pickle.dumps(lengths)
    assert len(sent) < 500
    assert pickle.loads(sent).tolist() == SOURCES.tolist()


def test_growing_lengths_in_parts_equals_growing_all(split):
    growth = np.array([1, 1.15, 1.3])
    expected = np.ceil(SOURCES * np.repeat(growth, np.diff(BOUNDS))).astype(np.int32)
    grown = GrownLengths(split.source_lengths, BOUNDS, growth)
    assert (len(grown), grown.max()) == (PAIRS, expected.max())
    for begin in range(0, PAIRS, 300):
        assert grown[begin : begin + 300].tolist() == expected[begin : begin + 300].tolist()


@pytest.mark.parametrize(
    "mixture", [None, Mixture(BOUNDS, np.array([1, 2.5, 1]), np.array([1, 1.15, 1.3]))]
)
def test_updates_planned_from_mapped_lengths_equal_those_from_arrays(split, mixture):
    batching = BatchingConfig(400, 2)
    mapped = BatchPlanner(split.source_lengths, split.target_lengths, batching, 1, mixture=mixture)
    arrays = BatchPlanner(SOURCES, TARGETS, batching, 1, mixture=mixture)
    for number in (0, 1, 50, 1000):
        for planned, expected in zip(mapped.update(number), arrays.update(number), strict=True):
            assert planned.indices.tolist() == expected.indices.tolist()
            assert planned[1:] == expected[1:]


def test_compressed_lengths_are_rejected(tmp_path):
    file = tmp_path / "pairs.arrow"
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with (
        pa.OSFile(str(file), "wb") as sink,
        pa.ipc.new_stream(sink, IDS_SCHEMA, options=options) as writer,
    ):
        writer.write_table(table_of_pairs())
    with pytest.raises(ValueError, match="its source_length is compressed"):
        MappedLengths.open(file, "source_length")
    with pytest.raises(
        NMTError, match=r"its source is compressed or misaligned\); prepare it again"
    ):
        PreparedSplit(tmp_path)


@pytest.mark.slow
def test_a_damaged_stream_is_refused_or_harmless(tmp_path):
    """Any error but NMTError, such as pyarrow's SystemError, would be a traceback for the user."""
    file = tmp_path / "pairs.arrow"
    with arrow_writer(file, IDS_SCHEMA) as write:
        for block in table_of_pairs().slice(0, 2).to_batches(1):
            write(block)
    content = np.frombuffer(file.read_bytes(), np.uint8)
    refused = 0
    # Mostly high bytes of lengths, offsets and counts, because blocks are small. 236 makes them
    # negative.
    zeros = np.flatnonzero(content == 0)
    for place in zeros:
        damaged = content.copy()
        damaged[place] = 236
        file.write_bytes(damaged.tobytes())
        try:
            split = PreparedSplit(tmp_path)
            split.check((90, 90))
            split.batch(np.arange(len(split)))
        except NMTError:
            refused += 1
    assert 100 < refused < len(zeros)
