"""Find pairs that occurred before, in memory that does not depend on the number of pairs.

The hashes of all pairs are written to a file, in runs of RUN_PAIRS pairs. Within a run they are
ordered by bucket, the first bits of a hash. Equal hashes have the same bucket, so a task only needs
the same few buckets of every run, which it reads with one seek per run.
"""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.text import Pair

Hashes = NDArray[np.uint64]
Rows = NDArray[np.int64]
EMPTY = np.empty(0, np.uint64)
RUN_PAIRS = 1 << 20
"""Hashes in memory before they are written: 12 bytes each, and another 12 bytes to order them."""
TASK_PAIRS = 1 << 20
"""The pairs that a task compares. With more than BUCKETS times as many pairs, tasks grow."""
BUCKET_BITS = 10
BUCKETS = 1 << BUCKET_BITS
"""Hashes are divided by their first bits. Equal ones are in one bucket, so tasks need no others."""
# 12 bytes, because numpy does not align the fields.
RECORD = np.dtype([("hash", np.uint64), ("row", np.uint32)])  # rows are counted within the run


def pair_hashes(pairs: Iterable[Pair]) -> Hashes:
    return np.frombuffer(b"".join(map(pair_digest, pairs)), dtype=np.uint64)


def pair_digest(pair: Pair) -> bytes:
    # A clean line has no tab, because normalization turns blanks into spaces.
    text = "\t".join(pair).encode()
    # Not Python's hash, which differs between worker processes. With 64 bits, the probability that
    # any two of 40 million different pairs have the same hash is about 4e-5.
    return hashlib.blake2b(text, digest_size=8).digest()


def first_rows(hashes: Hashes) -> Rows:
    """The rows at which a hash occurs first, ascending."""
    return np.sort(np.unique(hashes, return_index=True)[1])


class RunPart(NamedTuple):
    """Consecutive records of a run."""

    first_row: int
    """The corpus row of the run's first pair."""
    begin: int
    """Where the part begins in the file of hashes, in records."""
    end: int


class HashFile:
    """The hashes of the pairs of a corpus, in corpus order."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.pairs = 0
        """The number of pairs in the file, excluding those still in `waiting`."""
        self.waiting: list[Hashes] = []
        self.waiting_pairs = 0
        self.run_rows: list[int] = []
        """The first row of each run."""
        self.bucket_starts: list[Rows] = []
        """For each run, the row of the file where each bucket begins."""

    def add(self, hashes: Hashes) -> None:
        self.waiting.append(hashes)
        self.waiting_pairs += len(hashes)
        if self.waiting_pairs >= RUN_PAIRS:
            self.write_run()

    def write_run(self) -> None:
        """Write the waiting hashes, ordered by bucket."""
        # EMPTY, because there may be no waiting hashes, and numpy cannot concatenate an empty list.
        hashes = np.concatenate([EMPTY, *self.waiting])
        buckets = (hashes >> np.uint64(64 - BUCKET_BITS)).astype(np.uint16)
        # Stable, so that within a bucket the first of equal hashes is the first in the corpus. For
        # 16-bit integers, numpy then uses a radix sort, which takes linear time.
        order = np.argsort(buckets, kind="stable")
        records = np.empty(len(hashes), RECORD)
        records["hash"] = hashes[order]
        records["row"] = order
        self.file.write(records.tobytes())
        self.run_rows.append(self.pairs)
        starts = np.searchsorted(buckets[order], np.arange(BUCKETS + 1))
        # In records from the beginning of the file, where the runs follow one another without gaps.
        self.bucket_starts.append(self.pairs + starts)
        self.pairs += len(hashes)
        self.waiting = []
        self.waiting_pairs = 0

    def tasks(self) -> Iterator[list[RunPart]]:
        """For each task, the part of each run to compare."""
        # The last run may be shorter. Workers open the file by its path, so nothing may stay in the
        # buffer.
        self.write_run()
        self.file.flush()
        count = min(BUCKETS, self.pairs // TASK_PAIRS + 1)
        # Hashes are uniform, so equal numbers of buckets have about equal numbers of pairs.
        edges = [BUCKETS * task // count for task in range(count + 1)]
        for first, last in pairwise(edges):
            yield [
                RunPart(row, int(starts[first]), int(starts[last]))
                for row, starts in zip(self.run_rows, self.bucket_starts, strict=True)
            ]


@contextmanager
def hash_file(path: Path) -> Iterator[HashFile]:
    """Open a temporary file of hashes and remove it at the end."""
    with path.open("wb") as file:
        yield HashFile(file)
    # After an error, the whole temporary folder of the corpus is removed instead.
    path.unlink()


def repeated_rows(parts: list[RunPart], path: Path) -> Rows:
    """The corpus rows whose hash an earlier row has, among these parts of a file of hashes."""
    rows = [np.empty(0, np.int64)]
    hashes = [EMPTY]
    with path.open("rb") as file:
        for first_row, begin, end in parts:
            file.seek(begin * RECORD.itemsize)
            content = file.read((end - begin) * RECORD.itemsize)
            records = np.frombuffer(content, RECORD)
            rows.append(first_row + records["row"].astype(np.int64))
            hashes.append(records["hash"])
    joined = np.concatenate(hashes)
    is_repeated = np.ones(len(joined), bool)
    # `unique` returns the first of equal hashes, and the parts are in corpus order.
    is_repeated[np.unique(joined, return_index=True)[1]] = False
    return np.concatenate(rows)[is_repeated]
