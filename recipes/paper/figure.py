"""Table 1 as it was measured: time and memory of each layer type against n and d, on logarithmic axes, as an SVG.

It brings its colours along, for light and for dark surroundings, so that it can stand in a page or alone.
"""

import io
import re
from typing import Any

import matplotlib
from complexity import curves, fit
from layers import LAYERS
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator
from plan import read_figures

COLOURS = {
    "--ink": ("#1b1f24", "#dfe3e8"),
    "--quiet": ("#636c76", "#8d96a1"),
    "--grid": ("#eceef1", "#22272d"),
    "--attention": ("#1f6fd6", "#6aa8f7"),
    "--recurrent": ("#c2410c", "#f0883e"),
    "--convolution": ("#7c3aed", "#b794f6"),
    "--restricted": ("#0b7a6f", "#3fc7b5"),
}
"""Variable of the SVG's style sheet -> on light and on dark ground."""
INK, QUIET, GRID, *KINDS = (light for light, _ in COLOURS.values())
OF_LAYER = [KINDS[number] for number in (0, 0, 1, 2, 2, 3)]
QUANTITIES = {
    "seconds": (1e3, "Time of a forward pass", "milliseconds"),
    "memory": (1.0, "Memory of a forward pass", "bytes"),
}
"""Quantity -> factor of its numbers, title, unit."""
STYLE = """<style>
.layers { %s }
@media (prefers-color-scheme: dark) { .layers { %s } }
.layers text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
</style>"""


def draw_layers(found: dict[str, Any]) -> str:
    """The figure of `complexity.py`'s measurements."""
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "nmt", "font.size": 9.5}):
        figure = Figure(figsize=(11, 8.4), layout="constrained", facecolor="none")
        figure.get_layout_engine().set(h_pad=0.15)
        panels = figure.subplots(2, 2)
        for row, quantity in zip(panels, QUANTITIES, strict=True):
            for panel, axis in zip(row, ("n", "d"), strict=True):
                draw_panel(panel, found, quantity, axis)
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return with_variables(file.getvalue(), f"Time and memory of layers, measured on {found['setup']['device']}")


def draw_panel(panel: Any, found: dict[str, Any], quantity: str, axis: str) -> None:
    """One quantity of all layers along one axis, each with the power that was fitted to its upper half."""
    factor, title, unit = QUANTITIES[quantity]
    grid, printed = found["setup"]["grid"], read_figures("table1")
    for layer, colour, paper in zip(LAYERS, OF_LAYER, printed, strict=True):
        curve = curves(found, layer, quantity)[axis]
        x, y = zip(*((size, factor * value) for size, value in curve), strict=True)
        style = "-" if paper["row of Table 1"] == "yes" else ":"
        name = f"{layer.name}, {axis}^{fit(curve)[0]:.2f}"
        panel.loglog(x, y, style, marker="o", markersize=3, linewidth=1.4, color=colour, label=name)
    other = f"d = {grid['at_d']}" if axis == "n" else f"n = {grid['at_n']}"
    panel.set_title(title, loc="left", fontsize=11, fontweight="bold", color=INK)
    panel.set_title(f"{unit}, {other}, {grid['batch']} sequences", loc="right", fontsize=9, color=QUIET)
    panel.set_xlabel(axis, color=INK)
    panel.set_xticks(grid[axis], [f"{size:,}" for size in grid[axis]])
    panel.xaxis.set_minor_locator(NullLocator())
    panel.yaxis.set_major_formatter(FuncFormatter(compact))
    panel.yaxis.set_minor_formatter(NullFormatter())
    panel.tick_params(which="both", length=0, colors=QUIET)
    panel.grid(color=GRID, linewidth=0.8)
    panel.set_facecolor("none")
    panel.spines[:].set_visible(False)
    panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2, frameon=False, labelcolor=INK)


def compact(value: float, position: int | None = None) -> str:
    """0.01, 10, 1k, 1M, 1G."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def with_variables(svg: str, label: str) -> str:
    """The SVG element alone, with variables of its own style sheet in place of colours."""
    svg = svg[svg.index("<svg") :]
    for variable, (light, _) in COLOURS.items():
        svg = svg.replace(light, f"var({variable})")
    light, dark = (" ".join(f"{name}: {pair[i]};" for name, pair in COLOURS.items()) for i in (0, 1))
    opening = f'<svg class="layers" role="img" aria-label="{label}"'
    svg = re.sub(r"font: ([a-z]+ )?([0-9.]+px) [^;\"]+", r"font-size: \2; font-weight: \1", svg)
    return svg.replace("<svg", opening, 1).replace("<defs>", f"{STYLE % (light, dark)}\n<defs>", 1)
