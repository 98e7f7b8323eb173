"""Numbers, durations and configuration values as readable text."""

import math
from typing import Any

import yaml


def number(value: float) -> str:
    """An integer in full, any other number with about four significant digits: 12,346, 3.142, 0.07 or 1.64e+14."""
    return f"{value:,.0f}" if isinstance(value, int) or 1000 <= abs(value) < 1e9 else f"{value:.4g}"


def duration(seconds: float) -> str:
    """A duration such as 42 s, 12 min, 3 h 05 min or 2 d 04 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours < 48 else f"{hours // 24} d {hours % 24:02} h"


def in_words(value: Any) -> str:
    """The value of a configuration key, or a list of them, as YAML on one line."""
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=math.inf)
    return text.removesuffix("\n...\n").strip()
