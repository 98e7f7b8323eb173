"""The chart of risk and coverage in a model's README.md, as SVG."""

from nmt.plugins.quality.record import Record
from nmt.plugins.results.charts import BOTTOM, LEFT, RIGHT, Drawing
from nmt.plugins.results.risk_chart import draw_risk

NAME_OF_CHART = "quality.svg"
WIDTH = RIGHT + 30
"""With room for half of the label `100%`, which is centered on the right edge of the plot."""
TITLE = 24
"""The height of the title of the vertical axis, which stands above the plot."""
HEIGHT = TITLE + BOTTOM + 40
LABELS = 16
"""Where the labels of the vertical axis begin."""
# The colors of the pages of `nmt report`.
STYLE = (
    "text{font:11px sans-serif;fill:#5c6672}path{stroke:#d8dde3}"
    "polyline{fill:none;stroke:#1f6fd6;stroke-width:1.6}"
    "@media(prefers-color-scheme:dark){text{fill:#98a2ae}path{stroke:#39424d}"
    "polyline{stroke:#6aa8f7}}"
)


def svg_of(record: Record) -> str:
    fit = record.fits[0]
    drawing = draw_risk(fit.kept, fit.risk)
    assert drawing
    unit = drawing.chart.unit
    by = drawing.chart.by
    view = f"0 {-TITLE} {WIDTH} {HEIGHT}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{view}" role="img">\n'
        f"<title>{unit}, by {by}</title><style>{STYLE}</style>\n"
        f'<text x="{LABELS}" y="{12 - TITLE}">{unit}</text>\n{ticks_of(drawing)}'
        f'<text x="{WIDTH / 2:g}" y="{BOTTOM + 34}" text-anchor="middle">{by}</text>\n'
        f'<polyline points="{points_of(drawing)}"/>\n</svg>\n'
    )


def ticks_of(drawing: Drawing) -> str:
    pieces = []
    for y, value in drawing.rows:
        pieces.append(f'<path d="M{LEFT} {y}H{RIGHT}"/>')
        pieces.append(f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{value:g}%</text>\n')
    for x, value in drawing.columns:
        y = BOTTOM + 18
        pieces.append(f'<text x="{x}" y="{y}" text-anchor="middle">{value:g}%</text>\n')
    return "".join(pieces)


def points_of(drawing: Drawing) -> str:
    return " ".join(f"{x},{y}" for x, y in drawing.lines["validation"])
