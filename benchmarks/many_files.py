"""Measure the start of training on a large corpus that is divided among many files.

    python benchmarks/many_files.py FOLDER [PAIRS] [FILES] [TOKENS]

The script writes PAIRS (200 million) pairs of random ids with TOKENS (4) tokens on average to FILES (12) files in FOLDER,
unless they are there, with 60 bytes per pair. Processes then do what training does before its first update: check the pairs,
compute hashes, plan, and build a batch. One process starts without a cache, and twice again with it; then two processes do
the same. For each, the script prints seconds, seconds of processor time, and the memory of the process: private, and pages of
files. With FILES=0, it only measures batches of 25,000 tokens from a million pairs in 1 to 200 files, in seconds of processor
time.
"""

import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from nmt.config import BatchingConfig

VOCABULARY = 32_000
BLOCK = 5000
TOKENS = 25_000
LONGEST = 16
DEFAULTS = ["200000000", "12", "4"]


def block_of_pairs(tokens: int, random: np.random.Generator):
    """A block of pairs as `nmt preprocess` writes it, of random ids."""
    import pyarrow as pa

    from nmt.data import IDS_SCHEMA

    columns = {"line": pa.array(np.arange(BLOCK))}
    for side in ("source", "target"):
        lengths = random.poisson(tokens, BLOCK).clip(1, LONGEST)
        offsets = np.append(0, lengths.cumsum()).astype(np.int32)
        ids = random.integers(4, VOCABULARY, offsets[-1], dtype=np.int32)
        columns[side] = pa.ListArray.from_arrays(offsets, ids)
        columns[f"{side}_length"] = pa.array((lengths + 1).astype(np.int32))
    return pa.record_batch([columns[name] for name in IDS_SCHEMA.names], schema=IDS_SCHEMA)


def rows_of_files(pairs: int, files: int) -> list[int]:
    """The number of pairs in each file; each has whole blocks."""
    blocks = pairs // BLOCK
    ends = [number * blocks // files for number in range(files + 1)]
    return (np.diff(ends) * BLOCK).tolist()


def write_corpus(folder: Path, rows: list[int], tokens: int) -> None:
    from nmt.data import IDS_SCHEMA
    from nmt.preparation import arrow_writer

    # Repeated, because random numbers take longer than everything that is measured.
    random = np.random.default_rng(1)
    blocks = [block_of_pairs(tokens, random) for _ in range(200)]
    (folder / "train").mkdir(parents=True)
    written = 0
    for number, size in enumerate(rows):
        name = "pairs.arrow" if len(rows) == 1 else f"pairs-{number + 1:05}.arrow"
        with arrow_writer(folder / "train" / name, IDS_SCHEMA) as write:
            for _ in range(size // BLOCK):
                write(blocks[written % len(blocks)])
                written += 1


def open_corpus(folder: Path, rows: list[int]):
    from nmt.data import Manifest, PreparedCorpus

    counts = {"kept": sum(rows)}
    if len(rows) > 1:
        counts["files"] = rows
    manifest = Manifest(4, "", {}, {"train": counts}, VOCABULARY, "", {})
    return PreparedCorpus(folder, manifest)


def memory(name: str) -> float:
    """An entry of /proc/self/status in MB."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status[name].split()[0]) / 1000


def start(folder: Path, rows: list[int]) -> None:
    """Do what training does before its first update, and print how long each part takes."""
    from nmt.data import BatchPlanner, UpdateDataModule

    # The libraries are there before anything is opened.
    assert UpdateDataModule
    before = memory("RssAnon")
    times = [(time.perf_counter(), time.process_time())]
    corpus = open_corpus(folder, rows)
    split = corpus.split("train")
    times.append((time.perf_counter(), time.process_time()))
    corpus.hashes("train")
    times.append((time.perf_counter(), time.process_time()))
    planner = BatchPlanner(split.source_lengths, split.target_lengths, BatchingConfig(TOKENS, 8), 1)
    planned = planner.update(0)
    times.append((time.perf_counter(), time.process_time()))
    for micro_batch in planned:
        split.batch(micro_batch.indices)
    times.append((time.perf_counter(), time.process_time()))
    names = ("check", "hash", "plan", "batches")
    parts = [
        f"{name} {end[0] - begin[0]:.2f} s (CPU {end[1] - begin[1]:.2f})"
        for name, begin, end in zip(names, times, times[1:], strict=False)
    ]
    total = times[-1][0] - times[0][0]
    added = memory("RssAnon") - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(
        f"  {total:.2f} s: {', '.join(parts)}; private {before + added:.0f} MB, {added:.0f} of them "
        f"for the corpus; pages of files {memory('RssFile'):.0f} MB, peak with them {peak:.0f} MB; "
        f"{len(list(Path('/proc/self/fd').iterdir()))} descriptors",
        flush=True,
    )


def run_ranks(count: int, folder: Path, words: list[str]) -> None:
    """Start processes at once, as the ranks of a training do, and wait for them."""
    command = [sys.executable, __file__, "rank", str(folder), *words]
    ranks = [subprocess.Popen(command) for _ in range(count)]
    for rank in ranks:
        if rank.wait():
            sys.exit("a process failed")


def measure_batches() -> None:
    from nmt.data import BatchPlanner

    for files in (1, 16, 128, 200):
        with TemporaryDirectory() as temporary:
            rows = rows_of_files(1_000_000, files)
            write_corpus(Path(temporary), rows, 24)
            split = open_corpus(Path(temporary), rows).unchecked_split("train")
            begin = time.process_time()
            for number in range(files):
                split.files[number]
            opened = time.process_time() - begin
            for micro_batches in (8, 1):
                planner = BatchPlanner(
                    split.source_lengths,
                    split.target_lengths,
                    BatchingConfig(TOKENS, micro_batches),
                    1,
                )
                begin = time.process_time()
                planned = [batch for number in range(100) for batch in planner.update(number)]
                planning = (time.process_time() - begin) / 100
                begin = time.process_time()
                for batch in planned:
                    split.batch(batch.indices)
                building = (time.process_time() - begin) / len(planned)
                print(
                    f"{files} files, {micro_batches} micro-batches: opened in {opened:.3f} s, "
                    f"{planning * 1000:.2f} ms to plan an update, {building * 1000:.2f} ms for a batch"
                )


def main() -> None:
    is_rank = sys.argv[1] == "rank"
    folder, *given = sys.argv[2:] if is_rank else sys.argv[1:]
    words = [*given, *DEFAULTS[len(given) :]]
    pairs, files, tokens = map(int, words)
    if not files:
        measure_batches()
        return
    rows = rows_of_files(pairs, files)
    if is_rank:
        start(Path(folder), rows)
        return
    if not Path(folder, "train").exists():
        write_corpus(Path(folder), rows, tokens)
        time.sleep(3)  # a file that changed in the last two seconds has no facts
    for ranks in (1, 2):
        with TemporaryDirectory() as cache:
            os.environ["XDG_CACHE_HOME"] = cache
            # The second start may still find that the files in the cache have just changed.
            for start_number in ("first", "second", "third"):
                print(f"{start_number} start, {ranks} processes:", flush=True)
                run_ranks(ranks, Path(folder), words)


if __name__ == "__main__":
    main()
