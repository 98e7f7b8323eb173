"""Sweeps: the points that overrides with several values stand for, in Hydra's grammar."""

import itertools
import math
from decimal import Decimal
from pathlib import Path

from hydra.core.override_parser.types import ChoiceSweep, Glob, IntervalSweep, Override, RangeSweep

from nmt.config.command import Command
from nmt.config.composition import command_groups, nearest, parse
from nmt.config.fields import in_words
from nmt.errors import NMTError

POINTS = 10_000
"""The largest number of points of a sweep."""


def expand(
    command: Command, overrides: list[str], config_dir: Path | None = None
) -> list[tuple[dict[str, str], list[str]]]:
    """The points of a sweep, the last key's values changing first: the value of each swept key, and all overrides.

    An override without several values, or that cannot be parsed, stays as it is. Raises NMTError for a sweep that is
    endless, shuffled or empty.
    """
    known_groups = command_groups(command, config_dir)
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
        values = swept_values(override, known_groups)
        choices.append([(key, f"{override.get_key_element()}={value}") for value in values])
    if math.prod(map(len, choices)) > POINTS:
        raise NMTError(f"--sweep: {math.prod(map(len, choices)):,} points, more than {POINTS:,}")
    return [
        ({key: shown_value(word) for key, word in point if key}, [word for _, word in point])
        for point in itertools.product(*choices)
    ]


def swept_values(override: Override, known_groups: dict[str, tuple[str, list[str]]]) -> list[str]:
    """The values of a sweep, as written after KEY=; NMTError if there are none."""
    text, key, sweep = override.input_line, override.key_or_group, override.value()
    if isinstance(sweep, IntervalSweep):
        raise NMTError(f"{text}: an interval is not a list of values; write range(START,STOP,STEP), or the values")
    if isinstance(sweep, ChoiceSweep | RangeSweep) and sweep.shuffle:
        raise NMTError(f"{text}: a sweep has a fixed order; leave shuffle out")
    if isinstance(sweep, RangeSweep):
        values = range_values(sweep)
    elif isinstance(sweep, Glob):
        if key not in known_groups:
            raise NMTError(f"{text}: glob is for groups; {nearest(key, list(known_groups))}")
        values = sweep.filter(known_groups[key][1])
    else:
        values = list(override.sweep_string_iterator())
    if not values:
        raise NMTError(f"{text}: no value at all")
    return values


def range_values(sweep: RangeSweep) -> list[str]:
    """The values from start to before stop; Hydra's own for 0.1 to 0.4 are 0.1, 0.2, 0.30000000000000004 and 0.4."""
    start, stop, step = (Decimal(str(number)) for number in (sweep.start, sweep.stop, sweep.step))
    count = math.ceil((stop - start) / step) if step else 0
    if count > POINTS:
        raise NMTError(f"{sweep.start} to {sweep.stop} by {sweep.step}: {count:,} values, more than {POINTS:,}")
    return [str(start + index * step) for index in range(count)]


def shown_value(text: str) -> str:
    """The value of an override, without the quotes and escapes of Hydra's grammar."""
    override = parse(text)
    assert override is not None
    return in_words(override.value())
