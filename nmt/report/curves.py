"""Curves by update as SVG. The style sheet colours them, and shows under the pointer the values at that update."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from nmt.report.markup import Markup, join, tag
from nmt.report.scales import Scale, compact, linear_ticks, log_ticks, number, thin

WIDTH, HEIGHT = 400, 216
LEFT, RIGHT, TOP, BOTTOM = 52, 390, 24, 190
DRAWN = 600
"""Points of a curve at most."""
STOPS = 100
"""Updates at which the pointer finds values, about."""

Points = list[tuple[int, float]]


@dataclass
class Series:
    """One curve: values by update. What was measured seldom is drawn with dots."""

    name: str
    points: Points
    kind: Literal["training", "validation"] = "training"


@dataclass
class Chart:
    """Curves that share axes."""

    title: str
    unit: str
    series: list[Series]
    log: bool = False
    from_zero: bool = False
    percent: bool = False
    best: Literal["lowest", "highest"] | None = None
    """Which point of the validation is marked."""

    def show(self, value: float) -> str:
        return f"{number(round(100 * value, 2))}%" if self.percent else number(value)


def drawable(chart: Chart) -> Chart:
    """The chart without what cannot be drawn: values that are not finite, on log axes not positive; empty curves."""
    series = [
        Series(s.name, [p for p in s.points if math.isfinite(p[1]) and (p[1] > 0 or not chart.log)], s.kind)
        for s in chart.series
    ]
    return Chart(**{**vars(chart), "series": [s for s in series if s.points]})


def vertical(chart: Chart) -> tuple[Scale, list[float]]:
    """The scale of a chart's values, and its ticks."""
    values = [value for series in chart.series for _, value in series.points]
    low, high = min(values), max(values)
    if chart.log:
        low, high = low / 1.08, high * 1.08
        return Scale(low, high, BOTTOM, TOP, log=True), log_ticks(low, high)
    if chart.from_zero:
        low, high = min(low, 0.0), high or 1.0
    ticks = linear_ticks(low, high)
    return Scale(ticks[0], ticks[-1], BOTTOM, TOP), ticks


def tick_label(chart: Chart, tick: float) -> str:
    return f"{number(100 * tick)}%" if chart.percent else compact(tick)


def axes(chart: Chart, x: Scale, y: Scale, ticks: list[float]) -> Markup:
    """Horizontal grid lines with the values' labels, and updates below."""
    grid = "".join(f"M{LEFT} {y(tick):.1f}H{RIGHT}" for tick in ticks)
    parts = [tag("path", class_="grid", d=grid)]
    for tick in ticks:
        parts.append(tag("text", tick_label(chart, tick), x=LEFT - 6, y=f"{y(tick) + 4:.1f}", text_anchor="end"))
    for tick in linear_ticks(x.low, x.high, 4):
        if x.low <= tick <= x.high:
            parts.append(tag("text", compact(tick), x=f"{x(tick):.1f}", y=HEIGHT - 8, text_anchor="middle"))
    parts.append(tag("text", "update", x=LEFT - 12, y=HEIGHT - 8, text_anchor="end"))
    return join(*parts)


def curve(series: Series, x: Scale, y: Scale) -> Markup:
    """A curve's line, and dots where its points are few."""
    places = [(x(step), y(value)) for step, value in thin(series.points, DRAWN)]
    line = "M" + "L".join(f"{left:.1f} {top:.1f}" for left, top in places)
    parts = [tag("path", class_=f"line {series.kind}", d=line)]
    if len(places) == 1 or (series.kind == "validation" and len(places) <= 60):
        parts += [tag("circle", class_=f"dot {series.kind}", cx=f"{a:.1f}", cy=f"{b:.1f}", r=2) for a, b in places]
    return join(*parts)


def best_point(chart: Chart) -> tuple[int, float] | None:
    """The first of the best validation points."""
    points = [point for series in chart.series if series.kind == "validation" for point in series.points]
    if not points or not chart.best:
        return None
    choose = min if chart.best == "lowest" else max
    return choose(points, key=lambda point: point[1])


def stops(chart: Chart) -> list[int]:
    """Updates at which the pointer finds values: all those of validations, thinned ones of the rest."""
    chosen: set[int] = set()
    for series in chart.series:
        stride = math.ceil(len(series.points) / STOPS)
        chosen |= {step for step, _ in series.points[::-1][::stride]}
    return sorted(chosen)


def reading(chart: Chart, step: int, values: list[tuple[Series, float]]) -> Markup:
    """What is read at an update, in one line above the curves."""
    parts: list[object] = [f"update {step:,}"]
    for series, value in values:
        name = f"{series.name} " if len(chart.series) > 1 else ""
        parts += ["   ", tag("tspan", f"{name}{chart.show(value)}", class_=series.kind)]
    return tag("text", *parts, x=RIGHT, y=12, text_anchor="end", class_="reading")


def pointers(chart: Chart, x: Scale, y: Scale) -> Markup:
    """For each stop a strip that the pointer meets, with a hairline, dots and the values that appear then."""
    at = [(series, dict(series.points)) for series in chart.series]
    steps = stops(chart)
    places = [x(step) for step in steps]
    middles = [(a + b) / 2 for a, b in pairwise(places)]
    groups = []
    for step, place, left, right in zip(steps, places, [LEFT, *middles], [*middles, RIGHT], strict=True):
        values = [(series, points[step]) for series, points in at if step in points]
        dots = [
            tag("circle", class_=f"mark {series.kind}", cx=f"{place:.1f}", cy=f"{y(value):.1f}", r=3.5)
            for series, value in values
        ]
        hair = tag("path", class_="hair", d=f"M{place:.1f} {TOP}V{BOTTOM}")
        strip = tag("rect", x=f"{left:.1f}", y=TOP, width=f"{right - left:.1f}", height=BOTTOM - TOP)
        groups.append(tag("g", strip, hair, *dots, reading(chart, step, values), class_="stop"))
    return join(*groups)


def summary(chart: Chart) -> Markup:
    """What stands above the curves while nothing is pointed at: the best validation, or the last value."""
    best = best_point(chart)
    if best:
        words = f"best {chart.show(best[1])} at update {best[0]:,}"
    else:
        words = f"last {chart.show(chart.series[0].points[-1][1])}"
    return tag("text", words, x=RIGHT, y=12, text_anchor="end", class_="summary")


def draw_chart(chart: Chart, last_update: int) -> Markup:
    """A chart as SVG, over updates from 0 to `last_update`; empty where there is nothing to draw."""
    chart = drawable(chart)
    if not chart.series:
        return Markup()
    x = Scale(0, max(last_update, 1), LEFT, RIGHT)
    y, ticks = vertical(chart)
    parts = [axes(chart, x, y, ticks), *(curve(series, x, y) for series in chart.series), summary(chart)]
    best = best_point(chart)
    if best:
        parts.append(tag("circle", class_="best", cx=f"{x(best[0]):.1f}", cy=f"{y(best[1]):.1f}", r=5))
    parts.append(pointers(chart, x, y))
    said = ", ".join(f"{s.name} {chart.show(s.points[-1][1])} at update {s.points[-1][0]:,}" for s in chart.series)
    label = f"{chart.title} by update: {said}"
    return tag("svg", *parts, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=label)
