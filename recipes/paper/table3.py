"""Table 3: variations of the base model, on the development set (newstest2013), without averaging."""

from types import SimpleNamespace

from pages import NONE, NOTES, Grid, Page, shown, signed
from plan import Experiment, Row, read_figures, translation_row
from results import Result

VARIATIONS = [row for row in read_figures("table3") if row["BLEU"]]
BASE = VARIATIONS[0]
COMPARISONS = [row for row in read_figures("table3") if not row["BLEU"]]
"""Made in words alone, elsewhere in the paper."""
OURS = {"perplexity": "perplexity", "BLEU": "split", "sacreBLEU": "bleu", "parameters": "parameters"}
"""Column of table3.csv -> figure or score of a result."""
Results = dict[str, Result]


def rows(options: SimpleNamespace) -> list[Row]:
    """Table 3 (section 6.2), and the comparisons that the paper tells of elsewhere."""
    return [translation_row(options, experiment(row["experiment"])) for row in (*VARIATIONS, *COMPARISONS)]


def experiment(name: str) -> Experiment:
    # The model of a run is the mean of the checkpoints that it keeps: here the last alone.
    model = (f"experiment=table3/{name}", "checkpoints.keep=1")
    training = "variation_big" if name == "big" else "variation"
    return Experiment(f"table3-{name}", "en-de", model, training, "valid", "bleu,split")


def value(results: Results, variation: dict[str, str], column: str) -> float | None:
    """What we measured of a variation; parameters in millions, as the paper has them."""
    result = results.get(f"table3-{variation['experiment']}")
    found = result.value(OURS.get(column, column)) if result else None
    return found / 1e6 if found is not None and column == "parameters" else found


def page(scale: SimpleNamespace, results: Results) -> Page:
    notes = NOTES["table3"]
    scaled = "" if scale.width == scale.depth == 1 else notes["scaled"].format(width=scale.width, depth=scale.depth)
    names = [f"table3-{row['experiment']}" for row in (*VARIATIONS, *COMPARISONS)]
    grids = [figures_grid(results), differences_grid(results), comparisons_grid(results)]
    own = [results[name] for name in names if name in results]
    return Page("table3", scale, scale.said, [notes["page"].format(scaled=scaled)], grids, own)


def figures_grid(results: Results) -> Grid:
    columns = {
        "PPL, paper": "perplexity",
        "PPL, ours": "perplexity",
        "BLEU, paper": "BLEU",
        "BLEU, ours": "BLEU",
        "sacreBLEU, ours": "sacreBLEU",
        "parameters (M), paper": "parameters",
        "parameters (M), ours": "parameters",
    }
    lines = []
    for row in VARIATIONS:
        line = [row["row"], row["change"] or NONE]
        for heading, column in columns.items():
            line.append(row[column] or NONE if heading.endswith("paper") else shown(value(results, row, column)))
        lines.append(line)
    headings = ["row", "changed from base", *columns]
    return Grid("Perplexity, BLEU, parameters", headings, lines, [NOTES["table3"]["figures"]], words=2)


def differences_grid(results: Results) -> Grid:
    lines = []
    for row in VARIATIONS[1:]:
        line = [row["row"], row["change"]]
        for column, digits in (("perplexity", 2), ("BLEU", 1), ("parameters", 0)):
            printed = signed(float(row[column]) - float(BASE[column]), digits) if row[column] else NONE
            ours, base = value(results, row, column), value(results, BASE, column)
            line += [printed, signed(None if ours is None or base is None else ours - base)]
        lines.append(line)
    measures = [f"{measure}, {whose}" for measure in ("PPL", "BLEU", "parameters (M)") for whose in ("paper", "ours")]
    headings = ["row", "changed from base", *measures]
    return Grid("Differences to base", headings, lines, [NOTES["table3"]["differences"]], words=2)


def comparisons_grid(results: Results) -> Grid:
    lines = []
    for row in (BASE, *COMPARISONS):
        seconds = value(results, row, "training_seconds")
        figures = [shown(value(results, row, column)) for column in ("perplexity", "BLEU", "parameters")]
        lines.append([row["row"], row["change"] or NONE, *figures, shown(seconds and seconds / 3600, 3)])
    columns = ["section", "changed from base", "PPL, ours", "BLEU, ours", "parameters (M), ours", "hours of training"]
    return Grid("Other attention functions", columns, lines, [NOTES["table3"]["comparisons"]], words=2)
