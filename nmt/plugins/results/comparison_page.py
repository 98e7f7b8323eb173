"""A comparison as a record, as text, and as an HTML page with a script that only filters and sorts."""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from markupsafe import Markup
from rich.console import Console

from nmt.commands import talker
from nmt.config import build, require
from nmt.evaluation import bleu_tokenizer, sentence_scorer
from nmt.files import printable, write_file
from nmt.plugins.results.commands import CompareConfig, check_output
from nmt.plugins.results.pages import TEMPLATES, render
from nmt.plugins.results.significance import FEWEST_LINES, NAMES, SAME, TESTS, faults_of, look_closer, measure
from nmt.plugins.results.systems import Seed, System, read_systems, translated
from nmt.plugins.results.test_set import TestSet, Text, read_test_set
from nmt.text import scripts_of_language

OFFERED = ("prepared", "metrics", "tokenize", "seed", "resamples", "trials", "alpha", "output", "translator")
COSTS = ("sentences/s", "tokens/s", "size", "memory")
EXAMPLES = 25  # the page shows up to this many wins and as many losses


def p_value(tree: dict[str, Any], difference: dict[str, Any], test: str) -> str:
    """A p-value with its sign, such as `= 0.0123`; empty if nothing was tested."""
    p, least = difference["p"].get(test), 1 / (1 + tree[{"bs": "resamples", "ar": "trials"}[test]])
    return "" if p is None else f"<= {least:.2g}" if p <= least else f"= {p:.4f}"


def costs(cost: dict[str, Any] | None) -> list[str]:
    if cost is None:
        return [""] * len(COSTS)
    speeds = [cost[count] / (cost["seconds"] or 1) for count in ("lines", "tokens")]
    sizes = [f"{cost[key] / 1e6:,.0f} MB" if cost[key] else "" for key in ("size", "memory")]
    return [*(f"{speed:,.{0 if speed >= 100 else 1}f}" for speed in speeds), *sizes]


def how_tested(tree: dict[str, Any]) -> str:
    several = any(len(system["seeds"]) > 1 for system in tree["systems"])
    words = f"* differs from {tree['systems'][0]['name']}: both paired tests, on sentences, give p < {tree['alpha']:g}"
    words += " for every pair of seeds (the largest p is shown), and all pairs agree" if several else ""
    if tree["lines"] < FEWEST_LINES:
        words = f"no *: tests need {FEWEST_LINES} lines, but there are only {tree['lines']}"
    return f"{words}; ± is the bootstrap's 95 % confidence interval; seed {tree['seed']}"


def how_translated(tree: dict[str, Any]) -> list[str]:
    """Each way of translating, after the systems that it applies to."""
    ways: dict[str, list[str]] = {}
    for seed in (seed for system in tree["systems"] for seed in system["seeds"] if seed["cost"]):
        ways.setdefault(f"{seed['cost']['keys']}, on {seed['cost']['device']}", []).append(seed["path"])
    return [f"{', '.join(paths)}: {way}" for way, paths in ways.items()]


def as_text(tree: dict[str, Any]) -> str:
    metrics = list(tree["signatures"])
    rows = [["system", *(NAMES[m] for m in metrics), *COSTS]]
    for system, comparison in zip(tree["systems"], [None, *tree["comparisons"]], strict=True):
        stars = {m: "*" if comparison and comparison["metrics"][m]["significant"] else "" for m in metrics}
        several, means = len(system["seeds"]) > 1, system["scores"]
        if several:
            cells = [f"{means[m]['mean']:.2f} (sd {means[m]['deviation']:.2f}){stars[m]}" for m in metrics]
            rows.append([f"{system['name']}, {len(system['seeds'])} seeds", *cells, *costs(None)])
        for seed in system["seeds"]:
            scores = {m: f"{s['value']:.2f} ± {s['margin']:.2f}" for m, s in seed["scores"].items()}
            cells = [text + ("" if several else stars[m]) for m, text in scores.items()]
            rows.append([f"  {seed['path']}" if several else system["name"], *cells, *costs(seed["cost"])])
    used = [column for column in zip(*rows, strict=True) if any(column[1:])]
    padded = [[cell.ljust(max(map(len, column))) for cell in column] for column in used]
    lines = ["  ".join(row).rstrip() for row in zip(*padded, strict=True)] + [""]
    for comparison in tree["comparisons"]:
        versus = f"{comparison['system']} against {comparison['against']}"
        if {d["verdict"] for d in comparison["metrics"].values()} == {SAME}:
            lines.append(f"{versus}: {SAME}")
            continue
        for m, d in comparison["metrics"].items():
            p = ", ".join(f"{TESTS[test]} p {p_value(tree, d, test)}" for test in d["p"])
            lines.append(f"{versus}: {NAMES[m]} {d['value']:+.2f}, {d['verdict']}" + (f" ({p})" if p else ""))
    lines += ["", how_tested(tree)]
    lines += [f"{NAMES[m]}, {TESTS[t]}: {text}" for m, both in tree["signatures"].items() for t, text in both.items()]
    lines += [f"translated with {way}" for way in how_translated(tree)]
    return "".join(f"{printable(line)}\n" for line in lines)


def signed(value: float, digits: int = 1) -> str:
    return f"{value:+,.{digits}f}".replace("-", "−")  # noqa: RUF001


def examples(test: TestSet, first: list[str], other: list[str]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The lines on which a system gains most against the first, and those on which it loses most."""
    chrf, scripts, lines = sentence_scorer("chrf"), scripts_of_language(test.language or ""), list[dict[str, Any]]()
    for number, (reference, *texts) in enumerate(zip(test.references, first, other, strict=True), 1):
        source = test.sources[number - 1] if test.sources else None
        faults = dict.fromkeys(fault for text in texts for fault in faults_of(source, reference, text, scripts))
        line = {"number": number, "source": source, "reference": reference, "texts": texts, "faults": [*faults]}
        scores = [chrf(text, reference) for text in texts]
        lines.append({**line, "scores": scores, "gap": scores[1] - scores[0]})
    ranked = sorted(lines, key=lambda line: -line["gap"])
    wins = [line for line in ranked[:EXAMPLES] if line["gap"] > 0]
    return wins, [line for line in ranked[::-1][:EXAMPLES] if line["gap"] < 0]


def comparison_page(tree: dict[str, Any], systems: list[System], test: TestSet, counted: str) -> str:
    script = (TEMPLATES / "comparison.js").read_text(encoding="utf-8")
    first, *others = [system.seeds[0].hypotheses for system in systems]
    return render(
        "comparison_page.html",
        tree=tree,
        least=FEWEST_LINES,
        pairs=[(system.name, *examples(test, first, text)) for system, text in zip(systems[1:], others, strict=True)],
        counted=counted,
        names=NAMES,
        tests=TESTS,
        same=SAME,
        names_of_costs=COSTS,
        script=Markup(script),
        # Browsers run the script with this hash and no other, whatever the texts contain.
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        **{f.__name__: f for f in (costs, how_tested, how_translated, p_value, signed)},
    )


class Comparison(dict[str, Any]):
    """The results, with the keys of `nmt compare --json`; `str` returns what the command prints."""

    def __str__(self) -> str:
        return as_text(self)


def compared(
    systems: list[System], source: Text | None, reference: Text | None, config: CompareConfig, console: Console
) -> dict[str, Any]:
    """Translate, measure and test; write the page if `config` names one, and return what `--json` prints."""
    if config.output:
        check_output(Path(config.output), "compare.html")
    test = read_test_set(systems[0].seeds[0].path, source, reference, config.prepared)
    for system in systems:
        with console.status(f"translating {test.name} unless it is cached"):
            system.seeds = [translated(seed, test, config.translator) for seed in system.seeds]
    config = replace(config, tokenize=bleu_tokenizer(config.tokenize, test.language, test.references))
    tree = {"test_set": test.name, "lines": len(test.references)}
    tree |= {key: getattr(config, key) for key in ("seed", "resamples", "trials", "alpha", "tokenize")}
    with console.status("testing"):
        tree |= measure(systems, test.references, config)
        if config.output or config.format == "json":
            tree["buckets"], counted = look_closer(systems, test, config)
    if config.output:
        write_file(Path(config.output), comparison_page(tree, systems, test, counted))
    return tree


def compare(
    systems: Iterable[str | Path] | Mapping[str, Iterable[str]],
    source: Text | None = None,
    reference: Text | None = None,
    **options: Any,
) -> Comparison:
    """Compare systems on a test set, and test whether they differ significantly from the first, the baseline.

    `systems` are runs, model directories or files of translations, or a mapping from names to lists of translations.
    `source` and `reference` are files or lists of lines. `options` are further keys of `nmt compare`.
    """
    is_list = isinstance(systems, Iterable) and not isinstance(systems, str)
    require(is_list, f"systems={systems!r:.60}: must be a list of runs or files, or a mapping")
    config = build(CompareConfig, {"output": None, **options}, offered=OFFERED)
    if isinstance(systems, Mapping):
        require(len(systems) > 1, "systems: name at least two")
        rivals = [System(name, [Seed(name, [*lines])]) for name, lines in systems.items()]
    else:
        rivals = read_systems([*map(str, systems)])
    return Comparison(compared(rivals, source, reference, config, talker()))
