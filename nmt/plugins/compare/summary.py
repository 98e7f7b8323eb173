"""A comparison in words and as JSON."""

import json
from dataclasses import asdict, dataclass

from nmt.files import printable
from nmt.plugins.compare.buckets import Row
from nmt.plugins.compare.significance import FEWEST_LINES, NAMES, TESTS, Difference, Numbers, Sampling
from nmt.plugins.compare.systems import System, TestSet
from nmt.plugins.compare.translations import Cost, Translated

STAR = "*"


@dataclass
class Comparison:
    """Systems on a test set, the first of which the others are tested against."""

    test: TestSet
    systems: list[System]
    translated: list[list[Translated]]
    """[system][seed]."""
    metrics: list[str]
    numbers: Numbers
    sampling: Sampling

    @property
    def first_is_worse(self) -> bool:
        """True where the first system is significantly worse than the second, by the first metric."""
        found = self.numbers.differences[0][self.metrics[0]]
        return found.significant and found.better


def p_value(found: Difference, test: str, sampling: Sampling) -> str:
    """A p-value with its sign, such as = 0.0123; empty where nothing was tested."""
    least = sampling.least_p(test)
    if test not in found.p:
        return ""
    return f"<= {least:.2g}" if found.p[test] <= least else f"= {found.p[test]:.4f}"


def megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB" if size < 1e9 else f"{size / 1e9:,.1f} GB"


def costs(cost: Cost | None) -> list[str]:
    """Sentences/s, tokens/s, size and peak memory as text; nothing for a file of translations."""
    if cost is None:
        return ["", "", "", ""]
    per_second = [count / cost.seconds if cost.seconds else 0.0 for count in (cost.lines, cost.tokens)]
    speeds = [f"{speed:,.{0 if speed >= 100 else 1}f}" if speed else "" for speed in per_second]
    return [*speeds, megabytes(cost.size), megabytes(cost.memory) if cost.memory else ""]


def table(found: Comparison) -> list[list[str]]:
    """The numbers of each seed, and of each system of several their mean and standard deviation."""
    numbers = found.numbers
    lines = [["system", *(NAMES[m] for m in found.metrics), "sentences/s", "tokens/s", "size", "memory"]]
    for index, (system, seeds) in enumerate(zip(found.systems, found.translated, strict=True)):
        stars = {m: STAR if index and numbers.differences[index - 1][m].significant else "" for m in found.metrics}
        if len(seeds) > 1:
            means = [
                f"{numbers.mean(index, m):.2f} (sd {numbers.deviation(index, m):.2f}){stars[m]}" for m in found.metrics
            ]
            lines.append([f"{system.name}, {len(seeds)} seeds", *means, "", "", "", ""])
            stars = dict.fromkeys(stars, "")
        for seed, own in zip(seeds, numbers.estimates[index], strict=True):
            scores = [f"{own[m].value:.2f} ± {own[m].margin:.2f}{stars[m]}" for m in found.metrics]
            name = f"  {seed.path}" if len(seeds) > 1 else system.name
            lines.append([name, *scores, *costs(seed.cost)])
    used = [i for i, column in enumerate(zip(*lines[1:], strict=True)) if any(column)]
    return [[line[i] for i in used] for line in lines]


def differences(found: Comparison) -> list[str]:
    """A line for each system after the first and each metric."""
    lines = []
    for system, own in zip(found.systems[1:], found.numbers.differences, strict=True):
        for metric, each in own.items():
            p = ", ".join(f"{TESTS[test]} p {p_value(each, test, found.sampling)}" for test in each.p)
            versus = f"{system.name} against {found.systems[0].name}"
            lines.append(f"{versus}: {NAMES[metric]} {each.value:+.2f}, {each.verdict}" + (f" ({p})" if p else ""))
    return lines


def how_tested(found: Comparison) -> str:
    """What a star means, in words."""
    margins = f"± is the 95 % confidence interval of the bootstrap; seed {found.sampling.seed}"
    if len(found.test.references) < FEWEST_LINES:
        words = f"no {STAR}: tests need {FEWEST_LINES} lines, and there are {len(found.test.references)}"
        return f"{words}; {margins}"
    seeds = any(len(seeds) > 1 for seeds in found.translated)
    alpha = f"{found.sampling.alpha:g}"
    words = f"{STAR} differs from {found.systems[0].name}: both paired tests, on sentences, have p < {alpha}"
    if seeds:
        words += ", for each pair of seeds (the largest p is told), and all pairs agree"
    return f"{words}; {margins}"


def how_translated(found: Comparison) -> list[str]:
    """By which keys, and where, models translated here; with their names where that differs."""
    ways: dict[str, list[str]] = {}
    for seeds in found.translated:
        for seed in seeds:
            if seed.cost:
                ways.setdefault(f"{seed.cost.keys}, on {seed.cost.device}", []).append(seed.path)
    return [way if len(ways) == 1 else f"{', '.join(paths)}: {way}" for way, paths in ways.items()]


def as_text(found: Comparison) -> str:
    """The numbers for a terminal or a log."""
    rows = table(found)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    signatures = [
        f"{NAMES[metric]}, {TESTS[test]}: {text}"
        for metric, tests in found.numbers.signatures.items()
        for test, text in tests.items()
    ]
    lines += ["", *differences(found), "", how_tested(found), *signatures]
    lines += [f"translated by {way}" for way in how_translated(found)]
    return "".join(f"{printable(line)}\n" for line in lines)


def as_json(found: Comparison, rows: list[Row]) -> str:
    """All numbers for programs."""
    systems = []
    for index, (system, seeds) in enumerate(zip(found.systems, found.translated, strict=True)):
        own = found.numbers.estimates[index]
        each = [
            {
                "path": seed.path,
                "scores": {m: asdict(e) for m, e in scores.items()},
                "cost": seed.cost and asdict(seed.cost),
            }
            for seed, scores in zip(seeds, own, strict=True)
        ]
        means = {
            m: {"mean": found.numbers.mean(index, m), "deviation": found.numbers.deviation(index, m)} for m in own[0]
        }
        systems.append({"name": system.name, "scores": means, "seeds": each})
    comparisons = [
        {"system": system.name, "against": found.systems[0].name, "metrics": {m: asdict(d) for m, d in own.items()}}
        for system, own in zip(found.systems[1:], found.numbers.differences, strict=True)
    ]
    tree = {
        "test_set": found.test.name,
        "lines": len(found.test.references),
        **asdict(found.sampling),
        "signatures": found.numbers.signatures,
        "systems": systems,
        "comparisons": comparisons,
        "first_is_worse": found.first_is_worse,
        "buckets": [asdict(row) for row in rows],
    }
    return json.dumps(tree, indent=2, ensure_ascii=False) + "\n"
