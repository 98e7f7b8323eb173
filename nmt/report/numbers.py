"""Numbers, durations and configuration values as people write them."""

import math
from typing import Any

import yaml

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float) -> str:
    """A value with four significant digits: 12,345, 3.142, 0.07 or 4.9·10⁻⁴."""
    if value == 0 or not math.isfinite(value):
        return f"{value:.0f}"
    if 1e-3 <= abs(value) < 1e7:
        digits = max(0, 3 - math.floor(math.log10(abs(value))))
        text = f"{value:,.{digits}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}·10{str(int(exponent)).translate(SUPERSCRIPTS)}"


def compact(value: float) -> str:
    """A value in few letters: 250, 2,500, 25k, 2.5M, 0.25, 3·10⁻⁵."""
    for size, divisor, suffix in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if size <= abs(value) < 1e12:
            return number(value / divisor) + suffix
    return number(value)


def duration(seconds: float) -> str:
    """42 s, 12 min, 3 h 05 min, 2 d 04 h."""
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
