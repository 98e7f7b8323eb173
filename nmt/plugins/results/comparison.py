"""Compare systems: scores, significance tests and where systems differ, as a record, as text and as an HTML page.

The tests are those of `sacrebleu --paired-bs` and `--paired-ar`. A row describes a bucket of lines or a fault:

- `title` (of the division, or "Faults"), `label`, `count` (lines), `unit` (name of the score, or "lines")
- `values` of the systems
- `gaps` between the first system and every other: `value`, its 95 % interval from `low` to `high`, `better`, and
  `significant` (the interval excludes zero, and there are enough lines)
"""

import base64
import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import pairwise, repeat
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from rich.console import Console
from sacrebleu.significance import PairedTest

from nmt import commands, compat, evaluation, files
from nmt.config import build, require
from nmt.flags import flags
from nmt.plugins.results.buckets import divisions
from nmt.plugins.results.commands import CompareConfig, check_output
from nmt.plugins.results.pages import TEMPLATES, render
from nmt.plugins.results.test_set import (
    Seed,
    System,
    TestSet,
    Text,
    read_systems,
    read_test_set,
    translated,
)
from nmt.text import scripts_of_language

OFFERED = (
    "prepared",
    "metrics",
    "tokenize",
    "seed",
    "resamples",
    "trials",
    "alpha",
    "output",
    "translator",
)
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
    words += (
        " for every pair of seeds (the largest p is shown), and all pairs agree" if several else ""
    )
    if tree["lines"] < FEWEST_LINES:
        words = f"no *: tests need {FEWEST_LINES} lines, but there are only {tree['lines']}"
    return f"{words}; ± is the bootstrap's 95 % confidence interval; seed {tree['seed']}"


def how_translated(tree: dict[str, Any]) -> list[str]:
    """Each way of translating, after the systems that it applies to."""
    ways: dict[str, list[str]] = {}
    for seed in (seed for system in tree["systems"] for seed in system["seeds"] if seed["cost"]):
        ways.setdefault(f"{seed['cost']['keys']}, on {seed['cost']['device']}", []).append(
            seed["path"]
        )
    return [f"{', '.join(paths)}: {way}" for way, paths in ways.items()]


def as_text(tree: dict[str, Any]) -> str:
    metrics = list(tree["signatures"])
    rows = [["system", *(NAMES[m] for m in metrics), *COSTS]]
    for system, comparison in zip(tree["systems"], [None, *tree["comparisons"]], strict=True):
        stars = {
            m: "*" if comparison and comparison["metrics"][m]["significant"] else ""
            for m in metrics
        }
        several, means = len(system["seeds"]) > 1, system["scores"]
        if several:
            cells = [
                f"{means[m]['mean']:.2f} (sd {means[m]['deviation']:.2f}){stars[m]}"
                for m in metrics
            ]
            rows.append([f"{system['name']}, {len(system['seeds'])} seeds", *cells, *costs(None)])
        for seed in system["seeds"]:
            scores = {m: f"{s['value']:.2f} ± {s['margin']:.2f}" for m, s in seed["scores"].items()}
            cells = [text + ("" if several else stars[m]) for m, text in scores.items()]
            rows.append(
                [f"  {seed['path']}" if several else system["name"], *cells, *costs(seed["cost"])]
            )
    used = [column for column in zip(*rows, strict=True) if any(column[1:])]
    padded = []
    for column in used:
        width = max(map(len, column))
        padded.append([cell.ljust(width) for cell in column])
    lines = ["  ".join(row).rstrip() for row in zip(*padded, strict=True)] + [""]
    for comparison in tree["comparisons"]:
        versus = f"{comparison['system']} against {comparison['against']}"
        if {d["verdict"] for d in comparison["metrics"].values()} == {SAME}:
            lines.append(f"{versus}: {SAME}")
            continue
        for m, d in comparison["metrics"].items():
            p = ", ".join(f"{TESTS[test]} p {p_value(tree, d, test)}" for test in d["p"])
            lines.append(
                f"{versus}: {NAMES[m]} {d['value']:+.2f}, {d['verdict']}" + (f" ({p})" if p else "")
            )
    lines += ["", how_tested(tree)]
    lines += [
        f"{NAMES[m]}, {TESTS[t]}: {text}"
        for m, both in tree["signatures"].items()
        for t, text in both.items()
    ]
    lines += [f"translated with {way}" for way in how_translated(tree)]
    return "".join(f"{files.printable(line)}\n" for line in lines)


def signed(value: float, digits: int = 1) -> str:
    return f"{value:+,.{digits}f}".replace("-", "−")  # noqa: RUF001


def examples(
    test: TestSet, first: list[str], other: list[str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The lines on which a system gains most against the first, and those on which it loses most."""
    chrf, lines = evaluation.sentence_scorer("chrf"), list[dict[str, Any]]()
    scripts = scripts_of_language(test.language or "")
    for number, (reference, *texts) in enumerate(
        zip(test.references, first, other, strict=True), 1
    ):
        source = test.sources[number - 1] if test.sources else None
        faults = dict.fromkeys(
            fault for text in texts for fault in faults_of(source, reference, text, scripts)
        )
        line = {
            "number": number,
            "source": source,
            "reference": reference,
            "texts": texts,
            "faults": [*faults],
        }
        scores = [chrf(text, reference) for text in texts]
        lines.append({**line, "scores": scores, "gap": scores[1] - scores[0]})
    ranked = sorted(lines, key=lambda line: -line["gap"])
    wins = [line for line in ranked[:EXAMPLES] if line["gap"] > 0]
    return wins, [line for line in ranked[::-1][:EXAMPLES] if line["gap"] < 0]


def comparison_page(
    tree: dict[str, Any], systems: list[System], test: TestSet, counted: str
) -> str:
    script = (TEMPLATES / "comparison.js").read_text(encoding="utf-8")
    first, *others = [system.seeds[0].hypotheses for system in systems]
    return render(
        "comparison_page.html",
        tree=tree,
        language=test.language,
        least=FEWEST_LINES,
        pairs=[
            (system.name, *examples(test, first, text))
            for system, text in zip(systems[1:], others, strict=True)
        ],
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
    systems: list[System],
    source: Text | None,
    reference: Text | None,
    config: CompareConfig,
    console: Console,
) -> dict[str, Any]:
    """Translate, measure and test; write the page if `config` names one, and return what `--json` prints."""
    if config.output:
        check_output(Path(config.output), "compare.html")
    test = read_test_set(systems[0].seeds[0].path, source, reference, config.prepared)
    for system in systems:
        system.seeds = [translated(seed, test, config.translator) for seed in system.seeds]
    tokenize = evaluation.bleu_tokenizer(config.tokenize, test.language, test.references)
    metrics = evaluation.usable_metrics(config.metrics, test.language, test.references)
    config = replace(config, tokenize=tokenize, metrics=metrics)
    tree = {"test_set": test.name, "lines": len(test.references)}
    tree |= {
        key: getattr(config, key) for key in ("seed", "resamples", "trials", "alpha", "tokenize")
    }
    with console.status("testing"):
        splits = evaluation.ter_splits(test.language, test.references)
        tree |= measure(systems, test.references, config, splits)
        if config.output or config.format == "json":
            tree["buckets"], counted = look_closer(systems, test, config)
    if config.output:
        files.write_file(Path(config.output), comparison_page(tree, systems, test, counted))
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
    return Comparison(compared(rivals, source, reference, config, commands.talker()))


NAMES = {"bleu": "BLEU", "chrf": "chrF2", "chrf++": "chrF2++", "ter": "TER"}
TESTS = {
    "bs": "paired bootstrap",
    "ar": "approximate randomization",
}  # sacreBLEU's name for each test -> ours
SAME = "not different at all"
FEWEST_LINES = 50  # needed for a test; with fewer lines, too many resamples coincide
SHORT, LONG, FEW_CHARACTERS = (
    0.6,
    1.6,
    10,
)  # minimum and maximum share of the reference's length; minimum difference

Numbers = npt.NDArray[np.float64]
Row = dict[str, Any]


def better(metric: str, difference: float) -> bool:
    return difference < 0 if metric == "ter" else difference > 0


def paired(
    test: str,
    texts: list[list[str]],
    references: list[str],
    config: CompareConfig,
    splits: bool,
) -> Any:
    """Test all translations against the first; return sacreBLEU's signatures and results by metric name."""
    tokenize = config.tokenize or "13a"
    scorers = {
        NAMES[metric]: evaluation.sacrebleu_metric(metric, tokenize, splits=splits)
        for metric in config.metrics
    }
    systems = [(str(number), lines) for number, lines in enumerate(texts)]
    samples = config.resamples if test == "bs" else config.trials
    os.environ["SACREBLEU_SEED"] = str(config.seed)  # sacreBLEU reads its seed from here
    return PairedTest(systems, scorers, [references], test_type=test, n_samples=samples)()  # type: ignore[arg-type]


def seeds_of(systems: list[System]) -> list[slice]:
    """For each system, the slice of its seeds in a list of the seeds of all systems."""
    return [
        slice(*span)
        for span in pairwise(np.cumsum([0, *(len(system.seeds) for system in systems)]).tolist())
    ]


def measure(
    systems: list[System], references: list[str], config: CompareConfig, splits: bool = False
) -> dict[str, Any]:
    """Score all systems and test them against the first; the keys are those of `nmt compare --json`.

    `splits`: TER splits Chinese and Japanese text into characters.

    A seed's scores have value, mean and margin: mean ± margin is the bootstrap's 95 % interval. A system's scores are
    the mean and deviation over its seeds (deviation None for one seed); its comparison has a difference per metric.
    """
    metrics, spans = config.metrics, seeds_of(systems)
    texts = [seed.hypotheses for system in systems for seed in system.seeds]
    first, others = texts[spans[0]], texts[spans[0].stop :]
    tested = {
        test: [paired(test, [text, *others], references, config, splits) for text in first]
        for test in TESTS
    }
    # Metric -> test -> for each seed of the first system, its result and those of the other systems' seeds.
    results = {
        m: {t: [row[NAMES[m]] for _, row in rows] for t, rows in tested.items()} for m in metrics
    }
    seeds = {
        m: [row[0] for row in tests["bs"]] + tests["bs"][0][1:] for m, tests in results.items()
    }
    figures = {
        m: [{"value": float(r.score), "mean": float(r.mean), "margin": float(r.ci)} for r in row]
        for m, row in seeds.items()
    }
    values = {m: [row["value"] for row in rows] for m, rows in figures.items()}
    trees, comparisons = list[dict[str, Any]](), list[dict[str, Any]]()
    for system, span in zip(systems, spans, strict=True):
        scores = [{m: figures[m][at] for m in metrics} for at in range(span.start, span.stop)]
        pairs = zip(system.seeds, scores, strict=True)
        rows = [
            {"path": seed.path, "scores": s, "cost": seed.cost and asdict(seed.cost)}
            for seed, s in pairs
        ]
        spread = {m: stdev(v[span]) if len(rows) > 1 else None for m, v in values.items()}
        means = {m: {"mean": fmean(v[span]), "deviation": spread[m]} for m, v in values.items()}
        trees.append({"name": system.name, "scores": means, "seeds": rows})
    for system, span in zip(systems[1:], spans[1:], strict=True):
        columns, differences = range(span.start - len(first) + 1, span.stop - len(first) + 1), {}
        for m in metrics:
            gaps = [theirs - ours for ours in values[m][spans[0]] for theirs in values[m][span]]
            p = {
                test: max(float(row[c].p_value) for row in rows for c in columns)
                for test, rows in results[m].items()
            }
            differences[m] = difference(m, gaps, p, config.alpha, len(references))
        comparisons.append(
            {"system": system.name, "against": systems[0].name, "metrics": differences}
        )
    decisive = comparisons[0]["metrics"][metrics[0]]
    return {
        "signatures": {
            m: {test: str(rows[0][0][NAMES[m]]) for test, rows in tested.items()} for m in metrics
        },
        "systems": trees,
        "comparisons": comparisons,
        "first_is_worse": decisive["significant"] and decisive["better"],
    }


def difference(
    metric: str, gaps: list[float], p: dict[str, float], alpha: float, lines: int
) -> dict[str, Any]:
    """The mean of the score differences `gaps` of all pairs of seeds, and a verdict; `p`: test -> p-value."""
    value, significant = fmean(gaps), False
    below = [name for test, name in TESTS.items() if p[test] < alpha]
    if not any(gaps):  # sacreBLEU gives equal scores the lowest p-value
        p, verdict = {}, SAME
    elif lines < FEWEST_LINES:
        p, verdict = {}, f"not tested: fewer than {FEWEST_LINES} lines"
    elif not below:
        verdict = "not significantly different"
    elif len(below) < len(TESTS):
        verdict = f"not significantly different: only the {below[0]} has p < {alpha:g}"
    elif min(gaps) <= 0 <= max(gaps):
        verdict = "not significantly different: pairs of seeds disagree on which is better"
    else:
        significant, verdict = (
            True,
            f"significantly {'better' if better(metric, value) else 'worse'}",
        )
    return {
        "value": value,
        "better": better(metric, value),
        "p": p,
        "significant": significant,
        "verdict": verdict,
    }


def faults_of(
    source: str | None, reference: str, text: str, scripts: frozenset[str] | None
) -> list[str]:
    """What is wrong with a translation: flags, if the source is given, and a length far from the reference's."""
    names = list[str]()
    if source is not None:
        names += [f"flag {flag}" for flag in flags(source, text, scripts)]
    if len(reference) - len(text) >= FEW_CHARACTERS and len(text) < SHORT * len(reference):
        names.append(f"under-translated: shorter than {SHORT:.0%} of the reference")
    if len(text) - len(reference) >= FEW_CHARACTERS and len(text) > LONG * len(reference):
        names.append(f"over-translated: longer than {LONG:.0%} of the reference")
    return names


@dataclass
class Bootstrap:
    metric: str  # "": the score is a number of lines, and lower is better
    score: Callable[[Numbers], float]  # computes a score from summed line statistics
    spans: list[slice]  # each system's seeds
    config: CompareConfig

    def row(self, title: str, label: str, parts: list[Numbers]) -> Row:
        """The row for N lines; `parts` are their K statistics, [N, K], for every seed of every system."""
        rng, count, gaps = np.random.default_rng(self.config.seed), len(parts[0]), []
        chances = np.full(count, 1 / count)
        draws = (rng.multinomial(count, chances) for _ in range(self.config.resamples))
        samples = np.array([[self.score(draw @ part) for part in parts] for draw in draws])
        scores = np.array([self.score(part.sum(0)) for part in parts])
        values, means = zip(
            *((float(scores[s].mean()), samples[:, s].mean(1)) for s in self.spans), strict=True
        )
        for value, mean in zip(values[1:], means[1:], strict=True):
            gap, (low, high) = (
                value - values[0],
                np.quantile(mean - means[0], [0.025, 0.975]).tolist(),
            )
            significant = count >= FEWEST_LINES and (low > 0 or high < 0)
            is_better = better(self.metric or "ter", gap)
            gaps.append(
                {
                    "value": gap,
                    "low": low,
                    "high": high,
                    "better": is_better,
                    "significant": significant,
                }
            )
        row = {
            "title": title,
            "label": label,
            "count": count,
            "unit": NAMES.get(self.metric, "lines"),
        }
        return {**row, "values": [*values], "gaps": gaps}


def look_closer(
    systems: list[System], test: TestSet, config: CompareConfig
) -> tuple[list[Row], str]:
    """Rows for every fault and bucket, and where the training words were counted (empty if unknown)."""
    spans, texts = (
        seeds_of(systems),
        [seed.hypotheses for system in systems for seed in system.seeds],
    )
    scripts, rows = scripts_of_language(test.language or ""), list[Row]()
    lines = [
        zip(test.sources or repeat(None, len(text)), test.references, text, strict=True)
        for text in texts
    ]
    faults = [[faults_of(*line, scripts) for line in text] for text in lines]
    bootstrap = Bootstrap("", lambda sums: float(sums[0]), spans, config)
    for name in dict.fromkeys(name for text in faults for line in text for name in line):
        rows.append(
            bootstrap.row(
                "Faults", name, [np.array([[float(name in line)] for line in t]) for t in faults]
            )
        )

    scorer = evaluation.sacrebleu_metric(config.metrics[0], config.tokenize or "13a")
    statistics = [
        np.array(compat.line_statistics(scorer, text, test.references), np.float64)
        for text in texts
    ]
    bootstrap = Bootstrap(
        config.metrics[0], lambda sums: compat.score_of_statistics(scorer, sums), spans, config
    )
    parted, counted = divisions(test)
    for title, labels, buckets in parted:
        for index in np.unique(buckets):
            parts = [part[np.array(buckets) == index] for part in statistics]
            rows.append(bootstrap.row(title, labels[index], parts))
    return rows, counted
