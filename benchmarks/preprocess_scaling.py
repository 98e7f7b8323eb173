"""Predict how `nmt preprocess` scales to more worker processes than this machine has processors for.

    python benchmarks/preprocess_scaling.py [PAIRS] [SOURCE_TEXT TARGET_TEXT]
    python benchmarks/preprocess_scaling.py check [PAIRS]

The script prepares PAIRS (500,000) generated pairs as long as WMT's with one worker process, draws the held-out sets
and removes duplicates. For each item of each part, it measures the processor time that the main process needs to
produce the item and to take its result, which includes sending both, and the worker's processor time. Then it simulates
the same items with more workers: the main process submits up to twice as many items as there are workers, and takes
results in order. The later half of the items is repeated until there are LARGE items (a hundred million pairs), because
the first blocks of a corpus are inspected more thoroughly than later ones, and because the last items of a small corpus
leave many workers idle. The simulation assumes that workers share no memory bandwidth, caches or disk.

With `check`, it also prepares the corpus with two workers, and compares the time of each part with the simulation. The
other processes of the machine must leave two processors free.
"""

import heapq
import os
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from preprocess import write_corpus

PAIRS = 500_000
WORKERS = (1, 2, 4, 8, 16, 32)
LARGE = 20_000
NAMES = {
    "Cleaning": "reading and cleaning",
    "repeated_rows": "comparing hashes",
    "read_part": "drawing held-out sets",
    "rows_with_letters": "dropping lines like held-out ones",
    "shares_letters": "dropping lines like held-out ones",
    "encode_block": "encoding",
}
SMALL_PART = 0.01
"""Parts with less than this share of the processor time are not printed."""


@dataclass
class Item:
    produced: float
    """Processor seconds of the main process before the item is submitted."""
    worked: float
    """Processor seconds of the worker."""


@dataclass
class Part:
    items: list[Item] = field(default_factory=list)
    main: float = 0.0
    """All processor seconds of the main process, those of its threads included."""
    wall: float = 0.0

    @property
    def worked(self) -> float:
        return sum(item.worked for item in self.items)


class Timed:
    """A function that also returns the processor seconds of its call."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, item: Any) -> tuple[Any, float]:
        begin = time.process_time()
        result = self.function(item)
        return result, time.process_time() - begin


def name_of(function: Any) -> str:
    function = getattr(function, "func", function)
    name = getattr(function, "__name__", type(function).__name__)
    return NAMES.get(name, name)


class Measurement:
    """Replaces `map_in_order`."""

    def __init__(self) -> None:
        from nmt.preparation import preparation, workers

        self.parts: dict[str, Part] = {}
        self.original = workers.map_in_order
        preparation.map_in_order = self.map_in_order

    def map_in_order(
        self,
        pool: ProcessPoolExecutor,
        ahead: int,
        function: Callable[[Any], Any],
        items: Iterable[Any],
    ) -> Iterator[Any]:
        part = self.parts.setdefault(name_of(function), Part())
        begin = time.process_time()
        wall = time.perf_counter()
        produced = list[float]()
        worked = list[float]()

        def timed_items() -> Iterator[Any]:
            iterator = iter(items)
            while True:
                start = time.process_time()
                try:
                    item = next(iterator)
                except StopIteration:
                    return
                produced.append(time.process_time() - start)
                yield item

        try:
            for result, seconds in self.original(pool, ahead, Timed(function), timed_items()):
                worked.append(seconds)
                yield result
        finally:
            part.main += time.process_time() - begin
            part.wall += time.perf_counter() - wall
            # A consumer that stops early leaves items without results.
            part.items += map(Item, produced, worked)


def simulated_seconds(part: Part, workers: int) -> float:
    """The time of a part with as many workers, as `map_in_order` works."""
    produced = sum(item.produced for item in part.items)
    taking = max(0.0, part.main - produced) / max(1, len(part.items))
    now = 0.0
    free = [0.0] * workers
    waiting = deque[float]()
    for item in part.items:
        now += item.produced
        # The executor gives the item to the first worker that is free.
        end = max(now, heapq.heappop(free)) + item.worked
        heapq.heappush(free, end)
        waiting.append(end)
        if len(waiting) >= 2 * workers:
            now = max(now, waiting.popleft()) + taking
    while waiting:
        now = max(now, waiting.popleft()) + taking
    return now


def enlarged(part: Part) -> Part:
    """The part of a corpus with LARGE items."""
    later = part.items[len(part.items) // 2 :]
    items = [*part.items, *islice(cycle(later), max(0, LARGE - len(part.items)))]
    return Part(items, part.main / len(part.items) * len(items))


def prepare(folder: Path, workers: int) -> tuple[dict[str, Part], float, float]:
    """The parts, and all processor seconds of the main process and the time of the command."""
    from nmt.commands import compose
    from nmt.preparation import preprocess

    measurement = Measurement()
    options = [
        "data=files",
        "data.name=generated",
        f"data.train={folder / 'train'}",
        "data.filters.deduplicate=true",
        f"prepared={folder / 'out'}",
        f"workers={workers}",
        "overwrite=true",
        "tokenizer.sample=100000",
        "data.valid_size=100",
        "data.test_size=100",
        "tokenizer.vocabulary_size=8000",
    ]
    config = compose("preprocess", options)
    begin = time.process_time()
    wall = time.perf_counter()
    preprocess(config, lambda words: None)
    main = time.process_time() - begin
    return measurement.parts, main, time.perf_counter() - wall


def report(parts: dict[str, Part], main: float, pairs: int) -> None:
    total = sum(part.worked for part in parts.values())
    for name, part in parts.items():
        if part.worked < SMALL_PART * total:
            continue
        large = enlarged(part)
        one = simulated_seconds(large, 1)
        speedups = [f"{one / simulated_seconds(large, count):.1f} ({count})" for count in WORKERS]
        print(
            f"{name}, processor seconds per million pairs: main process {part.main / pairs * 1e6:.3f}, "
            f"workers {part.worked / pairs * 1e6:.2f}, ratio {part.worked / part.main:.0f}; {len(part.items):,} items"
        )
        print(f"  predicted speedup (workers): {', '.join(speedups)}")
    outside = main - sum(part.main for part in parts.values())
    print(f"main process outside of these parts: {outside / pairs * 1e6:.2f} s per million pairs")


def main() -> None:
    words = sys.argv[1:]
    is_check = words[:1] == ["check"]
    if is_check:
        words = words[1:]
    pairs = int(words[0]) if words else PAIRS
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_corpus(folder, pairs, words[1:])
        parts, main_seconds, _ = prepare(folder, 1)
        report(parts, main_seconds, pairs)
        if not is_check:
            return
        doubled, _, _ = prepare(folder, 2)
    for name, part in parts.items():
        predicted = simulated_seconds(part, 1) / simulated_seconds(part, 2)
        print(
            f"{name}: {part.wall:.2f} s with 1 worker, {doubled[name].wall:.2f} s with 2: "
            f"{part.wall / doubled[name].wall:.2f} times as fast, predicted {predicted:.2f}"
        )


if __name__ == "__main__":
    main()
