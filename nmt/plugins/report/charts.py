"""Curves as SVG by matplotlib. Colors are variables of the style sheet, so that dark pages can have others.

A chart has WIDTH x HEIGHT units and scales with the page. Its text stays text, in the font of the page.
"""

import io
import math
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import matplotlib
import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator

from nmt.plugins.report.pages import number

matplotlib.rcdefaults()  # a matplotlibrc in the working directory may be a stranger's
WIDTH, HEIGHT = 400, 216
LEFT, RIGHT, TOP, BOTTOM = 52, 390, 24, 190
"""The edges of the plot within the chart."""
PLOT = {"width": WIDTH, "height": HEIGHT, "left": LEFT, "right": RIGHT, "top": TOP, "bottom": BOTTOM}
FENCE = 5
"""Values farther from the quartiles than so many interquartile ranges are off the scale."""
MAX_STOPS = 100
"""About the number of updates at which the pointer shows values."""
MAX_DOTS = 60
"""A curve of at most so many points is drawn with dots."""
NAME_HEIGHT = 11
"""Least distance between the names of two curves."""
VARIABLES = ("ground", "quiet", "grid", "training", "validation", "averaged")
"""Colors of the style sheet. matplotlib gets a placeholder for each, which is replaced in the SVG."""
COLORS = {name: f"#00000{index}" for index, name in enumerate(VARIABLES, 1)}  # matplotlib omits black, #000000

Point = tuple[int, float]
Curves = dict[str, list[Point]]
"""Points of training, validation, and the averaged model, which is drawn as a single mark; and of sources."""


@dataclass(frozen=True)
class Chart:
    """Curves on the same axes."""

    title: str
    unit: str
    columns: tuple[str, str]
    """Columns of metrics.csv for training and validation; "" for none."""
    metric: str = ""
    """The metric by which the averaged model is drawn here; "" for none."""
    log: bool = False
    from_zero: bool = True
    percent: bool = False
    best: Literal["", "lowest", "highest"] = ""
    """The validation point to mark."""


CHARTS = (
    Chart("Loss", "nats per target token", ("loss", "valid_loss"), from_zero=False, best="lowest"),
    Chart("Perplexity", "log axis", ("perplexity", "valid_perplexity"), log=True, best="lowest"),
    Chart("BLEU", "", ("", "valid_bleu"), metric="bleu", best="highest"),
    Chart("F1", "", ("", "valid_f1"), metric="brackets", best="highest"),
    Chart("Sources", "percent of the sentences", ("", "share"), percent=True),
    Chart("Learning rate", "", ("learning_rate", "")),
    Chart("Gradient norm", "log axis", ("gradient_norm", ""), log=True),
    Chart("Throughput", "target tokens per second", ("tokens_per_second", "")),
    Chart("Padding", "percent of all positions", ("padding", ""), percent=True),
    Chart("MFU", "model FLOPs, percent of the devices' peak", ("mfu", ""), percent=True),
    Chart("Skipped updates", "", ("skipped", "")),
)


@dataclass
class Drawing:
    """A chart as SVG, with the texts above it."""

    chart: Chart
    curves: Curves
    svg: Markup
    best: Point | None
    stray: int
    """The number of values off the scale."""
    stops: list[tuple[float, float, float, str]]
    """Strips under the pointer: left edge, right edge, place of the update, and its values as text."""


def to_svg(figure: Figure, title: str) -> Markup:
    """An SVG element for an HTML page: no fixed size, the style sheet's colors, and only ids that are used."""
    buffer = io.StringIO()
    # The salt makes ids reproducible, and different between the charts of a page.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": title}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(
        r' id="[\w.]+_\d+"| (width|height)="[^"]*pt"| transform="rotate\(-0[^"]*"|font-family: [^;]*; ', "", svg
    )
    svg = re.sub(r'([" ]-?\d+\.\d)\d+', r"\1", re.sub(r"\s+", " ", svg))  # a tenth of a unit is enough
    return Markup(re.sub(r"#00000([1-6])", lambda match: f"var(--{VARIABLES[int(match[1]) - 1]})", svg))


def linear_ticks(low: float, high: float, intervals: int = 5) -> list[float]:
    """Round numbers at equal distances, which include `low` and `high`."""
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        margin = abs(low) / 10 or 1.0
        low, high = low - margin, high + margin
    return [float(tick) for tick in MaxNLocator(intervals, steps=[1, 2, 5, 10]).tick_values(low, high)]


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers between `low` and `high`, both positive: powers of ten, with others between if these are few."""
    factors = (1.0,) if high > 300 * low else (1.0, 2.0, 5.0)
    ticks = [float(tick) for tick in LogLocator(subs=factors, numticks=7).tick_values(low, high) if low <= tick <= high]
    return ticks if 3 <= len(ticks) <= 7 else [tick for tick in linear_ticks(low, high) if low <= tick <= high]


def scale_values(axes: Axes, chart: Chart, values: list[float]) -> None:
    """Set limits and ticks by the values without outliers, so that one bad value does not hide the others."""
    scaled = np.log(values) if chart.log else np.array(values)
    lower, upper = np.percentile(scaled, [25, 75])
    fence = FENCE * (upper - lower) or math.inf
    typical = np.array(values)[(scaled >= lower - fence) & (scaled <= upper + fence)]
    low, high = float(typical.min()), float(typical.max())
    if chart.log:
        axes.set_yscale("log")
        low, high = low / 1.08, high * 1.08
        ticks = log_ticks(low, high)
    else:
        low, high = (min(low, 0.0), max(high, 0.0) or 1.0) if chart.from_zero else (low, high)
        ticks = linear_ticks(low, high)
        low, high = ticks[0], ticks[-1]
    axes.set_ylim(low, high)
    axes.set_yticks(ticks, [number(tick) for tick in ticks])
    axes.set_yticks([], minor=True)


def draw_curve(axes: Axes, kind: str, points: list[Point], index: int) -> int:
    """Draw a curve, with dots if it has few points, and a triangle at the edge for each value off the scale.

    The curve of a source has dashes, by its `index` among the curves. Returns the number of values off the scale.
    """
    steps, values = zip(*points, strict=True)
    if kind not in COLORS:
        axes.plot(steps, values, color=COLORS["validation"], linewidth=1.2, linestyle=(0, (1 + index, 2)))
        return 0
    marks: dict[str, Any] = {"color": COLORS[kind], "linestyle": "", "markeredgewidth": 0}
    if kind == "averaged":
        axes.plot(steps, values, marker="D", markersize=6, clip_on=False, **marks)
    else:
        axes.plot(steps, values, color=COLORS[kind], linewidth=1.6)
        if len(steps) == 1 or (kind == "validation" and len(steps) <= MAX_DOTS):
            axes.plot(steps, values, marker="o", markersize=4, **marks)
    low, high = axes.get_ylim()
    rounding = 1e-9 * (high - low)
    stray = [(step, value) for step, value in points if not low - rounding <= value <= high + rounding]
    for step, value in stray:
        edge, marker = (low, "v") if value < low else (high, "^")
        axes.plot(step, edge, marker=marker, markersize=5, clip_on=False, **marks)
    return len(stray)


def name_curves(axes: Axes, curves: Curves) -> None:
    """Write the name of each source at the end of its curve, and none above another."""
    ends = {name: points[-1] for name, points in curves.items() if name not in COLORS}
    before = -math.inf
    for name, end in sorted(ends.items(), key=lambda item: item[1][1]):
        place = axes.transData.transform(end)[1] + 2
        shift = max(before + NAME_HEIGHT - place, 0.0) + 2
        before = place + shift - 2
        text = axes.annotate(name, end, (0, shift), textcoords="offset points", ha="right", va="bottom")
        text.set(color=COLORS["quiet"], fontsize=10)


def hover_stops(curves: Curves, last_update: int) -> list[tuple[float, float, float, str]]:
    """Adjacent strips at the updates of all validations, and at some others."""
    shown = [points[:: -math.ceil(len(points) / MAX_STOPS)] for points in curves.values()]
    steps = sorted({step for points in shown for step, _ in points})
    xs = [LEFT + (RIGHT - LEFT) * step / last_update for step in steps]
    middles = [(a + b) / 2 for a, b in pairwise(xs)]
    by_step = [(kind if len(curves) > 1 else "", dict(points)) for kind, points in curves.items()]
    stops = []
    for step, left, right, x in zip(steps, [LEFT, *middles], [*middles, RIGHT], xs, strict=True):
        values = [f"{kind} {number(values[step])}".strip() for kind, values in by_step if step in values]
        stops.append((left, right, x, "   ".join([f"update {step:,}", *values])))
    return stops


def draw(chart: Chart, curves: Curves, last_update: int) -> Drawing | None:
    """Draw a chart over updates from 0 to `last_update`; None if there is nothing to draw.

    Values that are not finite are left out, as are those that are not positive on a log axis.
    """
    finite = {k: [p for p in ps if math.isfinite(p[1]) and (p[1] > 0 or not chart.log)] for k, ps in curves.items()}
    curves = {kind: points for kind, points in finite.items() if points}
    if not curves:
        return None
    figure = Figure(figsize=(WIDTH / 72, HEIGHT / 72), dpi=72)
    size = ((RIGHT - LEFT) / WIDTH, (BOTTOM - TOP) / HEIGHT)
    axes = figure.add_axes((LEFT / WIDTH, 1 - BOTTOM / HEIGHT, *size), frameon=False)
    axes.tick_params(which="both", length=0, pad=6, labelcolor=COLORS["quiet"], labelsize=11)
    axes.grid(axis="y", color=COLORS["grid"], linewidth=1)
    axes.set_axisbelow(True)
    last_update = max(last_update, 1)
    axes.set_xlim(0, last_update)
    ticks = [tick for tick in linear_ticks(0, last_update, 4) if tick <= last_update]
    axes.set_xticks(ticks, [number(tick) for tick in ticks])
    scale_values(axes, chart, [value for points in curves.values() for _, value in points])
    stray = sum(draw_curve(axes, kind, points, index) for index, (kind, points) in enumerate(curves.items()))
    name_curves(axes, curves)
    best = None
    if chart.best and "validation" in curves:
        choose = min if chart.best == "lowest" else max
        best = choose(curves["validation"], key=lambda point: point[1])  # the first among equals
        axes.plot(*best, marker="o", color=COLORS["ground"], mec=COLORS["validation"], markersize=9, mew=2)
    return Drawing(chart, curves, to_svg(figure, chart.title), best, stray, hover_stops(curves, last_update))
