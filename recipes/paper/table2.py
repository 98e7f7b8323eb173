"""Table 2: BLEU on newstest2014 and the cost of training, English-German and English-French, base and big."""

from types import SimpleNamespace

from pages import NONE, NOTES, PUBLISHED, Grid, Page, shown
from plan import PROTOCOL, Row, read_figures, translation_row
from results import Result, value

CORPORA = ("en-de", "en-fr")
NAMES = [f"{corpus}-{size}" for corpus in CORPORA for size in ("base", "big")]


def rows(options: SimpleNamespace) -> list[Row]:
    """Table 2 (section 6.1): base and big on both corpora."""
    found = []
    for name in NAMES:
        corpus, size = name.rsplit("-", 1)
        dropout = (
            ["model.dropout=0.1"] if name == "en-fr-big" else []
        )  # section 6.1; all else is in conf/model
        found.append(
            translation_row(options, name, corpus, [f"model={size}", *dropout], size, "test")
        )
    return found


def page(scale: SimpleNamespace, results: dict[str, Result]) -> Page:
    notes, own = NOTES["table2"], [results[name] for name in NAMES if name in results]
    bleu = grid(results, "BLEU", {"ours, paper's protocol": "protocol", "ours, sacreBLEU": "bleu"})
    cost = grid(
        results,
        "FLOPs",
        {"ours, paper's formula": "training_cost", "ours, counted": "training_flops"},
    )
    bleu.notes = [notes["BLEU"], *big_below_base(scale, results)]
    cost.title, cost.notes = "Training cost in FLOPs", [notes["cost"]]
    return Page("table2", scale, scale.said, [notes["page"]], [bleu, cost], own)


def grid(results: dict[str, Result], figure: str, columns: dict[str, str]) -> Grid:
    """A row for each system: for each corpus, the paper's figure, then ours."""
    headings = [
        "system",
        *(f"{corpus}, {column}" for corpus in CORPORA for column in ("paper", *columns)),
    ]
    lines = []
    for system in read_figures("table2"):
        line = [system["system"] + ("" if system["model"] else PUBLISHED)]
        for corpus in CORPORA:
            result = results.get(f"{corpus}-{system['model']}")
            names = [PROTOCOL[corpus] if name == "protocol" else name for name in columns.values()]
            ours = [
                shown(value(result, name), ",.2f" if figure == "BLEU" else ".1e") for name in names
            ]
            line += [
                system[f"{corpus} {figure}"] or NONE,
                *(ours if system["model"] else [NONE] * len(ours)),
            ]
        lines.append(line)
    return Grid(figure, headings, lines)


def big_below_base(scale: SimpleNamespace, results: dict[str, Result]) -> list[str]:
    """At small scale, a note on why big scores below base on English-German only."""
    if scale.name == "paper" or not set(NAMES) <= set(results):
        return []
    bleu = {name: value(results[name], "bleu") or 0 for name in NAMES}
    if bleu["en-de-big"] >= bleu["en-de-base"] or bleu["en-fr-big"] <= bleu["en-fr-base"]:
        return []
    return [NOTES["table2"]["big below base"].format(updates=scale.trainings["big"][0])]
