"""Measure how fast a translation memory loads, and finds similar entries, against a comparison with all entries.

    OMP_NUM_THREADS=1 python benchmarks/memory_matches.py SOURCE TARGET QUERIES [--entries N] [--minimum 0.75] [--brute N]

SOURCE and TARGET are parallel files, the entries of the memory. For more entries than they have lines, the script adds
copies in which words are replaced by other words of SOURCE, so the memory has many similar entries. QUERIES is a file
of lines to look up. `--brute` is the number of lines to compare with all entries, which is slow; for these, the script
checks that both find the same entries. Times are processor seconds of one core.
"""

import argparse
import random
import resource
import tempfile
import time
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path

from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from nmt.plugins.memory.files import load_memory
from nmt.plugins.memory.index import UNKNOWN, WordIndex, words_of
from nmt.text import canonical
from nmt.translation import Direction

SEED = 1
CHANGED = 0.3
"""The share of words that are replaced in a copy."""


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def entries_of(sources: list[str], targets: list[str], count: int) -> Iterator[str]:
    """Rows of a table with `count` entries."""
    chance = random.Random(SEED)
    vocabulary = sorted({word for source in sources for word in source.split()})
    for number in range(count):
        place = number % len(sources)
        words = sources[place].split()
        if number >= len(sources):
            for index in range(len(words)):
                if chance.random() < CHANGED:
                    words[index] = chance.choice(vocabulary)
        yield f"{' '.join(words)}\t{targets[place]}\n"


def megabytes() -> float:
    """What the process has in memory now, on Linux."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def brute_force(index: WordIndex, texts: list[str], minimum: float) -> tuple[list[set[int]], float]:
    """The similar entries of texts by a comparison with all, and the seconds that it took."""
    entries = [index.words_at(number) for number in range(len(index.lengths))]
    results = list[set[int]]()
    begin = time.process_time()
    for text in texts:
        words = [index.numbers.get(word, UNKNOWN) for word in words_of(text)]
        matches = process.extract(
            words,
            entries,
            scorer=Levenshtein.normalized_similarity,
            processor=None,
            score_cutoff=minimum,
            limit=None,
        )
        results.append({number for _, _, number in matches})
    return results, time.process_time() - begin


def measure(path: str, queries: list[str], minimum: float, brute: int) -> None:
    """Print the measurements, in a separate process, so that its memory has no other data."""
    before = megabytes()
    begin = time.process_time()
    [memory] = load_memory([path], Direction(), minimum).memories
    seconds = time.process_time() - begin
    assert memory.index
    print(f"{len(memory):,} entries, {len(queries):,} lines, minimum {minimum}")
    print(f"load and index: {seconds:.1f} s, {megabytes() - before:,.0f} MB")
    begin = time.process_time()
    exact = sum(memory.exact(query) is not None for query in queries)
    seconds = time.process_time() - begin
    print(f"exact: {exact:,} lines, {len(queries) / seconds:,.0f} lines/s")
    begin = time.process_time()
    similar = sum(bool(memory.similar(query)) for query in queries)
    by_index = len(queries) / (time.process_time() - begin)
    print(f"similar: {similar:,} lines, {by_index:,.0f} lines/s")
    sample = random.Random(SEED).sample(queries, min(brute, len(queries)))
    results, seconds = brute_force(memory.index, sample, minimum)
    by_comparison = len(sample) / seconds
    for query, expected in zip(sample, results, strict=True):
        assert {number for number, _ in memory.index.similar(query)} == expected, query
    print(f"comparison with all: {by_comparison:,.1f} lines/s, the same entries for {len(sample)}")
    print(f"ratio: {by_index / by_comparison:,.0f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("queries", type=Path)
    parser.add_argument("--entries", type=int, default=0)
    parser.add_argument("--minimum", type=float, default=0.75)
    parser.add_argument("--brute", type=int, default=10)
    options = parser.parse_args()
    sources = lines_of(options.source)
    rows = entries_of(sources, lines_of(options.target), options.entries or len(sources))
    queries = [canonical(line) for line in lines_of(options.queries)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "memory.tsv")
        with path.open("w", encoding="utf-8") as file:
            file.writelines(rows)
        arguments = (str(path), queries, options.minimum, options.brute)
        with get_context("spawn").Pool(1) as pool:
            pool.apply(measure, arguments)


if __name__ == "__main__":
    main()
