"""How long a person waits for the command line: whole processes, beside a Python that does nothing.

    python benchmarks/startup.py

Prints the median seconds of `nmt --help` and of a mistyped key, and their ratio to `python -c pass` in the same run.
"""

import statistics
import subprocess
import sys
import time

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "nmt --help": ["-m", "nmt", "--help"],
    "nmt train model.headz=4": ["-m", "nmt", "train", "model.headz=4"],
    "nmt translate (nothing trained)": ["-m", "nmt", "translate", "run=nowhere"],
}
ROUNDS = 9


def seconds(arguments: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], capture_output=True, check=False)
    return time.perf_counter() - start


def main() -> None:
    # Interleaved, so that a slow moment of the machine touches all alike.
    rounds = [{name: seconds(arguments) for name, arguments in COMMANDS.items()} for _ in range(ROUNDS)]
    reference = statistics.median(times["python -c pass"] for times in rounds)
    for name in COMMANDS:
        median = statistics.median(times[name] for times in rounds)
        print(f"{name:35} {median:6.2f} s  {median / reference:5.1f} x")


if __name__ == "__main__":
    main()
