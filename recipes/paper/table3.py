"""Table 3: variations of the base model, on the development set (newstest2013), without averaging."""

from types import SimpleNamespace

from pages import NONE, NOTES, Grid, Page, shown
from plan import Row, read_figures, translation_row
from results import Result, value

VARIATIONS = [row for row in read_figures("table3") if row["BLEU"]]
BASE = VARIATIONS[0]
COMPARISONS = [row for row in read_figures("table3") if not row["BLEU"]]
"""Comparisons that the paper makes elsewhere, without numbers."""
MEASURES = {"PPL": "perplexity", "BLEU": "BLEU", "parameters (M)": "parameters"}
"""Heading -> column of table3.csv."""
Results = dict[str, Result]


def rows(options: SimpleNamespace) -> list[Row]:
    """Table 3 (section 6.2), and the comparisons elsewhere in the paper."""
    found = []
    for name in (row["experiment"] for row in (*VARIATIONS, *COMPARISONS)):
        # A run averages the checkpoints that it keeps; keeping only one turns averaging off.
        model = [f"experiment=table3/{name}", "checkpoints.keep=1"]
        training = "variation_big" if name == "big" else "variation"
        found.append(translation_row(options, f"table3-{name}", "en-de", model, training, "valid"))
    return found


def page(scale: SimpleNamespace, results: Results) -> Page:
    notes = NOTES["table3"]
    scaled = (
        ""
        if scale.width == scale.depth == 1
        else notes["scaled"].format(width=scale.width, depth=scale.depth)
    )
    names = [f"table3-{row['experiment']}" for row in (*VARIATIONS, *COMPARISONS)]
    grids = [figures_grid(results), differences_grid(results), comparisons_grid(results)]
    own = [results[name] for name in names if name in results]
    return Page("table3", scale, scale.said, [notes["page"].format(scaled=scaled)], grids, own)


def ours(results: Results, row: dict[str, str], column: str) -> float | None:
    """Our figure for a variation; BLEU follows the paper's protocol, and parameters are in millions."""
    found = value(
        results.get(f"table3-{row['experiment']}"), "split" if column == "BLEU" else column
    )
    return found / 1e6 if found is not None and column == "parameters" else found


def figures_grid(results: Results) -> Grid:
    lines = []
    for row in VARIATIONS:
        line = [row["row"], row["change"] or NONE]
        for column in MEASURES.values():
            line += [row[column] or NONE, shown(ours(results, row, column))]
        line.insert(6, shown(ours(results, row, "bleu")))
        lines.append(line)
    headings = [
        "row",
        "changed from base",
        "PPL, paper",
        "PPL, ours",
        "BLEU, paper",
        "BLEU, ours",
        "sacreBLEU, ours",
    ]
    headings += ["parameters (M), paper", "parameters (M), ours"]
    return Grid(
        "Perplexity, BLEU, parameters", headings, lines, [NOTES["table3"]["figures"]], words=2
    )


def differences_grid(results: Results) -> Grid:
    lines = []
    for row in VARIATIONS[1:]:
        line = [row["row"], row["change"]]
        for column, form in zip(MEASURES.values(), ("+.2f", "+.1f", "+.0f"), strict=True):
            printed = shown(float(row[column]) - float(BASE[column]), form) if row[column] else NONE
            own, base = ours(results, row, column), ours(results, BASE, column)
            line += [printed, shown(None if own is None or base is None else own - base, "+.2f")]
        lines.append(line)
    headings = [
        "row",
        "changed from base",
        *(f"{name}, {whose}" for name in MEASURES for whose in ("paper", "ours")),
    ]
    return Grid("Differences from base", headings, lines, [NOTES["table3"]["differences"]], words=2)


def comparisons_grid(results: Results) -> Grid:
    lines = []
    for row in (BASE, *COMPARISONS):
        figures = [shown(ours(results, row, column)) for column in MEASURES.values()]
        seconds = ours(results, row, "training_seconds")
        lines.append(
            [row["row"], row["change"] or NONE, *figures, shown(seconds and seconds / 3600, ".3f")]
        )
    headings = [
        "section",
        "changed from base",
        *(f"{name}, ours" for name in MEASURES),
        "hours of training",
    ]
    return Grid(
        "Other attention functions", headings, lines, [NOTES["table3"]["comparisons"]], words=2
    )
