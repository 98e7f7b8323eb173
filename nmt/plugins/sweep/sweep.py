"""`nmt train --sweep`: print the commands that train each combination of several values; a shell runs them.

A point's configuration alone determines its run's name, so the same commands resume unfinished runs.
"""

import hashlib
import itertools
import re
import shlex
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from nmt.commands import compose, talker
from nmt.config import ExperimentConfig, Option, in_words, parse, require, set_text


@dataclass
class Point:
    """One training run of a sweep."""

    values: dict[str, str]  # value of each swept key
    words: list[str]  # arguments of `nmt train` that train only this point
    config: ExperimentConfig
    run: Path

    def __str__(self) -> str:
        return " ".join(f"{key}={value}" for key, value in self.values.items())


def run(overrides: list[str], config_dir: Path | None, options: set[str]) -> None:
    with talker().status("composing configurations"):
        points = plan(overrides, config_dir)
    for point in points:
        counts = point.config.minutes is None and point.config.trainer.max_steps is not None
        require(counts, "a time limit gives each run a different number of updates: sweep with trainer.max_steps=")
    for point in points:
        print(shlex.join(["nmt", "train", *point.words]))


SWEEP = Option(
    "Print a command for each combination of values (KEY=A,B or KEY=range(1,4)); run them with | sh.", run=run
)


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
