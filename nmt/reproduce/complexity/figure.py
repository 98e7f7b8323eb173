"""Table 1 as it was measured: time and memory of each layer type against n and d, on logarithmic axes, as one SVG.

It brings its colours along, for light and for dark surroundings, so that it can stand in a page or alone.
"""

from collections.abc import Iterable

from nmt.report.markup import Markup, join, tag
from nmt.report.scales import Scale, compact, log_ticks
from nmt.reproduce.complexity.exponents import Curve, curves, fit
from nmt.reproduce.complexity.layers import LAYERS, Layer
from nmt.reproduce.complexity.measuring import Measurements

WIDTH, HEIGHT = 470, 318
"""Of a panel."""
LEFT, RIGHT, TOP, BOTTOM = 52, 450, 30, 226
LEGEND, LINE, COLUMN = 264, 17, 220
"""Where the legend begins, the height of its lines and the width of its two columns."""

LIGHT = ("#1f6fd6", "#1f6fd6", "#c2410c", "#7c3aed", "#7c3aed", "#0b7a6f")
DARK = ("#6aa8f7", "#6aa8f7", "#f0883e", "#b794f6", "#b794f6", "#3fc7b5")
"""Of each layer type; those that are told of in the text alone have the colour of their kind, dashed."""

STYLE = """
.layers { --ground: #ffffff; --ink: #1b1f24; --quiet: #636c76; --grid: #eceef1; %s }
@media (prefers-color-scheme: dark) {
  .layers { --ground: #14171b; --ink: #dfe3e8; --quiet: #8d96a1; --grid: #22272d; %s }
}
.layers { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
.layers text { font-size: 11px; fill: var(--quiet); font-variant-numeric: tabular-nums; }
.layers .title { font-size: 13px; font-weight: 600; fill: var(--ink); }
.layers .name { fill: var(--ink); }
.layers path { fill: none; stroke: var(--grid); }
.layers .ground { fill: var(--ground); }
.layers .curve { stroke-width: 1.6; stroke-linejoin: round; stroke-linecap: round; }
.layers .aside { stroke-dasharray: 2 4; }
%s
"""

PANELS = (
    ("seconds", 1e3, "Time of a forward pass", "milliseconds"),
    ("memory", 1.0, "Memory of a forward pass", "bytes"),
)
"""Quantity, what its numbers are multiplied by, title, unit."""


def style() -> Markup:
    light, dark = (" ".join(f"--{i}: {colour};" for i, colour in enumerate(colours)) for colours in (LIGHT, DARK))
    rules = (f".layers path.of-{i} {{ stroke: var(--{i}); }} circle.of-{i} {{ fill: var(--{i}); }}" for i in range(6))
    return tag("style", Markup(STYLE % (light, dark, "\n".join(rules))))


def axes(x: Scale, y: Scale, axis: str, marks: Iterable[float]) -> Markup:
    """Grid lines at round values and at the sizes that were measured, with their labels."""
    ticks, sizes = log_ticks(y.low, y.high), list(marks)
    grid = "".join(f"M{LEFT} {y(tick):.1f}H{RIGHT}" for tick in ticks)
    grid += "".join(f"M{x(size):.1f} {TOP}V{BOTTOM}" for size in sizes)
    parts = [tag("path", d=grid)]
    for tick in ticks:
        parts.append(tag("text", compact(tick), x=LEFT - 6, y=f"{y(tick) + 4:.1f}", text_anchor="end"))
    for size in sizes:
        parts.append(tag("text", f"{size:,}", x=f"{x(size):.1f}", y=BOTTOM + 16, text_anchor="middle"))
    return join(*parts, tag("text", axis, x=LEFT - 22, y=BOTTOM + 16, text_anchor="end", class_="name"))


def classes(number: int) -> str:
    return f"curve of-{number}" + ("" if LAYERS[number].printed else " aside")


def draw_curve(number: int, curve: Curve, x: Scale, y: Scale) -> Markup:
    """A line from point to point, and the points."""
    places = [(f"{x(a):.1f}", f"{y(b):.1f}") for a, b in curve]
    dots = [tag("circle", class_=f"of-{number}", cx=a, cy=b, r=2.2) for a, b in places]
    return join(tag("path", class_=classes(number), d="M" + "L".join(f"{a} {b}" for a, b in places)), *dots)


def legend(lines: dict[int, Curve], axis: str) -> Markup:
    """Each layer's line and name, with the slope that was fitted to its upper half."""
    parts = []
    for place, (number, curve) in enumerate(lines.items()):
        left, top = LEFT + COLUMN * (place // 3) - 20, LEGEND + LINE * (place % 3)
        words = tag("tspan", LAYERS[number].name, class_="name"), f"  {axis}^{fit(curve).exponent:.2f}"
        parts.append(tag("path", class_=classes(number), d=f"M{left} {top - 4}h18"))
        parts.append(tag("text", *words, x=left + 24, y=top))
    return join(*parts)


def panel(found: Measurements, axis: str, kind: tuple[str, float, str, str]) -> Markup:
    """One quantity of all layers along one axis."""
    quantity, unit, title, unit_name = kind
    lines = {number: measured(found, layer, quantity, axis, unit) for number, layer in enumerate(LAYERS)}
    values = [value for curve in lines.values() for _, value in curve]
    sizes: tuple[int, ...] = getattr(found.grid, axis)
    x = Scale(min(sizes), max(sizes), LEFT + 8, RIGHT - 8, log=True)
    y = Scale(min(values) / 1.3, max(values) * 1.3, BOTTOM, TOP, log=True)
    other = f"d = {found.grid.at_d}" if axis == "n" else f"n = {found.grid.at_n}"
    said = f"  {unit_name}, {other}, {found.grid.batch} sequences"
    return join(
        tag("text", tag("tspan", title, class_="title"), said, x=LEFT - 20, y=16),
        axes(x, y, axis, sizes),
        *(draw_curve(number, curve, x, y) for number, curve in lines.items()),
        legend(lines, axis),
    )


def measured(found: Measurements, layer: Layer, quantity: str, axis: str, unit: float) -> Curve:
    return [(x, unit * value) for x, value in curves(found, layer, quantity)[axis]]


def draw_layers(found: Measurements) -> Markup:
    """The figure; of finished measurements."""
    parts = [
        tag("g", panel(found, axis, kind), transform=f"translate({WIDTH * column} {HEIGHT * row})")
        for row, kind in enumerate(PANELS)
        for column, axis in enumerate(("n", "d"))
    ]
    size = {"viewBox": f"0 0 {2 * WIDTH} {2 * HEIGHT}", "width": 2 * WIDTH, "height": 2 * HEIGHT}
    label = f"Time and memory of {len(LAYERS)} layer types against n and d, measured on {found.setup['device']}"
    ground = tag("rect", class_="ground", width="100%", height="100%")
    names = {"xmlns": "http://www.w3.org/2000/svg", "class_": "layers", "role": "img", "aria_label": label}
    return tag("svg", style(), ground, *parts, **names, **size)
