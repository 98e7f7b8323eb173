"""Table 1: the complexity of each layer type, measured and counted by complexity.py."""

from pathlib import Path
from types import SimpleNamespace

from pages import NONE, NOT_RUN, NOTES, Grid, Page
from plan import HERE, Row, read_figures
from results import Result

COLUMNS = {
    "layer type": "layer",
    "complexity, paper": "complexity",
    "operations": "",
    "time": "",
    "memory": "",
    "sequential, paper": "sequential",
    "sequential, counted": "",
    "path, paper": "path",
    "path, counted": "",
}
"""Column of the page -> column of table1.csv; empty if the paper does not have it."""


def rows(options: SimpleNamespace) -> list[Row]:
    """Table 1 (section 4): one command measures all layer types."""
    script, here = HERE / "complexity.py", Path.cwd()
    name = script.relative_to(here) if script.is_relative_to(here) else script
    return [Row("layers", [["python", str(name), options.scale.name]])]


def page(scale: SimpleNamespace, results: dict[str, Result]) -> Page:
    layers, notes, figure = read_figures("table1"), [], ""
    ours = [dict[str, str]()] * len(layers)
    if "layers" in results:
        from figure import draw_layers  # which takes seconds to load

        found = results["layers"]["figures"]
        ours, setup, figure = found["table"], found["setup"], draw_layers(found)
        notes = [note.format(**setup, **setup["grid"]) for note in NOTES["table1"]["measured"]]
    cells = [
        [
            paper[name] or NONE if name else own.get(column, NOT_RUN)
            for column, name in COLUMNS.items()
        ]
        for paper, own in zip(layers, ours, strict=True)
    ]
    grid = Grid("Complexity of each layer", list(COLUMNS), cells, words=len(COLUMNS))
    return Page(
        "table1", scale, NOTES["table1"]["said"], notes, [grid], list(results.values()), figure
    )
