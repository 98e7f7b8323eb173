"""Compare `nmt translate cluster=ray` with one worker to `nmt translate` alone.

`python benchmarks/ray_overhead.py MODEL FILE [ROUNDS]` translates a file of lines both ways, in
turns, with one thread each, and prints the ratio of the times. A file of one line shows how much of
the difference is Ray's start. Both outputs must have the same bytes.
"""

import hashlib
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ALONE = ["threads=1"]
ON_RAY = ["cluster=ray", "ray.workers=1"]


def seconds(model: str, source: Path, output: Path, options: list[str]) -> float:
    words = [str(source), model, f"output={output}", "overwrite=true", "engine=ctranslate2"]
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-m", "nmt", "translate", *words, *options], check=True)
    return time.perf_counter() - begin


def main() -> None:
    model, name, *rest = sys.argv[1:]
    rounds = int(rest[0]) if rest else 1
    source = Path(name)
    with tempfile.TemporaryDirectory() as folder:
        single = Path(folder, "single.txt")
        with source.open() as lines:
            single.write_text(next(lines))
        output = Path(folder, "output.txt")
        ratios = []
        starts = []
        for _ in range(rounds):
            alone = seconds(model, source, output, ALONE)
            digest = hashlib.sha256(output.read_bytes()).hexdigest()
            on_ray = seconds(model, source, output, ON_RAY)
            assert digest == hashlib.sha256(output.read_bytes()).hexdigest(), "other translations"
            start = seconds(model, single, output, ON_RAY) - seconds(model, single, output, ALONE)
            print(
                f"alone {alone:.1f} s, on Ray {on_ray:.1f} s, of which {start:.1f} s to start Ray"
            )
            ratios.append(on_ray / alone)
            starts.append((on_ray - start) / alone)
    print(
        f"ratio {statistics.median(ratios):.2f}, without the start {statistics.median(starts):.2f}"
    )


if __name__ == "__main__":
    main()
