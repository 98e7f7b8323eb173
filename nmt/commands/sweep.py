"""`nmt train --sweep`: a process for each point of a product of values, one after another, and a table of them all.

Where a point trains is decided by the configuration alone, so the same command goes on with what is missing.
"""

import csv
import hashlib
import io
import math
import re
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from rich.console import Console

from nmt.compose import Command, compose, expand, set_text
from nmt.config import ExperimentConfig
from nmt.data.manifest import read_manifest
from nmt.errors import NMTError
from nmt.storage.lock import only_process
from nmt.storage.whole import write_file
from nmt.training.run_folder import (
    check_configuration,
    check_corpus,
    checkpoint_step,
    is_finished,
    list_checkpoints,
    point_latest_to,
    read_metrics,
)

TRAIN = [sys.executable, "-m", "nmt", "train"]
FIGURES = {"valid_loss": 3, "valid_perplexity": 2, "valid_bleu": 2, "valid_f1": 2}
"""What of the last validation is in the table, and its digits there."""


@dataclass
class Point:
    """One training of a sweep."""

    values: dict[str, str]
    """Of each swept key."""
    words: list[str]
    """What stands behind `nmt train` to train this point alone."""
    config: ExperimentConfig
    run: Path
    state: str = "not started"
    """Or done, stopped, failed."""

    def __str__(self) -> str:
        return " ".join(f"{key}={value}" for key, value in self.values.items())


def plan(command: Command, overrides: list[str], config_dir: Path | None = None) -> list[Point]:
    """Every point of a sweep; NMTError where any of them has a mistake."""
    expanded = expand(command, overrides, config_dir)
    configs = [compose(command, words, config_dir) for _, words in expanded]
    swept = expanded[0][0]
    if not swept:
        raise NMTError("--sweep: no key has several values; write KEY=A,B or KEY=range(1,4)")
    for key in {"name", "run"}.intersection(swept):
        raise NMTError(f"{key}: a sweep gives each point a run of its own; sweep another key, such as seed")
    folder = common_folder([config.run for config in configs])
    option = ["--config-dir", str(config_dir)] if config_dir else []
    points: dict[str, Point] = {}
    for (values, words), config in zip(expanded, configs, strict=True):
        run = folder / folder_name(values)
        own = [*(word for word in words if not word.startswith("run=")), set_text("run", str(run)), *option]
        point = Point(values, own, config, run)
        if points.setdefault(run.name.casefold(), point) is not point:
            raise NMTError(f"--sweep: {point} occurs twice")
    return list(points.values())


def common_folder(runs: list[str]) -> Path:
    """The folder of a sweep: the run that its points would share, or what the beginnings of their names share."""
    parts = [re.split(r"([-/])", str(Path(run))) for run in runs]
    shared = 0
    while shared < min(map(len, parts)) and len({part[shared] for part in parts}) == 1:
        shared += 1
    common = "".join(parts[0][:shared]).rstrip("-")
    return Path(common) / "sweep" if common == "" or common.endswith("/") else Path(common)


def folder_name(values: dict[str, str]) -> str:
    """model.heads-4+seed-1: a name that is safe in every file system and needs no quotes, in Hydra's grammar either."""
    return shortened("+".join(f"{key}-{shortened(value, 40)}" for key, value in values.items()), 200, "+")


def shortened(text: str, length: int, also: str = "") -> str:
    """A text with safe characters alone, and not too long; a text that this changes is told apart by its hash."""
    safe = re.sub(rf"[^A-Za-z0-9._{also}-]+", "_", text)[:length]
    return safe if safe == text else f"{safe}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def command_lines(points: list[Point]) -> str:
    """A line for each point that a shell, or a scheduler, can run."""
    return "".join(f"{shlex.join(['nmt', 'train', *point.words])}\n" for point in points)


class Processes:
    """Runs processes one after another; a signal that asks this one to stop is passed on, and remembered."""

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
        """Ask the process to save and stop, too.

        A terminal sends Ctrl-C to the process as well, and schedulers their signal; the same one a second time would
        end it before it has saved. So it gets the other one.
        """
        self.signal = number
        if self.process:
            self.process.send_signal(signal.SIGTERM if number == signal.SIGINT else signal.SIGINT)

    def run(self, command: list[str], output: int = 2) -> int:
        """The exit code of a command.

        What it says goes to standard error, since standard output is the table's, or to the file of that descriptor.
        """
        self.process = subprocess.Popen(command, stdout=output)
        if self.signal is not None:  # it came while the process was being started
            self.on_signal(self.signal, None)
        return self.process.wait()


def train_points(points: list[Point], console: Console) -> int:
    """Train what is not trained yet, and print the table of all; gives the exit code.

    NMTError where it can be seen already that a point cannot be trained.
    """
    for point in points:
        manifest = read_manifest(Path(point.config.prepared))
        check_corpus(manifest, point.config)
        check_configuration(point.run, point.config)
        if is_finished(point.run, point.config.trainer["max_steps"], manifest.fingerprint):
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


def train(point: Point, processes: Processes, console: Console) -> None:
    """Train one point, and note how that ended."""
    code = processes.run([*TRAIN, *point.words])
    stopped = code != 0 and processes.signal is not None
    point.state = "done" if code == 0 else "stopped" if stopped else "failed"
    if point.state == "failed":
        # A process that the kernel ends, out of memory for one, has not said so.
        console.print(f"{point} failed with {f'exit code {code}' if code > 0 else f'signal {-code}'}")


def conclude(points: list[Point], stopped_by: int | None, console: Console) -> int:
    """Print and write the table, let `latest` lead to the best point, and say what is left to do."""
    folder = points[0].run.parent
    table = rows(points)
    write_table(folder, table)
    print_table(table)
    for point, row in zip(points, table, strict=True):
        if row["best"]:
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


def rows(points: list[Point]) -> list[dict[str, str]]:
    """The table: swept values, updates, figures of the last validation as in metrics.csv, state, best, run."""
    table = []
    for point in points:
        reports = read_metrics(point.run)
        validated = [{}, *(report for report in reports if report["valid_loss"])][-1]
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
    """The higher, the better: BLEU or F1, and where that is equal or was not computed, the lower loss."""
    score, loss = float(row["valid_bleu"] or row["valid_f1"] or "nan"), float(row["valid_loss"] or "nan")
    return (-math.inf if math.isnan(score) else score, -math.inf if math.isnan(loss) else -loss)


def write_table(folder: Path, table: list[dict[str, str]]) -> None:
    """Write sweep.csv."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(table[0]))
    writer.writeheader()
    writer.writerows(table)
    write_file(folder / "sweep.csv", text.getvalue())


def print_table(table: list[dict[str, str]]) -> None:
    """On standard output, its numbers rounded, without figures that no point has; sweep.csv has them whole."""
    keys = [key for key in table[0] if key != "run" and (key not in FIGURES or any(row[key] for row in table))]
    lines = [[key.removeprefix("valid_") for key in keys]]
    for row in table:
        shown = {key: f"{float(row[key]):.{digits}f}" for key, digits in FIGURES.items() if row.get(key)}
        lines.append([shown.get(key, row[key]) for key in keys])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
