"""Measure the cost of planning: seconds, memory, padding, and the time from a plan to a batch.

    python benchmarks/planning.py [PAIRS] [STORED]

The script writes PAIRS (40 million) lengths to a temporary file and plans them in updates of 25,000 tokens, with 8
micro-batches and with one, reading the lengths from the memory-mapped file as training does. It plans twice: as the first
process of a machine, and as one that finds the order of the pairs in the cache, which is in a temporary folder. It prints
the memory that planning adds, without pages of files. Then it writes STORED (one million) pairs of random ids to a
temporary folder and builds batches from them.
"""

import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from lengths import text_like_lengths
from numpy.typing import NDArray

from nmt import files
from nmt.config import BatchingConfig
from nmt.data import BatchPlanner
from nmt.data.lengths import MappedLengths

Lengths = tuple[NDArray[np.int32], NDArray[np.int32]]
TOKENS = 25_000
UPDATES = 1000
VOCABULARY = 37_000
DEFAULTS = [40_000_000, 1_000_000]


def own_bytes() -> int:
    """The memory of this process that is no pages of files."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["RssAnon"].split()[0]) * 1024


@contextmanager
def printed_memory(pairs: int) -> Iterator[None]:
    """Print the memory that a `with` block adds, at its peak and at its end."""
    before = own_bytes()
    most = before
    is_done = threading.Event()

    def watch() -> None:
        nonlocal most
        while not is_done.wait(0.01):
            most = max(most, own_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    yield
    after = own_bytes() - before
    is_done.set()
    watcher.join()
    added = most - before
    print(
        f"memory: {added / 1e6:.0f} MB at the peak ({added / pairs:.1f} bytes per pair), "
        f"{after / 1e6:.0f} MB afterwards ({after / pairs:.1f} bytes per pair)"
    )


def padding(planner: BatchPlanner, lengths: tuple[MappedLengths, MappedLengths]) -> float:
    """The share of padding in updates all over the first pass."""
    real = padded = 0
    last = max(planner.micro_batches_per_pass // planner.micro_batches, 1)
    for number in range(0, last, max(last // UPDATES, 1)):
        for batch in planner.update(number):
            real += sum(int(side[batch.indices].sum()) for side in lengths)
            padded += sum(len(batch.indices) * int(side[batch.indices].max()) for side in lengths)
    return 1 - real / padded


def mapped(lengths: Lengths, file: Path) -> tuple[MappedLengths, MappedLengths]:
    """The lengths in a memory-mapped file."""
    import pyarrow as pa

    from nmt.preparation import arrow_writer

    names = ("source_length", "target_length")
    table = pa.table(dict(zip(names, lengths, strict=True)))
    with arrow_writer(file, table.schema) as write:
        for block in table.to_batches(5000):
            write(block)
    one, other = (MappedLengths.open(file, name) for name in names)
    return one, other


def measure_planning(lengths: tuple[MappedLengths, MappedLengths], micro_batches: int) -> None:
    for process in ("first", "next"):
        start = time.perf_counter()
        cpu_start = time.process_time()
        with printed_memory(len(lengths[0])):
            planner = BatchPlanner(*lengths, BatchingConfig(TOKENS, micro_batches), seed=1)
            planner.update(0)
        planned = time.perf_counter() - start
        cpu = time.process_time() - cpu_start
        order = "in memory" if isinstance(planner.groups.order, np.ndarray) else "shared"
        print(
            f"{process} process: {planned:.1f} s to the first update, {cpu:.1f} s of them computing; order {order}"
        )
    per_pass = planner.micro_batches_per_pass // micro_batches
    start = time.perf_counter()
    for number in range(0, UPDATES * per_pass, per_pass):  # each in another pass
        planner.update(number)
    update = (time.perf_counter() - start) / UPDATES
    start = time.perf_counter()
    planner.largest_shapes()
    shapes = time.perf_counter() - start
    print(
        f"{micro_batches} micro_batches: {update * 1000:.2f} ms for any other update, "
        f"{shapes:.2f} s for the largest shapes; {planner.micro_batches_per_pass:,} micro-batches in "
        f"{len(planner.parts):,} groups; padding {padding(planner, lengths):.1%}"
    )


def store(lengths: Lengths, folder: Path) -> None:
    """A split as `nmt preprocess` writes it, of random ids."""
    import pyarrow as pa

    from nmt.data import IDS_SCHEMA
    from nmt.preparation import arrow_writer

    random = np.random.default_rng(1)
    columns = {}
    for name, side in zip(("source", "target"), lengths, strict=True):
        ends = np.append(0, np.cumsum(side - 1, dtype=np.int32))
        columns[name] = pa.ListArray.from_arrays(
            ends, random.integers(4, VOCABULARY, ends[-1], dtype=np.int32)
        )
        columns[f"{name}_length"] = pa.array(side)
    columns["line"] = pa.array(np.arange(1, len(lengths[0]) + 1))
    folder.mkdir()
    with arrow_writer(folder / "pairs.arrow", IDS_SCHEMA) as write:
        for block in pa.table(columns, schema=IDS_SCHEMA).to_batches(5000):
            write(block)


def measure_batches(lengths: Lengths) -> None:
    from nmt.data import PreparedSplit

    with tempfile.TemporaryDirectory() as temporary:
        store(lengths, Path(temporary) / "train")
        start = time.perf_counter()
        split = PreparedSplit(Path(temporary) / "train")
        print(f"a split of {len(split):,} pairs opens in {time.perf_counter() - start:.2f} s")
        start = time.perf_counter()
        split.examine_file(0, VOCABULARY, VOCABULARY)
        print(f"a look at all its ids takes {time.perf_counter() - start:.2f} s")
        start = time.perf_counter()
        files.sha256(split.files.paths[0])
        size = split.files.paths[0].stat().st_size
        print(f"the hash of its {size / 1e9:.1f} GB takes {time.perf_counter() - start:.2f} s")
        for micro_batches in (8, 1):
            planner = BatchPlanner(
                split.source_lengths,
                split.target_lengths,
                BatchingConfig(TOKENS, micro_batches),
                seed=1,
            )
            planned = [
                batch.indices
                for number in range(400 // micro_batches)
                for batch in planner.update(number)
            ]
            start = time.perf_counter()
            for indices in planned:
                split.batch(indices)
            each = (time.perf_counter() - start) / len(planned)
            print(
                f"a batch of {TOKENS // micro_batches:,} tokens on either side: {each * 1000:.2f} ms"
            )


def main() -> None:
    pairs, stored = map(int, [*sys.argv[1:], *DEFAULTS[len(sys.argv) - 1 :]])
    lengths = text_like_lengths(pairs)
    print(f"{pairs:,} pairs, {lengths[1].mean() - 1:.1f} target tokens each")
    with tempfile.TemporaryDirectory() as temporary:
        os.environ["XDG_CACHE_HOME"] = temporary
        in_file = mapped(lengths, Path(temporary) / "lengths.arrow")
        lengths = (lengths[0][:stored].copy(), lengths[1][:stored].copy())
        for micro_batches in (8, 1):
            measure_planning(in_file, micro_batches)
    measure_batches(lengths)


if __name__ == "__main__":
    main()
