"""Charts of a training run: curves over updates, with round ticks and the best point marked."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

LEFT = 52
RIGHT = 390
TOP = 10
BOTTOM = 176
"""The edges of the plot within its chart, in pixels."""
MAX_POINTS = 1000
"""Points to draw of a curve, so that the page of a long run stays small."""
FENCE = 5
"""Values further than this many interquartile ranges from the quartiles are off the scale."""
Point = tuple[int, float]  # update, value
Place = tuple[float, float]  # x, y
Curves = dict[str, list[Point]]  # "training" and "validation" -> points


class Chart(NamedTuple):
    """The content of a chart."""

    title: str
    unit: str
    training: str  # columns of metrics.csv; "" for none
    validation: str = ""
    choose_best: Callable[..., Point] | None = None  # the validation point to mark
    by: str = "update"  # what the points are at


SKIPPED = Chart("Skipped updates", "", "skipped")
CHARTS = (
    Chart("Loss", "nats per target token", "loss", "valid_loss", min),
    Chart("Perplexity", "", "perplexity", "valid_perplexity", min),
    Chart("BLEU", "", "", "valid_bleu", max),
    Chart("F1", "", "", "valid_f1", max),
    Chart("Learning rate", "", "learning_rate"),
    Chart("Gradient norm", "", "gradient_norm"),
    Chart("Throughput", "target tokens per second", "tokens_per_second"),
    Chart("Padding", "share of all positions", "padding"),
    Chart("MFU", "model FLOPs, share of the devices' peak", "mfu"),
    SKIPPED,
)


@dataclass
class Drawing:
    """A chart with the positions of everything that is drawn in it."""

    chart: Chart
    curves: Curves
    lines: dict[str, list[Place]]
    """The positions of each curve's points, thinned out to MAX_POINTS."""
    columns: list[tuple[float, float]]
    """x and update of each tick."""
    rows: list[tuple[float, float]]
    """y and value of each tick."""
    best: Point | None
    best_place: Place | None
    stray: int
    """The number of values that are off the scale."""


@dataclass
class Scale:
    """Places points in the plot."""

    last_update: int
    low: float
    high: float

    def place(self, update: float, value: float) -> Place:
        """The position of a point; a value off the scale is drawn at the edge."""
        # At the edge, a reader sees that there is a value, and `stray` counts them.
        value = min(max(value, self.low), self.high)
        share = (value - self.low) / (self.high - self.low)
        x = LEFT + (RIGHT - LEFT) * update / self.last_update
        y = BOTTOM - (BOTTOM - TOP) * share
        return round(x, 1), round(y, 1)


def round_ticks(low: float, high: float, intervals: int = 5) -> list[float]:
    """Evenly spaced round numbers that cover `low` to `high`."""
    # The round distance lies between this power of ten and ten times as much.
    power = 10.0 ** math.floor(math.log10((high - low) / intervals))
    steps = [factor * power for factor in (1, 2, 5, 10, 20)]
    step = next(step for step in steps if step * intervals >= high - low)
    first = math.floor(low / step)
    last = math.ceil(high / step)
    return [step * number for number in range(first, last + 1)]


def finite_curves(curves: Curves) -> Curves:
    """The curves without values that are not finite, and without empty curves."""
    finite = {}
    for kind, points in curves.items():
        points = [(update, value) for update, value in points if math.isfinite(value)]
        if points:
            finite[kind] = points
    return finite


def value_ticks(values: list[float]) -> list[float]:
    """Ticks that cover zero and the values, without outliers.

    One bad value must not hide the others.
    """
    # Quartiles do not depend on outliers, unlike mean and deviation. If half of the values are
    # equal, there is no spread to compare with, and all are shown.
    lower, upper = np.percentile(values, [25, 75])
    fence = FENCE * (upper - lower) or math.inf
    shown = [value for value in values if lower - fence <= value <= upper + fence]
    # All charts cover zero, so that small changes do not look large.
    low = min(0.0, *shown)
    high = max(0.0, *shown)
    return round_ticks(low, high if high > low else 1.0)


def best_point(chart: Chart, curves: Curves) -> Point | None:
    """The best validation; the first one in a tie, which is what min and max return."""
    if not chart.choose_best or "validation" not in curves:
        return None
    return chart.choose_best(curves["validation"], key=lambda point: point[1])


def draw(chart: Chart, curves: Curves, last_update: int) -> Drawing | None:
    """The drawing of a chart; None if no value is finite."""
    # A run that diverges records NaN, which has no place on a scale.
    curves = finite_curves(curves)
    # Positions are divided by it.
    last_update = max(last_update, 1)
    if not curves:
        return None
    values = []
    for points in curves.values():
        values += [value for _, value in points]
    ticks = value_ticks(values)
    scale = Scale(last_update, ticks[0], ticks[-1])
    lines = {}
    for kind, points in curves.items():
        # Every n-th point; the first one always stays, and the best one is marked apart.
        drawn = points[:: len(points) // MAX_POINTS + 1]
        lines[kind] = [scale.place(update, value) for update, value in drawn]
    columns = []
    for update in round_ticks(0, last_update, 4):
        if update <= last_update:
            x, _ = scale.place(update, 0)
            columns.append((x, update))
    rows = []
    for value in ticks:
        _, y = scale.place(0, value)
        rows.append((y, value))
    best = best_point(chart, curves)
    return Drawing(
        chart=chart,
        curves=curves,
        lines=lines,
        columns=columns,
        rows=rows,
        best=best,
        best_place=scale.place(*best) if best else None,
        # Stated on the page, because these are drawn at the edge.
        stray=sum(not scale.low <= value <= scale.high for value in values),
    )
