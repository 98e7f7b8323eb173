"""Table 2: BLEU on newstest2014 and the cost of training, English-German and English-French, base and big."""

import math
from collections.abc import Callable
from types import SimpleNamespace

from pages import NONE, NOTES, PUBLISHED, Grid, Page, power, shown
from plan import Experiment, Row, read_figures, translation_row
from results import Result

CORPORA = ("en-de", "en-fr")
NAMES = [f"{corpus}-{size}" for corpus in CORPORA for size in ("base", "big")]
PROTOCOL = {"en-de": "split", "en-fr": "tokenised"}
"""How the paper's BLEU was computed: Moses tokens, and for German every hyphenated compound split."""


def rows(options: SimpleNamespace) -> list[Row]:
    """Table 2 (section 6.1): base and big on both corpora."""
    return [translation_row(options, experiment(name)) for name in NAMES]


def experiment(name: str) -> Experiment:
    corpus, size = name.rsplit("-", 1)
    dropout = ("model.dropout=0.1",) if name == "en-fr-big" else ()  # section 6.1; all else is in conf/model
    return Experiment(name, corpus, (f"model={size}", *dropout), size, "test", f"bleu,{PROTOCOL[corpus]}")


def page(scale: SimpleNamespace, results: dict[str, Result]) -> Page:
    notes = NOTES["table2"]

    def bleu(corpus: str, result: Result | None) -> list[str]:
        return [shown(result and result.value(metric)) for metric in (PROTOCOL[corpus], "bleu")]

    def cost(corpus: str, result: Result | None) -> list[str]:
        return [power(result and result.value(name)) for name in ("training_cost", "training_flops")]

    columns = ["paper", "ours, paper's protocol", "ours, sacreBLEU"]
    bleus = Grid("BLEU", columns, cells("BLEU", bleu, results), [notes["BLEU"], *big_below_base(scale, results)])
    columns = ["paper", "ours, paper's formula", "ours, counted"]
    costs = Grid("Training cost in FLOPs", columns, cells("FLOPs", cost, results), [notes["cost"]])
    for grid in (bleus, costs):
        grid.columns = ["system", *(f"{corpus}, {column}" for corpus in CORPORA for column in grid.columns)]
    own = [results[name] for name in NAMES if name in results]
    return Page("table2", scale, scale.said, [notes["page"]], [bleus, costs], own)


def cells(figure: str, ours: Callable[[str, Result | None], list[str]], results: dict[str, Result]) -> list[list[str]]:
    """A row for each system: of each corpus the paper's figure and two of ours."""
    lines = []
    for system in read_figures("table2"):
        line = [system["system"] + ("" if system["model"] else PUBLISHED)]
        for corpus in CORPORA:
            result = results.get(f"{corpus}-{system['model']}")
            line += [system[f"{corpus} {figure}"] or NONE]
            line += ours(corpus, result) if system["model"] else [NONE, NONE]
        lines.append(line)
    return lines


def big_below_base(scale: SimpleNamespace, results: dict[str, Result]) -> list[str]:
    """The reason why big is below base on English-German, where it was trained too shortly."""
    de_base, de_big, fr_base, fr_big = (
        (results[name].value("bleu") if name in results else None) or math.nan for name in NAMES
    )
    if scale.name == "paper" or not (de_base > de_big and fr_base < fr_big):
        return []
    return [NOTES["table2"]["big below base"].format(updates=scale.trainings["big"][0])]
