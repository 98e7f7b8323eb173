"""Measure how fast `nmt train` is while other programs keep cores busy, as programs on a laptop do.

    python benchmarks/busy.py PREPARED [KEY=VALUE ...] [--neighbors 0 1 2] [--rounds 3]
        [--settings default OMP_NUM_THREADS=1 ...] [--seconds 15]

PREPARED is a corpus that `nmt preprocess` wrote, and KEY=VALUE are options of `nmt train`, such as
`model=tiny`. `--neighbors` lists numbers of busy processes. A setting is a list of environment
variables, separated by commas; `default` sets none. In each of `--rounds` rounds, the script trains
for `--seconds` with each setting beside each number of busy processes. It prints the median target
tokens/s, and their ratios to the best setting and to the first one.
"""

import argparse
import csv
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

EVERY = 2  # updates: a slow setting needs seconds for each
WARM_UP_REPORTS = 2
THREAD_VARIABLES = ("OMP_", "GOMP_", "KMP_", "MKL_NUM_THREADS")
SETTINGS = (
    "default",
    "GOMP_SPINCOUNT=300000",  # libgomp's own default
    "GOMP_SPINCOUNT=1000",
    "OMP_WAIT_POLICY=PASSIVE",
    "OMP_NUM_THREADS=1",
)
# The process ends with its parent, also if the parent is killed.
BUSY = """
import os
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""


@contextmanager
def busy_processes(number: int) -> Iterator[None]:
    """Other processes that compute within the block, in sessions of their own as programs of other windows."""
    processes = [
        subprocess.Popen([sys.executable, "-c", BUSY], start_new_session=True)
        for _ in range(number)
    ]
    try:
        level = Path("/proc/self/autogroup")
        if level.exists():  # the same share of the processor as this session has
            for process in processes:
                Path(f"/proc/{process.pid}/autogroup").write_text(level.read_text().split()[-1])
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def variables_of(setting: str) -> dict[str, str]:
    if setting == "default":
        return {}
    return dict(variable.split("=", 1) for variable in setting.split(","))


def tokens_per_second(prepared: str, overrides: list[str], setting: str, seconds: int) -> float:
    """Target tokens/s of a short training; the first reports, with their warm-up, do not count."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "nmt", "train", prepared, f"run={folder}/run"]
        # Any schedule ends far away, so that these keys compose with each experiment.
        command += ["optim.decay_steps=null", "optim.schedule=noam"]
        command += ["trainer.max_steps=100000", f"trainer.max_time=00:00:00:{seconds:02}"]
        command += [f"trainer.log_every_n_steps={EVERY}", "trainer.accelerator=cpu"]
        command += ["validation.every_steps=1000000", "validation.bleu_sentences=0"]
        command += ["checkpoints.every_steps=1000000", *overrides]
        environment = {
            key: value for key, value in os.environ.items() if not key.startswith(THREAD_VARIABLES)
        }
        ended = subprocess.run(
            command, env=environment | variables_of(setting), capture_output=True, text=True
        )
        if ended.returncode:
            raise SystemExit(f"{' '.join(command)}\n{ended.stderr}")
        with Path(folder, "run", "metrics.csv").open() as file:
            rates = [
                float(row["tokens_per_second"])
                for row in csv.DictReader(file)
                if row["tokens_per_second"]
            ]
    if not rates:
        return 0.0  # not one report in that time
    return statistics.median(rates[WARM_UP_REPORTS:] or rates[-1:])


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("prepared")
    parser.add_argument("keys", nargs="*", metavar="KEY=VALUE")
    parser.add_argument("--neighbors", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=15, choices=range(5, 60), metavar="5..59")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    rates: dict[tuple[int, str], list[float]] = {}
    for _ in range(options.rounds):
        for neighbors in options.neighbors:
            for setting in options.settings:
                with busy_processes(neighbors):
                    rate = tokens_per_second(
                        options.prepared, options.keys, setting, options.seconds
                    )
                print(f"{neighbors} busy  {setting:30} {rate:8,.0f} tokens/s", file=sys.stderr)
                rates.setdefault((neighbors, setting), []).append(rate)
    for neighbors in options.neighbors:
        medians = {
            setting: statistics.median(rates[neighbors, setting]) for setting in options.settings
        }
        best = max(medians.values())
        for setting, rate in medians.items():
            ratio = rate / medians[options.settings[0]]
            print(
                f"{neighbors} busy  {setting:30} {rate:8,.0f} tokens/s  "
                f"{rate / best:.2f} of the best  {ratio:.2f} of {options.settings[0]}"
            )


if __name__ == "__main__":
    main()
