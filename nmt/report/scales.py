"""From numbers to places on a drawing: round ticks, their labels, linear and logarithmic scales."""

import math
from dataclasses import dataclass

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def round_step(span: float, most: int) -> float:
    """The smallest of 1, 2 or 5 times a power of ten that `span` holds at most `most` times."""
    power = 10.0 ** math.floor(math.log10(span / most))
    return next(factor * power for factor in (1, 2, 5, 10, 20) if span / (factor * power) <= most * (1 + 1e-9))


def linear_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers at equal distances, in at most `most` intervals, the outer ones at or beyond `low` and `high`."""
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        low, high = low - (abs(low) or 1) / 10, high + (abs(high) or 1) / 10
    step = round_step(high - low, most)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    digits = max(0, -math.floor(math.log10(step)))
    return [round(number * step, digits) for number in range(first, last + 1)]


def log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers between `low` and `high`, both positive: powers of ten, or more of them where that gives few."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    if len(decades) - 2 > most:
        stride = math.ceil(len(decades) / most)
        return [10.0**decade for decade in decades[::stride] if low <= 10.0**decade <= high]
    for factors in ((1, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        ticks = [factor * 10.0**decade for decade in decades for factor in factors]
        within = [tick for tick in ticks if low <= tick <= high]
        if 3 <= len(within) <= most:
            return within
    return [tick for tick in linear_ticks(low, high, most) if low <= tick <= high]


@dataclass
class Scale:
    """Values from `low` to `high` are drawn from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high = self.low, self.high
        if self.log:
            value, low, high = math.log(value), math.log(low), math.log(high)
        return self.start + (value - low) / (high - low) * (self.end - self.start)


def number(value: float) -> str:
    """A value with four significant digits, as it is read: 12,345, 3.142, 0.07 or 4.9·10⁻⁴."""
    if value == 0 or not math.isfinite(value):
        return f"{value:.0f}"
    if 1e-3 <= abs(value) < 1e7:
        digits = max(0, 3 - math.floor(math.log10(abs(value))))
        text = f"{value:,.{digits}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}·10{str(int(exponent)).translate(SUPERSCRIPTS)}"


def compact(value: float) -> str:
    """A tick's label: 250, 2,500, 25k, 2.5M, 0.25, 3·10⁻⁵."""
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size <= abs(value) < 1e12:
            return number(value / (1e3 if suffix == "k" else size)) + suffix
    return number(value)


def thin(points: list[tuple[int, float]], most: int) -> list[tuple[int, float]]:
    """About `most` of the points: both ends, and the lowest and highest of each stretch, so that no peak is lost."""
    if len(points) <= most:
        return points
    size = math.ceil(len(points) / (most // 2))
    kept = []
    for start in range(0, len(points), size):
        stretch = points[start : start + size]
        ends = {min(stretch, key=lambda point: point[1]), max(stretch, key=lambda point: point[1])}
        kept += sorted(ends)
    return list(dict.fromkeys([points[0], *kept, points[-1]]))
