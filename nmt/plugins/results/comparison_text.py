"""The output of `nmt compare`: a table of scores, and a verdict for each system.

The functions read the record that `nmt compare --json` prints; see significance.py.
"""

from typing import Any

from nmt import files
from nmt.config import title_of_metric
from nmt.plugins.results.significance import FEWEST_LINES, SAME, TESTS

COSTS = ("sentences/s", "tokens/s", "size", "memory")
Tree = dict[str, Any]


def p_value(tree: Tree, difference: Tree, test: str) -> str:
    """A p-value with its sign, such as `= 0.0123`; empty if nothing was tested."""
    p = difference["p"].get(test)
    if p is None:
        return ""
    # Of n samples and the test set itself, at least one is as extreme as the test set.
    samples = tree["resamples"] if test == "bs" else tree["trials"]
    # A smaller p cannot be measured, so this one is an upper bound.
    least = 1 / (1 + samples)
    return f"<= {least:.2g}" if p <= least else f"= {p:.4f}"


def costs(cost: Tree | None) -> list[str]:
    """The cells of the columns COSTS, empty where a cost is unknown; a file has no costs."""
    if cost is None:
        return [""] * len(COSTS)
    cells = []
    for count in ("lines", "tokens"):
        # A clock may not advance for a tiny test set.
        speed = cost[count] / (cost["seconds"] or 1)
        cells.append(f"{speed:,.0f}" if speed >= 100 else f"{speed:,.1f}")
    for key in ("size", "memory"):
        megabytes = cost[key] / 1e6
        cells.append(f"{megabytes:,.0f} MB" if cost[key] else "")
    return cells


def how_tested(tree: Tree) -> str:
    """The explanation of the asterisk and ±."""
    if tree["lines"] < FEWEST_LINES:
        asterisk = f"no *: tests need {FEWEST_LINES} lines, but there are only {tree['lines']}"
    else:
        baseline = tree["systems"][0]["name"]
        tests = f"both paired tests, on sentences, give p < {tree['alpha']:g}"
        asterisk = f"* differs from {baseline}: {tests}"
        if any(len(system["seeds"]) > 1 for system in tree["systems"]):
            asterisk += " for every pair of seeds (the largest p is shown), and all pairs agree"
    interval = "± is the bootstrap's 95% confidence interval"
    return f"{asterisk}; {interval}; seed {tree['seed']}"


def how_translated(tree: Tree) -> list[str]:
    """Each way of translating, after the systems that it applies to."""
    paths_by_way: dict[str, list[str]] = {}
    for system in tree["systems"]:
        for seed in system["seeds"]:
            cost = seed["cost"]
            if cost:
                way = f"{cost['keys']}, on {cost['device']}"
                paths_by_way.setdefault(way, []).append(seed["path"])
    return [f"{', '.join(paths)}: {way}" for way, paths in paths_by_way.items()]


def as_text(tree: Tree) -> str:
    lines = [*table_of_scores(tree), "", *verdicts(tree), "", how_tested(tree)]
    for metric, signatures in tree["signatures"].items():
        for test, signature in signatures.items():
            lines.append(f"{title_of_metric(metric)}, {TESTS[test]}: {signature}")
    lines += [f"translated with {way}" for way in how_translated(tree)]
    # Names of systems are those of files, which can contain control characters.
    return "".join(f"{files.printable(line)}\n" for line in lines)


def table_of_scores(tree: Tree) -> list[str]:
    """The lines of the table of scores, without empty columns."""
    rows = [["system", *(title_of_metric(metric) for metric in tree["signatures"]), *COSTS]]
    baseline, *rivals = tree["systems"]
    rows += rows_of_system(baseline, significant=set())
    for system, comparison in zip(rivals, tree["comparisons"], strict=True):
        differences = comparison["metrics"].items()
        significant = {metric for metric, tested in differences if tested["significant"]}
        rows += rows_of_system(system, significant)
    padded_columns = []
    for column in zip(*rows, strict=True):
        # Files of translations have no costs, and other systems no memory outside of Linux.
        if any(column[1:]):
            width = max(map(len, column))
            padded_columns.append([cell.ljust(width) for cell in column])
    return ["  ".join(row).rstrip() for row in zip(*padded_columns, strict=True)]


def rows_of_system(system: Tree, significant: set[str]) -> list[list[str]]:
    """A row for a system, or for several seeds a row for their mean and one for each of them.

    `significant` has the metrics that get an asterisk.
    """
    seeds = system["seeds"]
    if len(seeds) == 1:
        cells = seed_cells(seeds[0], significant)
        return [[system["name"], *cells, *costs(seeds[0]["cost"])]]
    means = []
    for metric, score in system["scores"].items():
        asterisk = "*" if metric in significant else ""
        # No interval: the bootstrap's is about the lines of one seed, not about the seeds.
        means.append(f"{score['mean']:.2f} (sd {score['deviation']:.2f}){asterisk}")
    rows = [[f"{system['name']}, {len(seeds)} seeds", *means, *costs(None)]]
    for seed in seeds:
        cells = seed_cells(seed, significant=set())
        rows.append([f"  {seed['path']}", *cells, *costs(seed["cost"])])
    return rows


def seed_cells(seed: Tree, significant: set[str]) -> list[str]:
    cells = []
    for metric, score in seed["scores"].items():
        asterisk = "*" if metric in significant else ""
        cells.append(f"{score['value']:.2f} ± {score['margin']:.2f}{asterisk}")
    return cells


def verdicts(tree: Tree) -> list[str]:
    """A line for each metric of each comparison; one line for systems that do not differ at all."""
    lines = []
    for comparison in tree["comparisons"]:
        versus = f"{comparison['system']} against {comparison['against']}"
        differences = comparison["metrics"]
        # Systems with equal translations would get the same line for each metric.
        if all(difference["verdict"] == SAME for difference in differences.values()):
            lines.append(f"{versus}: {SAME}")
            continue
        for metric, difference in differences.items():
            gap = f"{title_of_metric(metric)} {difference['value']:+.2f}"
            line = f"{versus}: {gap}, {difference['verdict']}"
            tests = [
                f"{TESTS[test]} p {p_value(tree, difference, test)}" for test in difference["p"]
            ]
            if tests:
                line += f" ({', '.join(tests)})"
            lines.append(line)
    return lines
