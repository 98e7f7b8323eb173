"""Measure how fast `nmt train` is while another program keeps one core busy, as programs on a laptop do.

    python benchmarks/busy.py PREPARED [ROUNDS] [KEY=VALUE ...]

The script alternates between training alone and next to a busy process, with one thread per core and with one thread.
It prints the median target tokens/s, and their ratio to training alone.
"""

import csv
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SETTINGS = {"all cores": {}, "one thread": {"OMP_NUM_THREADS": "1"}}
UPDATES, EVERY = 60, 10


@contextmanager
def busy_process(wanted: bool) -> Iterator[None]:
    """Another process that computes within the block, in a session of its own as a program of another window."""
    if not wanted:
        yield
        return
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True)
    level = Path("/proc/self/autogroup")
    if level.exists():  # the same share of the processor as this session has
        Path(f"/proc/{process.pid}/autogroup").write_text(level.read_text().split()[-1])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def tokens_per_second(prepared: str, overrides: list[str], environment: dict[str, str]) -> float:
    """Target tokens/s of a short training; the first reports, with their warm-up, do not count."""
    with tempfile.TemporaryDirectory() as run:
        never = ("validation.every_steps=1000000", "checkpoints.every_steps=1000000", "validation.bleu_sentences=0")
        steps = (f"trainer.max_steps={UPDATES}", f"trainer.log_every_n_steps={EVERY}", "trainer.accelerator=cpu")
        command = [sys.executable, "-m", "nmt", "train", prepared, *overrides, f"run={run}/run", *steps, *never]
        own = {key: value for key, value in os.environ.items() if not key.startswith(("OMP_", "GOMP_"))}
        subprocess.run(command, env=own | environment, check=True, capture_output=True)
        with Path(run, "run", "metrics.csv").open() as file:
            rates = [float(row["tokens_per_second"]) for row in csv.DictReader(file) if row["tokens_per_second"]]
    return statistics.median(rates[2:])


def main(prepared: str, rounds: int, overrides: list[str]) -> None:
    rates: dict[tuple[str, bool], list[float]] = {(name, busy): [] for name in SETTINGS for busy in (False, True)}
    for _ in range(rounds):
        for (name, busy), found in rates.items():
            with busy_process(busy):
                found.append(tokens_per_second(prepared, overrides, SETTINGS[name]))
    for name in SETTINGS:
        alone, beside = (statistics.median(rates[name, busy]) for busy in (False, True))
        print(f"{name:20} alone {alone:8,.0f} tokens/s  beside a busy process {beside:8,.0f}, {beside / alone:.2f}")


if __name__ == "__main__":
    words = sys.argv[2:]
    main(sys.argv[1], int(words[0]) if words and words[0].isdigit() else 3, [word for word in words if "=" in word])
