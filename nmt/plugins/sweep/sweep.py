"""`nmt train --sweep`: train the points of a sweep in turn, each in its own process, and tabulate the results.

A point's configuration alone determines its run's name, so the same command resumes with the unfinished points.
"""

import csv
import hashlib
import itertools
import math
import re
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from nmt.commands import compose, talker
from nmt.config import ExperimentConfig, Option, in_words, parse, require, set_text

TRAIN = [sys.executable, "-P", "-m", "nmt", "train"]
FIGURES = {"valid_loss": 3, "valid_perplexity": 2, "valid_bleu": 2, "valid_f1": 2}
"""Columns of metrics.csv whose values at the last validation are tabulated -> decimal places when printed."""


@dataclass
class Point:
    """One training run of a sweep."""

    values: dict[str, str]  # value of each swept key
    words: list[str]  # arguments of `nmt train` that train only this point
    config: ExperimentConfig
    run: Path
    state: str = "not started"  # or done, stopped, failed

    def __str__(self) -> str:
        return " ".join(f"{key}={value}" for key, value in self.values.items())


def run(overrides: list[str], config_dir: Path | None, options: set[str]) -> int | None:
    is_sweep = "--sweep" in options
    require(is_sweep, "--dry-run prints the commands of a --sweep; to print one configuration, use --cfg")
    with talker().status("composing configurations"):
        points = plan(overrides, config_dir)
    for point in points:
        counts = point.config.minutes is None and point.config.trainer.max_steps is not None
        require(counts, "a time limit gives each run a different number of updates: sweep with trainer.max_steps=")
    if "--dry-run" not in options:
        return train_points(points)
    for point in points:
        print(shlex.join(["nmt", "train", *point.words]))
    return None


SWEEP = Option("Train once for each of several values: KEY=A,B or KEY=range(1,4).", run=run)
DRY_RUN = Option("With --sweep: print each run's command without starting it.", run=run)


def plan(overrides: list[str], config_dir: Path | None = None) -> list[Point]:
    """The points of a sweep; NMTError if any of them is invalid."""
    combinations = expand(overrides)
    configs = [compose("train", words, config_dir) for _, words in combinations]
    swept = combinations[0][0]
    require(bool(swept), "--sweep: no key has several values; write KEY=A,B or KEY=range(1,4)")
    folder = common_folder([config.run for config in configs])
    option = ["--config-dir", str(config_dir)] if config_dir else []
    points: dict[str, Point] = {}
    for (values, words), config in zip(combinations, configs, strict=True):
        run = folder / folder_name(values)
        alone = [*(word for word in words if not word.startswith("run=")), set_text("run", str(run)), *option]
        point = Point(values, alone, config, run)
        require(points.setdefault(run.name.casefold(), point) is point, f"--sweep: {point} occurs twice")
    return list(points.values())


def expand(overrides: list[str]) -> list[tuple[dict[str, str], list[str]]]:
    """Each point's values for the swept keys, and its full list of overrides; the last key varies fastest.

    Overrides that have a single value or cannot be parsed are kept unchanged.
    """
    choices: list[list[tuple[str, str, str]]] = []
    for word in overrides:
        override = parse(word)
        if override is None or not override.is_sweep_override():
            choices.append([("", "", word)])
            continue
        sweep: Any = override.value()
        kind = type(sweep).__name__  # a Hydra class
        fits = kind in ("ChoiceSweep", "RangeSweep") and not sweep.shuffle
        require(fits, f"{word}: list the values in order, as KEY=A,B or KEY=range(START,STOP,STEP)")
        singles = [f"{override.get_key_element()}={value}" for value in override.sweep_string_iterator()]
        require(bool(singles), f"{word}: no values")
        # Parsing again removes Hydra's quotes and escapes from the values.
        values = [in_words(single.value()) for single in map(parse, singles) if single]
        choices.append([(override.key_or_group, *pair) for pair in zip(values, singles, strict=True)])
    return [
        ({key: value for key, value, _ in point if key}, [word for _, _, word in point])
        for point in itertools.product(*choices)
    ]


def common_folder(runs: list[str]) -> Path:
    """The folder of a sweep: the run folder that its points would otherwise share, or the common prefix of theirs."""
    parts = [re.split(r"([-/])", str(Path(run))) for run in runs]
    shared = takewhile(lambda column: len(set(column)) == 1, zip(*parts, strict=False))
    common = "".join(column[0] for column in shared).rstrip("-")
    return Path(common) / "sweep" if common == "" or common.endswith("/") else Path(common)


def folder_name(values: dict[str, str]) -> str:
    """A name such as model.heads-4+seed-1, safe for file systems, shells and Hydra's grammar.

    Names that were cut or had characters replaced get a hash, to keep them distinct.
    """
    text = "+".join(f"{key}-{value}" for key, value in values.items())
    safe = re.sub(r"[^A-Za-z0-9._+-]+", "_", text)[:200]
    return safe if safe == text else f"{safe}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def run_process(command: list[str], output: int = 2) -> tuple[int, int | None]:
    """Run a command whose output goes to a file descriptor; return its exit code and any signal that was received."""
    received: list[int] = []
    process = subprocess.Popen(command, stdout=output)

    def pass_on(number: int, frame: object) -> None:
        # A terminal or a scheduler signals the child process too. A second signal of the same kind would kill it before
        # it has saved, so send the other kind.
        received.append(number)
        process.send_signal(signal.SIGTERM if number == signal.SIGINT else signal.SIGINT)

    handlers = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    code = process.wait()
    for number, handler in handlers.items():
        signal.signal(number, handler)
    return code, received[0] if received else None


def train_points(points: list[Point]) -> int:
    """Train the unfinished points, print the table of all points and return the exit code.

    Raises NMTError before any training if a point cannot be trained.
    """
    from nmt.data import read_manifest
    from nmt.files import only_process
    from nmt.training import check_configuration, check_corpus, is_finished, list_checkpoints, point_latest_to

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
    folder, console, stopped_by = points[0].run.parent, talker(), None
    with only_process(folder, "run"):
        for number, point in enumerate(points, 1):
            is_done = point.state == "done"
            console.print(f"point {number} of {len(points)}: {point}{': already trained' * is_done}")
            if is_done:
                continue
            code, stopped_by = run_process([*TRAIN, *point.words])
            point.state = "done" if code == 0 else "failed" if stopped_by is None else "stopped"
            if point.state == "failed":
                console.print(f"{point} failed with {f'exit code {code}' if code > 0 else f'signal {-code}'}")
            write_table(folder, points)
            if stopped_by is not None:
                break
        table = write_table(folder, points)
        print_table(table)
        for point in (point for point, row in zip(points, table, strict=True) if row["best"]):
            point_latest_to(point.run, beside=folder)
            console.print(f"the best point is {point.run}; the table is in {folder / 'sweep.csv'}")
    if failed := [str(point) for point in points if point.state == "failed"]:
        names = "; ".join(failed)
        console.print(f"{len(failed)} of {len(points)} points failed ({names}); the same command retries them")
    if stopped_by is not None:
        console.print("the sweep was stopped; the same command resumes it")
        return 128 + stopped_by
    return 1 if failed else 0


def write_table(folder: Path, points: list[Point]) -> list[dict[str, str]]:
    """Write sweep.csv and return its rows."""
    from nmt.files import whole_file
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
    if done := [row for row in table if row["state"] == "done" and row["valid_loss"]]:
        max(done, key=quality)["best"] = "best"
    with whole_file(folder / "sweep.csv") as path, path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows(table)
    return table


def quality(row: dict[str, str]) -> tuple[float, float]:
    """A sort key for runs (higher is better): BLEU or F1, then the negated loss."""
    score, loss = float(row["valid_bleu"] or row["valid_f1"] or "nan"), float(row["valid_loss"] or "nan")
    return (-math.inf if math.isnan(score) else score, -math.inf if math.isnan(loss) else -loss)


def print_table(table: list[dict[str, str]]) -> None:
    """Print the table with rounded numbers and without empty metric columns."""
    keys = [key for key in table[0] if key != "run" and (key not in FIGURES or any(row[key] for row in table))]
    lines = [[key.removeprefix("valid_") for key in keys]]
    for row in table:
        rounded = {key: f"{float(row[key]):.{digits}f}" for key, digits in FIGURES.items() if row.get(key)}
        lines.append([rounded.get(key, row[key]) for key in keys])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
