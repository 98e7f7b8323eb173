"""`nmt train --sweep`: train one point of the sweep after another, each in a process of its own, and tabulate them.

The run of a point depends on the configuration alone, so the same command continues with the points that are missing.
"""

import csv
import math
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from nmt.commands import COMMANDS
from nmt.commands.console import talker
from nmt.config import Option
from nmt.errors import NMTError

if TYPE_CHECKING:
    from rich.console import Console

    from nmt.plugins.sweep.points import Point

TRAIN = [sys.executable, "-P", "-m", "nmt", "train"]
FIGURES = {"valid_loss": 3, "valid_perplexity": 2, "valid_bleu": 2, "valid_f1": 2}
"""Column of metrics.csv that the table shows from the last validation -> its decimal places when printed."""


def run(overrides: list[str], config_dir: Path | None, options: set[str]) -> int | None:
    """Train with each of several values; with --dry-run only print the commands."""
    if "--sweep" not in options:
        raise NMTError("--dry-run prints the commands of a --sweep; --cfg prints the configuration of one training")
    console = talker()
    with console.status("composing"):
        from nmt.plugins.sweep.points import plan

        points = plan(COMMANDS["train"], overrides, config_dir)
    if any(point.config.minutes is not None or point.config.trainer.max_steps is None for point in points):
        raise NMTError("time gives each training another number of updates: sweep with trainer.max_steps=")
    if "--dry-run" not in options:
        return train_points(points, console)
    sys.stdout.write(command_lines(points))
    return None


def command_lines(points: "list[Point]") -> str:
    """A line for each point, to be run by a shell or a scheduler."""
    return "".join(f"{shlex.join(['nmt', 'train', *point.words])}\n" for point in points)


SWEEP = Option("Train with each of several values, KEY=A,B or KEY=range(1,4).", run=run)
DRY_RUN = Option("With --sweep: print the command of each training, and start none.", run=run)


class Processes:
    """Runs processes one after another; a signal to stop is passed on to the current one, and remembered."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Processes":
        self.handlers = {number: signal.signal(number, self.on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self.handlers.items():
            signal.signal(number, handler)

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Ask the process to save and stop.

        A terminal or a scheduler sends its signal to the process as well, and a second signal of the same kind would
        end it before it has saved. So it gets the other kind.
        """
        self.signal = number
        if self.process:
            self.process.send_signal(signal.SIGTERM if number == signal.SIGINT else signal.SIGINT)

    def run(self, command: list[str], output: int = 2) -> int:
        """Run a command; returns its exit code.

        Its output goes to the file descriptor `output`: to standard error, since standard output is for the table.
        """
        self.process = subprocess.Popen(command, stdout=output)
        if self.signal is not None:  # it came before there was a process
            self.on_signal(self.signal, None)
        return self.process.wait()


def train_points(points: "list[Point]", console: "Console") -> int:
    """Train the points that are not trained yet, and print the table of all; returns the exit code.

    Raises NMTError before any training if a point cannot be trained.
    """
    from nmt.data import read_manifest
    from nmt.files import only_process
    from nmt.training import check_configuration, check_corpus, is_finished, list_checkpoints

    for point in points:
        manifest = read_manifest(Path(point.config.prepared))
        check_corpus(manifest, point.config)
        check_configuration(point.run, point.config)
        max_steps = point.config.trainer.max_steps
        assert max_steps is not None
        if is_finished(point.run, max_steps, manifest.fingerprint):
            point.state = "done"
        elif list_checkpoints(point.run):
            point.state = "stopped"
    with only_process(points[0].run.parent, "run"), Processes() as processes:
        for number, point in enumerate(points, 1):
            done = ": already trained" if point.state == "done" else ""
            console.print(f"point {number} of {len(points)}: {point}{done}")
            if not done:
                train(point, processes, console)
                write_table(point.run.parent, rows(points))
            if processes.signal is not None:
                break
        return conclude(points, processes.signal, console)


def train(point: "Point", processes: Processes, console: "Console") -> None:
    """Train one point, and record how that ended."""
    code = processes.run([*TRAIN, *point.words])
    point.state = "done" if code == 0 else "failed" if processes.signal is None else "stopped"
    if point.state == "failed":
        console.print(f"{point} {failure(code)}")


def failure(code: int) -> str:
    """An exit code in words; a process that the kernel ended, such as out of memory, could not explain itself."""
    return f"failed with {f'exit code {code}' if code > 0 else f'signal {-code}'}"


def conclude(points: "list[Point]", stopped_by: int | None, console: "Console") -> int:
    """Print and write the table, point `latest` to the best point, and say what is left to do."""
    folder = points[0].run.parent
    table = rows(points)
    write_table(folder, table)
    print_table(table)
    for point, row in zip(points, table, strict=True):
        if row["best"]:
            from nmt.training import point_latest_to

            point_latest_to(point.run, beside=folder)
            console.print(f"the best point is {point.run}; the table is in {folder / 'sweep.csv'}")
    failed = [str(point) for point in points if point.state == "failed"]
    if failed:
        console.print(
            f"{len(failed)} of {len(points)} points failed ({'; '.join(failed)}); the same command tries them again"
        )
    if stopped_by is not None:
        console.print("the sweep was stopped; the same command goes on from there")
        return 128 + stopped_by
    return 1 if failed else 0


def rows(points: "list[Point]") -> list[dict[str, str]]:
    """The table: swept values, updates, figures of the last validation, state, best, run."""
    from nmt.training import checkpoint_step, list_checkpoints, read_metrics

    table = []
    for point in points:
        reports = read_metrics(point.run)
        validated = [{}, *(report for report in reports if report.get("valid_loss"))][-1]
        saved = [str(checkpoint_step(path)) for path in list_checkpoints(point.run)]
        updates = (saved or [report["step"] for report in reports] or ["0"])[-1]
        figures = {key: validated.get(key, "") for key in FIGURES}
        about = {"state": point.state, "best": "", "run": str(point.run)}
        table.append({**point.values, "updates": updates, **figures, **about})
    done = [row for row in table if row["state"] == "done" and row["valid_loss"]]
    if done:
        max(done, key=quality)["best"] = "best"
    return table


def quality(row: dict[str, str]) -> tuple[float, float]:
    """A sort key, higher is better: BLEU or F1; then, or where neither was computed, a lower loss."""
    score, loss = float(row["valid_bleu"] or row["valid_f1"] or "nan"), float(row["valid_loss"] or "nan")
    return (-math.inf if math.isnan(score) else score, -math.inf if math.isnan(loss) else -loss)


def write_table(folder: Path, table: list[dict[str, str]]) -> None:
    """Write sweep.csv."""
    from nmt.files import whole_file

    with whole_file(folder / "sweep.csv") as path, path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows(table)


def print_table(table: list[dict[str, str]]) -> None:
    """Print the table with rounded numbers, without figures that no point has."""
    keys = [key for key in table[0] if key != "run" and (key not in FIGURES or any(row[key] for row in table))]
    lines = [[key.removeprefix("valid_") for key in keys]]
    for row in table:
        shown = {key: f"{float(row[key]):.{digits}f}" for key, digits in FIGURES.items() if row.get(key)}
        lines.append([shown.get(key, row[key]) for key in keys])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
