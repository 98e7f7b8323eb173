"""Measure how long commands take from start to end, compared with a Python that only imports a library.

    python benchmarks/startup.py [RUN TEXT [CORPUS]]

The script prints the median seconds of short commands and, given a run and a file, of translating the first line and
the first 32 lines with each engine, and their ratio to `import torch`. Given a prepared corpus, it also prints the
seconds until `nmt train CORPUS experiment=laptop` reports its first update, and then stops that command.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import torch": ["-c", "import torch"],
    "import lightning": ["-c", "import lightning"],
    "nmt --help": ["-m", "nmt", "--help"],
    "nmt --complete bash train optim.l": ["-m", "nmt", "--complete", "bash", "train", "optim.l"],
    "nmt train model.headz=4": ["-m", "nmt", "train", "model.headz=4"],
    "nmt translate (nothing trained)": ["-m", "nmt", "translate", "run=nowhere"],
}
ROUNDS = 9


def translations(run: str, text: Path, folder: Path) -> dict[str, list[str]]:
    """The commands that translate the first lines of a text."""
    commands = {}
    for count in (1, 32):
        lines = folder / f"{count}.txt"
        with text.open(encoding="utf-8") as file:
            lines.write_text("".join(islice(file, count)), encoding="utf-8")
        for engine in ("ctranslate2", "torch"):
            words = [f"run={run}", f"input={lines}", f"engine={engine}"]
            commands[f"nmt translate, {count} lines, {engine}"] = ["-m", "nmt", "translate", *words]
    return commands


def seconds(arguments: list[str]) -> float:
    """Until the command ends or, if it trains, reports an update."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout
    next((line for line in process.stdout if line.startswith(b"update ")), b"")
    taken = time.perf_counter() - start
    process.kill()
    process.communicate()
    return taken


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        commands = COMMANDS
        if len(sys.argv) > 2:
            commands = COMMANDS | translations(sys.argv[1], Path(sys.argv[2]), Path(folder))
        if len(sys.argv) > 3:
            training = [
                "-m",
                "nmt",
                "train",
                sys.argv[3],
                "experiment=laptop",
                f"run={folder}/run",
                "overwrite=true",
            ]
            commands = commands | {
                "first update of nmt train": [*training, "trainer.log_every_n_steps=1"]
            }
        for arguments in commands.values():
            seconds(arguments)  # compiles modules, and converts the model for CTranslate2
        # Interleaved, so that a slow moment of the machine touches all alike.
        rounds = [
            {name: seconds(arguments) for name, arguments in commands.items()}
            for _ in range(ROUNDS)
        ]
    reference = statistics.median(times["import torch"] for times in rounds)
    for name in commands:
        median = statistics.median(times[name] for times in rounds)
        print(f"{name:35} {median:6.2f} s  {median / reference:5.2f} x")


if __name__ == "__main__":
    main()
