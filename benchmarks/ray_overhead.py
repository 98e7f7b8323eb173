"""Compare `nmt translate cluster=ray` with one worker to `nmt translate` alone.

`python benchmarks/ray_overhead.py MODEL FILE [KEY=VALUE]...` translates a file of lines both ways
with one thread, and prints the ratios of the times and of the processor times of all processes that
were started. A file of one line shows how much of them is Ray's start. Processor times are those
that /proc shows every half second, and hardly depend on what else the machine does. Both outputs
must have the same bytes.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ALONE = ["threads=1"]
ON_RAY = ["cluster=ray", "ray.workers=1"]
SAMPLE_SECONDS = 0.5
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Cost:
    """What a command took, in seconds."""

    wall: float
    processor: float


def processes() -> dict[int, tuple[int, float]]:
    """Process -> its parent, and its processor time in seconds."""
    table = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name of a process, which is in parentheses, may contain blanks.
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        table[int(path.parent.name)] = (int(fields[1]), (int(fields[11]) + int(fields[12])) / TICKS)
    return table


def times_below(root: int) -> dict[int, float]:
    """The processor times of a process and its descendants."""
    table = processes()
    members = {root}
    size = 0
    while size != len(members):
        size = len(members)
        members |= {child for child, (parent, _) in table.items() if parent in members}
    return {member: table[member][1] for member in members if member in table}


def cost_of(model: str, source: Path, output: Path, options: list[str]) -> Cost:
    words = [str(source), model, f"output={output}", "overwrite=true", "engine=ctranslate2"]
    begin = time.perf_counter()
    command = [sys.executable, "-m", "nmt", "translate", *words, *options]
    times: dict[int, float] = {}
    with subprocess.Popen(command) as process:
        while process.poll() is None:
            times.update(times_below(process.pid))
            time.sleep(SAMPLE_SECONDS)
    assert process.returncode == 0, command
    return Cost(time.perf_counter() - begin, sum(times.values()))


def main() -> None:
    model, name, *options = sys.argv[1:]
    source = Path(name)
    with tempfile.TemporaryDirectory() as folder:
        single = Path(folder, "single.txt")
        with source.open() as lines:
            single.write_text(next(lines))
        output = Path(folder, "output.txt")
        alone = cost_of(model, source, output, [*ALONE, *options])
        digest = hashlib.sha256(output.read_bytes()).hexdigest()
        on_ray = cost_of(model, source, output, [*ON_RAY, *options])
        assert digest == hashlib.sha256(output.read_bytes()).hexdigest(), "other translations"
        single_alone = cost_of(model, single, output, [*ALONE, *options])
        single_on_ray = cost_of(model, single, output, [*ON_RAY, *options])
    for unit in ("wall", "processor"):
        start = getattr(single_on_ray, unit) - getattr(single_alone, unit)
        single_time = getattr(single_alone, unit)
        before = getattr(alone, unit)
        after = getattr(on_ray, unit)
        steady = (after - start - single_time) / (before - single_time)
        print(
            f"{unit} time: alone {before:.1f} s, on Ray {after:.1f} s, ratio {after / before:.2f}; "
            f"{start:.1f} s to start Ray, and a ratio of {steady:.2f} for the rest"
        )


if __name__ == "__main__":
    main()
