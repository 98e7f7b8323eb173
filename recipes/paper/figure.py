"""The figure for Table 1: measured time and memory of each layer type against n and d, on logarithmic axes, as an SVG.

The SVG contains its colors for light and dark backgrounds, so it can be embedded in a page or used alone.
"""

import io
import re
from typing import Any

import matplotlib
from complexity import curves
from layers import LAYERS
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from plan import read_figures

COLORS = {
    "--ink": ("#1b1f24", "#dfe3e8"),
    "--quiet": ("#636c76", "#8d96a1"),
    "--grid": ("#eceef1", "#22272d"),
    "--attention": ("#1f6fd6", "#6aa8f7"),
    "--recurrent": ("#c2410c", "#f0883e"),
    "--convolution": ("#7c3aed", "#b794f6"),
    "--restricted": ("#0b7a6f", "#3fc7b5"),
}
"""Variable of the SVG's style sheet -> its color on a light and on a dark background."""
INK, QUIET, GRID, *KINDS = (light for light, _ in COLORS.values())
OF_LAYER = [KINDS[kind] for kind in (0, 0, 1, 2, 2, 3)]
STYLE = """<style>
.layers {{ {} }}
@media (prefers-color-scheme: dark) {{ .layers {{ {} }} }}
.layers text {{ font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }}
</style>
"""


def draw_layers(found: dict[str, Any]) -> str:
    """Draw the measurements of complexity.py."""
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "nmt"}):
        figure = Figure(figsize=(11, 8), layout="constrained", facecolor="none")
        for panel, (quantity, axis) in zip(
            figure.subplots(2, 2).flat,
            [("seconds", "n"), ("seconds", "d"), ("memory", "n"), ("memory", "d")],
            strict=True,
        ):
            draw_panel(panel, found, quantity, axis)
        figure.legend(
            *panel.get_legend_handles_labels(),
            loc="outside lower center",
            ncols=3,
            frameon=False,
            labelcolor=INK,
        )
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return with_variables(
        file.getvalue(), f"Time and memory of layers, measured on {found['setup']['device']}"
    )


def draw_panel(panel: Any, found: dict[str, Any], quantity: str, axis: str) -> None:
    """Draw one quantity of all layers along one axis; layers that are not in the paper's table are dotted."""
    grid, factor = found["setup"]["grid"], 1e3 if quantity == "seconds" else 1
    for layer, color, paper in zip(LAYERS, OF_LAYER, read_figures("table1"), strict=True):
        sizes, values = zip(*curves(found, layer, quantity)[axis], strict=True)
        style = "-" if paper["row of Table 1"] == "yes" else ":"
        panel.loglog(
            sizes, [factor * y for y in values], style, marker=".", color=color, label=layer.name
        )
    title = (
        "Time of a forward pass, milliseconds"
        if quantity == "seconds"
        else "Memory of a forward pass, bytes"
    )
    other = f"d = {grid['at_d']}" if axis == "n" else f"n = {grid['at_n']}"
    panel.set_title(
        f"{title} ({other}, {grid['batch']} sequences)", loc="left", fontsize=11, color=INK
    )
    panel.set_xlabel(axis, color=INK)
    panel.set_xticks(grid[axis], [f"{size:,}" for size in grid[axis]])
    panel.xaxis.set_minor_locator(NullLocator())
    panel.tick_params(which="both", length=0, colors=QUIET)
    panel.grid(color=GRID)
    panel.set_facecolor("none")
    panel.spines[:].set_visible(False)


def with_variables(svg: str, label: str) -> str:
    """The SVG element with its own style sheet, whose variables replace the colors."""
    for variable, (light, _) in COLORS.items():
        svg = svg.replace(light, f"var({variable})")
    light, dark = (" ".join(f"{name}: {pair[i]};" for name, pair in COLORS.items()) for i in (0, 1))
    svg = re.sub(r"font: ([0-9.]+px) [^;\"]+", r"font-size: \1", svg[svg.index("<svg") :])
    svg = svg.replace("<svg", f'<svg class="layers" role="img" aria-label="{label}"', 1)
    return svg.replace("<defs>", STYLE.format(light, dark) + "<defs>", 1)
