"""Numbers and configuration values as people write them."""

import math
from typing import Any

import yaml


def number(value: float) -> str:
    """A whole number as it is, another with about four significant digits: 12,346, 3.142, 0.07 or 1.64e+14."""
    return f"{value:,.0f}" if isinstance(value, int) or 1000 <= abs(value) < 1e9 else f"{value:.4g}"


def in_words(value: Any) -> str:
    """The value of a configuration key, or a list of them, as YAML on one line."""
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=math.inf)
    return text.removesuffix("\n...\n").strip()
