"""Measure what a job on a Ray cluster costs the program that reads the input and writes the output.

`python benchmarks/ray_driver.py MODEL FILE [KEY=VALUE]...` runs `nmt translate cluster=ray` with two workers that return
each line unchanged, so that the driver is the slowest part. It prints the lines per second, and the driver's seconds of
processor time and peak memory, for FILE and for FILE repeated four times. A cluster whose workers together translate more
lines per second than that keeps them waiting.
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nmt.commands import compose
from nmt.plugins.cluster.job import run_on_ray
from nmt.translation import FinishedBlock, TranslationWork

REPEATS = (1, 4)


class Echo(TranslationWork):
    """Work whose results are its texts."""

    def load(self, notice: Callable[[str], None]) -> None:
        pass

    def compute(self, texts: list[Any], rows: Sequence[int]) -> FinishedBlock:
        return FinishedBlock(results=texts)


def measure(source: Path, words: list[str]) -> None:
    """Run one job in this process, and print its costs."""
    config = compose("translate", [f"input={source}", "cluster=ray", "ray.workers=2", *words])
    begin = time.perf_counter()
    processor = time.process_time()
    run_on_ray(Echo(config, config.cluster_options))
    seconds = time.perf_counter() - begin
    processor = time.process_time() - processor
    with source.open("rb") as file:
        lines = sum(1 for _ in file)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{lines:,} lines: {lines / seconds:,.0f} per second with Ray's start, {processor:.1f} s of "
        f"processor time, {memory:.0f} MB"
    )


def main() -> None:
    if sys.argv[1] == "--measure":
        measure(Path(sys.argv[2]), sys.argv[3:])
        return
    model, name, *options = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        for repeats in REPEATS:
            source = Path(folder, f"lines-{repeats}")
            source.write_bytes(Path(name).read_bytes() * repeats)
            words = [f"run={model}", f"output={source}.out", *options]
            # A process for each size: peak memory and Ray's start are those of one job.
            command = [sys.executable, __file__, "--measure", str(source), *words]
            subprocess.run(command, check=True)
            assert Path(f"{source}.out").read_bytes() == source.read_bytes(), "other lines"


if __name__ == "__main__":
    main()
