"""Curves as SVG by matplotlib: text stays text, and colors are variables of the page's style sheet."""

import io
import math
import re
from dataclasses import dataclass
from typing import Any, Literal

import matplotlib
import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nmt.plugins.report.pages import number

matplotlib.rcdefaults()  # a matplotlibrc in the working directory may be a stranger's
WIDTH, HEIGHT = 400, 216
LEFT, RIGHT, TOP, BOTTOM = 52, 390, 24, 190  # the edges of the plot within the chart
VARIABLES = ("ground", "quiet", "grid", "training", "validation")
"""Colors of the style sheet. matplotlib draws placeholders, which are replaced in the SVG."""
COLORS = {name: f"#00000{index}" for index, name in enumerate(VARIABLES, 1)}  # matplotlib omits black, #000000
Curves = dict[str, list[tuple[int, float]]]
"""Points of training and validation."""


@dataclass(frozen=True)
class Chart:
    """Curves on the same axes."""

    title: str
    unit: str
    columns: tuple[str, str]  # of metrics.csv, for training and validation; "" for none
    best: Literal["", "lowest", "highest"] = ""  # the validation point to mark
    from_zero: bool = True
    factor: int = 1


CHARTS = (
    Chart("Loss", "nats per target token", ("loss", "valid_loss"), "lowest", from_zero=False),
    Chart("Perplexity", "", ("perplexity", "valid_perplexity"), "lowest"),
    Chart("BLEU", "", ("", "valid_bleu"), "highest"),
    Chart("F1", "", ("", "valid_f1"), "highest"),
    Chart("Learning rate", "", ("learning_rate", "")),
    Chart("Gradient norm", "", ("gradient_norm", "")),
    Chart("Throughput", "target tokens per second", ("tokens_per_second", "")),
    Chart("Padding", "percent of all positions", ("padding", ""), factor=100),
    Chart("MFU", "model FLOPs, percent of the devices' peak", ("mfu", ""), factor=100),
    Chart("Skipped updates", "", ("skipped", "")),
)


def to_svg(figure: Figure, title: str) -> Markup:
    """An SVG element without a fixed size, with the style sheet's colors and only the ids that it uses."""
    buffer = io.StringIO()
    # The salt makes ids reproducible, and different between the charts of a page.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": title}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    svg = buffer.getvalue()
    svg = re.sub(r"^.*?(?=<svg)|<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", svg, flags=re.DOTALL)
    unused = r' id="[\w.]+_\d+"| (width|height)="[^"]*pt"| transform="rotate\(-0[^"]*"|font-family: [^;]*; '
    svg = re.sub(unused, "", svg)
    svg = re.sub(r'([" ]-?\d+\.\d)\d+', r"\1", re.sub(r"\s+", " ", svg))  # a tenth of a unit is enough
    return Markup(re.sub(r"#00000([1-5])", lambda match: f"var(--{VARIABLES[int(match[1]) - 1]})", svg))


def round_ticks(low: float, high: float, intervals: int = 5) -> list[float]:
    """Evenly spaced round numbers that cover `low` to `high`."""
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        margin = abs(low) / 10 or 1.0
        low, high = low - margin, high + margin
    return [float(tick) for tick in MaxNLocator(intervals, steps=[1, 2, 5, 10]).tick_values(low, high)]


def draw(chart: Chart, curves: Curves, last_update: int) -> dict[str, Any] | None:
    """The SVG, the best point, and the number of values off the scale; None without a finite value."""
    finite = {kind: [point for point in points if math.isfinite(point[1])] for kind, points in curves.items()}
    curves, last_update = {kind: points for kind, points in finite.items() if points}, max(last_update, 1)
    if not curves:
        return None
    figure = Figure(figsize=(WIDTH / 72, HEIGHT / 72), dpi=72)
    size = ((RIGHT - LEFT) / WIDTH, (BOTTOM - TOP) / HEIGHT)
    axes = figure.add_axes((LEFT / WIDTH, 1 - BOTTOM / HEIGHT, *size), frameon=False)
    axes.tick_params(which="both", length=0, pad=6, labelcolor=COLORS["quiet"], labelsize=11)
    axes.grid(axis="y", color=COLORS["grid"], linewidth=1)
    axes.set_axisbelow(True)
    axes.set_xlim(0, last_update)
    ticks = [tick for tick in round_ticks(0, last_update, 4) if tick <= last_update]
    axes.set_xticks(ticks, [number(tick) for tick in ticks])
    values = [value for points in curves.values() for _, value in points]
    lower, upper = np.percentile(values, [25, 75])
    fence = 5 * (upper - lower) or math.inf  # so that one bad value does not hide the others
    typical = [value for value in values if lower - fence <= value <= upper + fence]
    low, high = min(typical), max(typical)
    ticks = round_ticks(min(low, 0.0), max(high, 0.0) or 1.0) if chart.from_zero else round_ticks(low, high)
    axes.set_ylim(ticks[0], ticks[-1])
    axes.set_yticks(ticks, [number(tick) for tick in ticks])
    for kind, points in curves.items():
        marker = "o" if len(points) == 1 or (kind == "validation" and len(points) <= 60) else ""
        axes.plot(*zip(*points, strict=True), color=COLORS[kind], linewidth=1.6, marker=marker, markersize=4, mew=0)
    best = None
    if chart.best and "validation" in curves:
        choose = min if chart.best == "lowest" else max
        best = choose(curves["validation"], key=lambda point: point[1])  # the first among equals
        axes.plot(*best, marker="o", color=COLORS["ground"], mec=COLORS["validation"], markersize=9, mew=2)
    svg, stray = to_svg(figure, chart.title), sum(not ticks[0] <= value <= ticks[-1] for value in values)
    return {"chart": chart, "curves": curves, "svg": svg, "best": best, "stray": stray}
