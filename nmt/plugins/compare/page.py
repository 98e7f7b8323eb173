"""A comparison as JSON, as text, and as a page, which needs no script to be read: a small one filters and sorts."""

import base64
import hashlib
from dataclasses import asdict
from datetime import datetime
from itertools import groupby
from typing import Any

from markupsafe import Markup

from nmt.evaluation import sentence_scorer
from nmt.files import printable
from nmt.plugins.compare.buckets import Details, strongest
from nmt.plugins.compare.lines import FAULTS
from nmt.plugins.compare.significance import FEWEST_LINES, NAMES, TESTS, Sampling
from nmt.plugins.compare.systems import System
from nmt.plugins.report.pages import TEMPLATES, differences, render
from nmt.translation import TestSet

Example = dict[str, Any]
"""A line: its number, the line, the texts and chrF2 scores of two systems, the gap, faults of either text, buckets."""
STAR = "*"
COSTS = ("sentences/s", "tokens/s", "size", "memory")
FINDINGS = 6
"""On top of the page."""
SHOWN = 8
"""Examples that are not folded up."""


def as_tree(systems: list[System], test: TestSet, numbers: dict[str, Any], sampling: Sampling) -> dict[str, Any]:
    """The numbers of `measure` with their systems, for programs, text and page; the first metric decides
    `first_is_worse`."""
    first, decisive = systems[0].name, next(iter(numbers["differences"][0].values()))
    return {
        "test_set": test.name,
        "lines": len(test.references),
        **asdict(sampling),
        "signatures": numbers["signatures"],
        "systems": [
            {
                "name": system.name,
                "scores": means,
                "seeds": [
                    {"path": seed.path, "scores": scores, "cost": seed.cost and asdict(seed.cost)}
                    for seed, scores in zip(system.seeds, rows, strict=True)
                ],
            }
            for system, means, rows in zip(systems, numbers["means"], numbers["scores"], strict=True)
        ],
        "comparisons": [
            {"system": system.name, "against": first, "metrics": by_metric}
            for system, by_metric in zip(systems[1:], numbers["differences"], strict=True)
        ],
        "first_is_worse": decisive["significant"] and decisive["better"],
    }


def p_value(tree: dict[str, Any], difference: dict[str, Any], test: str) -> str:
    """A p-value with its sign, such as = 0.0123; empty where nothing was tested."""
    if test not in difference["p"]:
        return ""
    p, least = difference["p"][test], 1 / (1 + tree[{"bs": "resamples", "ar": "trials"}[test]])
    return f"<= {least:.2g}" if p <= least else f"= {p:.4f}"


def costs(cost: dict[str, Any] | None) -> list[str]:
    """The COSTS as text; nothing for a file of translations."""
    if cost is None:
        return [""] * len(COSTS)
    per_second = [cost[count] / cost["seconds"] if cost["seconds"] else 0.0 for count in ("lines", "tokens")]
    speeds = [f"{speed:,.{0 if speed >= 100 else 1}f}" if speed else "" for speed in per_second]
    sizes = (cost["size"], cost["memory"])
    return [*speeds, *(f"{s / 1e9:,.1f} GB" if s >= 1e9 else f"{s / 1e6:,.0f} MB" if s else "" for s in sizes)]


def how_tested(tree: dict[str, Any]) -> str:
    """What a star means, in words."""
    margins = f"± is the 95 % confidence interval of the bootstrap; seed {tree['seed']}"
    if tree["lines"] < FEWEST_LINES:
        return f"no {STAR}: tests need {FEWEST_LINES} lines, and there are {tree['lines']}; {margins}"
    words = f"{STAR} differs from {tree['systems'][0]['name']}: both paired tests, on sentences, have"
    words += f" p < {tree['alpha']:g}"
    if any(len(system["seeds"]) > 1 for system in tree["systems"]):
        words += ", for each pair of seeds (the largest p is told), and all pairs agree"
    return f"{words}; {margins}"


def how_translated(tree: dict[str, Any]) -> list[str]:
    """By which keys, and where, models translated here; with their names where that differs."""
    ways: dict[str, list[str]] = {}
    for path, cost in ((seed["path"], seed["cost"]) for system in tree["systems"] for seed in system["seeds"]):
        if cost:
            ways.setdefault(f"{cost['keys']}, on {cost['device']}", []).append(path)
    return [way if len(ways) == 1 else f"{', '.join(paths)}: {way}" for way, paths in ways.items()]


def as_text(tree: dict[str, Any]) -> str:
    """The numbers for a terminal or a log."""
    metrics = list(tree["signatures"])
    rows = [["system", *(NAMES[m] for m in metrics), *COSTS]]
    for system, comparison in zip(tree["systems"], [None, *tree["comparisons"]], strict=True):
        stars = {m: STAR if comparison and comparison["metrics"][m]["significant"] else "" for m in metrics}
        several, means = len(system["seeds"]) > 1, system["scores"]
        if several:
            cells = [f"{means[m]['mean']:.2f} (sd {means[m]['deviation']:.2f}){stars[m]}" for m in metrics]
            rows.append([f"{system['name']}, {len(system['seeds'])} seeds", *cells, *costs(None)])
        for seed in system["seeds"]:
            cells = [
                f"{s['value']:.2f} ± {s['margin']:.2f}{'' if several else stars[m]}" for m, s in seed["scores"].items()
            ]
            rows.append([f"  {seed['path']}" if several else system["name"], *cells, *costs(seed["cost"])])
    used = [i for i, column in enumerate(zip(*rows[1:], strict=True)) if any(column)]
    widths = {i: max(len(row[i]) for row in rows) for i in used}
    lines = ["  ".join(row[i].ljust(width) for i, width in widths.items()).rstrip() for row in rows] + [""]
    for comparison in tree["comparisons"]:
        for m, d in comparison["metrics"].items():
            p = ", ".join(f"{TESTS[test]} p {p_value(tree, d, test)}" for test in d["p"])
            versus = f"{comparison['system']} against {comparison['against']}"
            lines.append(f"{versus}: {NAMES[m]} {d['value']:+.2f}, {d['verdict']}" + (f" ({p})" if p else ""))
    lines += ["", how_tested(tree)]
    lines += [f"{NAMES[m]}, {TESTS[t]}: {text}" for m, both in tree["signatures"].items() for t, text in both.items()]
    lines += [f"translated by {way}" for way in how_translated(tree)]
    return "".join(f"{printable(line)}\n" for line in lines)


def examples(details: Details, first: list[str], other: list[str], count: int) -> tuple[list[Example], list[Example]]:
    """The `count` lines that the other system wins by most, and those that it loses by most."""
    chrf, rated = sentence_scorer("chrf"), list[Example]()
    for number, (line, *texts) in enumerate(zip(details.lines, first, other, strict=True), 1):
        scores = [chrf(text, line.reference) for text in texts]
        rated.append({"number": number, "line": line, "texts": texts, "scores": scores, "gap": scores[1] - scores[0]})
    ranked = sorted(rated, key=lambda example: -example["gap"])
    wins = [example for example in ranked[:count] if example["gap"] > 0]
    losses = [example for example in ranked[::-1][:count] if example["gap"] < 0]
    for example in (*wins, *losses):
        line, texts = example["line"], example["texts"]
        example["faults"] = [fault.title for fault in FAULTS if any(fault.has(line, text) for text in texts)]
        example["buckets"] = [f"{d.title}: {d.labels[d.bucket(line)]}" for d in details.divisions]
    return wins, losses


def number_of(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def signed(value: float, digits: int = 1) -> str:
    return f"{value:+,.{digits}f}".replace("-", "−")  # noqa: RUF001


def compare_page(tree: dict[str, Any], systems: list[System], details: Details, count: int) -> str:
    """The HTML page; `count` is the number of wins and of losses."""
    texts = [system.seeds[0].hypotheses for system in systems]
    pairs = [
        (system.name, *examples(details, texts[0], other, count))
        for system, other in zip(systems[1:], texts[1:], strict=True)
    ]
    tags = {
        tag for _, *sides in pairs for side in sides for line in side for tag in (*line["faults"], *line["buckets"])
    }
    groups = {title: list(rows) for title, rows in groupby(details.rows, lambda row: row["title"])}
    gaps = {title: [gap for row in rows for gap in row["gaps"]] for title, rows in groups.items()}
    script = (TEMPLATES / "compare.js").read_text(encoding="utf-8")
    return render(
        "compare_page.html",
        tree=tree,
        groups=groups,
        largest={
            title: max(abs(g[end]) for g in part for end in ("low", "value", "high")) for title, part in gaps.items()
        },
        findings=strongest(details.rows, FINDINGS),
        least=FEWEST_LINES,
        marked=sum(gap["significant"] for part in gaps.values() for gap in part),
        tested=sum(map(len, gaps.values())),
        pairs=pairs,
        shown=SHOWN,
        tags=sorted(tags),
        counted=details.counted,
        names=NAMES,
        tests=TESTS,
        names_of_costs=COSTS,
        script=Markup(script),
        # The hash by which browsers know the script: no other runs, whatever a text holds.
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        now=datetime.now().astimezone(),
        **{f.__name__: f for f in (costs, differences, how_tested, how_translated, number_of, p_value, signed)},
    )
