"""The points of a sweep: what overrides with several values stand for, and the run of each."""

import hashlib
import itertools
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from itertools import takewhile
from pathlib import Path
from typing import Any

from nmt.config import Command, ExperimentConfig, compose, groups, in_words, nearest, parse, set_text
from nmt.errors import NMTError

MOST_POINTS = 10_000


@dataclass
class Point:
    """One training of a sweep."""

    values: dict[str, str]
    """Swept key -> value."""
    words: list[str]
    """The arguments of `nmt train` that train this point alone."""
    config: ExperimentConfig
    run: Path
    state: str = "not started"
    """not started, done, stopped or failed."""

    def __str__(self) -> str:
        return " ".join(f"{key}={value}" for key, value in self.values.items())


def plan(command: Command, overrides: list[str], config_dir: Path | None = None) -> list[Point]:
    """Every point of a sweep; NMTError for a mistake in any of them."""
    combinations = expand(overrides, config_dir)
    configs = [compose(command, words, config_dir) for _, words in combinations]
    swept = combinations[0][0]
    if not swept:
        raise NMTError("--sweep: no key has several values; write KEY=A,B or KEY=range(1,4)")
    for key in {"name", "run"}.intersection(swept):
        raise NMTError(f"{key}: a sweep gives each point a run of its own; sweep another key, such as seed")
    folder = common_folder([config.run for config in configs])
    option = ["--config-dir", str(config_dir)] if config_dir else []
    points: dict[str, Point] = {}
    for (values, words), config in zip(combinations, configs, strict=True):
        run = folder / folder_name(values)
        alone = [*(word for word in words if not word.startswith("run=")), set_text("run", str(run)), *option]
        point = Point(values, alone, config, run)
        if points.setdefault(run.name.casefold(), point) is not point:
            raise NMTError(f"--sweep: {point} occurs twice")
    return list(points.values())


def expand(overrides: list[str], config_dir: Path | None = None) -> list[tuple[dict[str, str], list[str]]]:
    """The value of each swept key, and all overrides, of each point; the last key's values change first.

    An override without several values, or that cannot be parsed, stays as it is.
    """
    parsed = [parse(text) for text in overrides]
    choices: list[list[tuple[str | None, str]]] = []
    for index, (text, override) in enumerate(zip(overrides, parsed, strict=True)):
        if override is None or not override.is_sweep_override():
            choices.append([(None, text)])
            continue
        key = override.key_or_group
        for later in parsed[index + 1 :]:
            if later and later.key_or_group == key:
                raise NMTError(f"{text}: {later.input_line} after it replaces it; leave one out")
        values = swept_values(text, config_dir)
        choices.append([(key, f"{override.get_key_element()}={value}") for value in values])
    if math.prod(map(len, choices)) > MOST_POINTS:
        raise NMTError(f"--sweep: {math.prod(map(len, choices)):,} points, more than {MOST_POINTS:,}")
    return [
        ({key: value_of(word) for key, word in point if key}, [word for _, word in point])
        for point in itertools.product(*choices)
    ]


def value_of(text: str) -> str:
    """The value of an override, without the quotes and escapes of Hydra's grammar."""
    override = parse(text)
    assert override is not None
    return in_words(override.value())


def swept_values(text: str, config_dir: Path | None) -> list[str]:
    """The values of a sweep, as written after KEY=; NMTError if there are none, or they have no order or end."""
    override = parse(text)
    assert override is not None
    sweep: Any = override.value()
    key, options = override.key_or_group, groups(config_dir)
    kind = type(sweep).__name__  # a class of Hydra
    if kind == "IntervalSweep":
        raise NMTError(f"{text}: an interval is not a list of values; write range(START,STOP,STEP), or the values")
    if getattr(sweep, "shuffle", False):
        raise NMTError(f"{text}: a sweep has a fixed order; leave shuffle out")
    if kind == "RangeSweep":
        # In decimals: the floating-point numbers from 0.1 to 0.4 are 0.1, 0.2, 0.30000000000000004 and 0.4.
        start, stop, step = (Decimal(str(number)) for number in (sweep.start, sweep.stop, sweep.step))
        count = math.ceil((stop - start) / step) if step else 0
        if count > MOST_POINTS:
            raise NMTError(f"{text}: {count:,} values, more than {MOST_POINTS:,}")
        values = [str(start + index * step) for index in range(count)]
    elif kind == "Glob":
        if key not in options:
            raise NMTError(f"{text}: glob is for groups; {nearest(key, list(options))}")
        values = sweep.filter(options[key])
    else:
        values = list(override.sweep_string_iterator())
    if not values:
        raise NMTError(f"{text}: no value at all")
    return values


def common_folder(runs: list[str]) -> Path:
    """The folder of a sweep: the run that its points would share, or the common beginning of their names."""
    parts = [re.split(r"([-/])", str(Path(run))) for run in runs]
    shared = takewhile(lambda column: len(set(column)) == 1, zip(*parts, strict=False))
    common = "".join(column[0] for column in shared).rstrip("-")
    return Path(common) / "sweep" if common == "" or common.endswith("/") else Path(common)


def folder_name(values: dict[str, str]) -> str:
    """A name such as model.heads-4+seed-1, which is safe in file systems, in shells and in Hydra's grammar."""
    return shortened("+".join(f"{key}-{shortened(value, 40)}" for key, value in values.items()), 200, "+")


def shortened(text: str, length: int, also: str = "") -> str:
    """Replace unsafe characters and cut a long text; a hash keeps changed texts distinct."""
    safe = re.sub(rf"[^A-Za-z0-9._{also}-]+", "_", text)[:length]
    return safe if safe == text else f"{safe}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
