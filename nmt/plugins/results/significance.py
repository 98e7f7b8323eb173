"""Score systems and test whether each differs from the first, the baseline.

The tests are those of `sacrebleu --paired-bs` and `--paired-ar`: a paired bootstrap (Koehn 2004)
and approximate randomization (Riezler and Maxwell 2005). With several seeds per system, every pair
of a baseline's seed and another system's seed is tested.
"""

from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Any

from nmt import evaluation
from nmt.config import title_of_metric
from nmt.extensions import MetricEntry
from nmt.plugins.results.options import CompareConfig
from nmt.plugins.results.scorers import Scorers
from nmt.plugins.results.systems import Seed, System
from nmt.registry import entries_of

TESTS = {
    "bs": "paired bootstrap",
    "ar": "approximate randomization",
}
"""sacreBLEU's name of a test -> nmt's name."""
SAME = "not different at all"
# sacreBLEU's tests return their smallest possible p for a single line, because all resamples are
# identical.
FEWEST_LINES = 50
"""The minimum number of lines for a test; with fewer, too many resamples coincide."""


@dataclass(frozen=True)
class SeedScore:
    """A score of one seed: `mean` ± `margin` is the bootstrap's 95% interval."""

    value: float
    mean: float
    margin: float


Scores = dict[str, SeedScore]  # by metric


@dataclass(frozen=True)
class PairedResult:
    """The results of sacreBLEU's test of one seed of the baseline against all other systems.

    `results` has for each metric the result of the baseline's seed, then those of the seeds of all
    other systems, in order.
    """

    signatures: dict[str, str]
    results: dict[str, list[Any]]

    def scores(self, column: int) -> Scores:
        """The scores in a column of the results; only a bootstrap has means and margins."""
        scores = {}
        for metric, results in self.results.items():
            result = results[column]
            scores[metric] = SeedScore(
                value=float(result.score),
                mean=float(result.mean),
                margin=float(result.ci),
            )
        return scores


def better(metric: str, difference: float) -> bool:
    """Whether a system with this score difference from another is better."""
    if entries_of(MetricEntry)[metric].lower_is_better:
        return difference < 0
    return difference > 0


def paired_test(
    test: str,
    translations: list[list[str]],
    references: list[str],
    config: CompareConfig,
    scorers: Scorers,
) -> PairedResult:
    """Test all translations against the first of them."""
    names = {metric: title_of_metric(metric) for metric in config.metrics}
    tested = {name: scorers.make(metric) for metric, name in names.items()}
    samples = config.resamples if test == "bs" else config.trials
    paired = evaluation.paired_test(test, translations, references, tested, samples, config.seed)
    return PairedResult(
        signatures={metric: paired.signatures[name] for metric, name in names.items()},
        results={metric: paired.results[name] for metric, name in names.items()},
    )


def run_test(
    test: str,
    systems: list[System],
    references: list[str],
    config: CompareConfig,
    scorers: Scorers,
) -> list[PairedResult]:
    """Test each seed of the first system against all seeds of the other systems."""
    baseline, *rivals = systems
    translations = []
    for rival in rivals:
        translations += [seed.hypotheses for seed in rival.seeds]
    results = []
    for seed in baseline.seeds:
        # sacreBLEU tests all systems against the first one.
        texts = [seed.hypotheses, *translations]
        results.append(paired_test(test, texts, references, config, scorers))
    return results


def measure(
    systems: list[System], references: list[str], config: CompareConfig, scorers: Scorers
) -> dict[str, Any]:
    """Score all systems and test them against the first.

    The keys are those of `nmt compare --json`.

    A system's scores are the mean and deviation over its seeds (deviation None for one seed). Its
    comparison has a difference for each metric.
    """
    baseline, *rivals = systems
    tests = {test: run_test(test, systems, references, config, scorers) for test in TESTS}
    bootstraps = tests["bs"]
    baseline_scores = [bootstrap.scores(0) for bootstrap in bootstraps]
    trees = [system_tree(baseline, baseline_scores, config.metrics)]
    comparisons: list[dict[str, Any]] = []
    # Columns are seeds, so a system has one column per seed.
    column = 1  # the baseline is in column 0
    for rival in rivals:
        columns = range(column, column + len(rival.seeds))
        column = columns.stop
        # A score does not depend on the seed of the baseline that it is compared with.
        scores = [bootstraps[0].scores(index) for index in columns]
        trees.append(system_tree(rival, scores, config.metrics))
        metrics = {}
        for metric in config.metrics:
            gaps = score_gaps(baseline_scores, scores, metric)
            # The least significant pair of seeds decides, so a lucky seed proves nothing.
            p = largest_p_values(tests, metric, columns)
            metrics[metric] = difference(metric, gaps, p, config.alpha, len(references))
        comparison = {"system": rival.name, "against": baseline.name, "metrics": metrics}
        comparisons.append(comparison)

    signatures = {}
    for metric in config.metrics:
        of_metric = {}
        for test, results in tests.items():
            of_metric[test] = results[0].signatures[metric]
        signatures[metric] = of_metric
    # `fail_if` compares the first two systems by the first metric. "better" is that of the second
    # system.
    decisive = comparisons[0]["metrics"][config.metrics[0]]
    return {
        "signatures": signatures,
        "systems": trees,
        "comparisons": comparisons,
        "first_is_worse": decisive["significant"] and decisive["better"],
    }


def system_tree(system: System, scores: list[Scores], metrics: list[str]) -> dict[str, Any]:
    """A system with the scores of each of its seeds, their mean and their standard deviation."""
    summary = {}
    for metric in metrics:
        values = [of_seed[metric].value for of_seed in scores]
        # The standard deviation of a sample needs two values.
        deviation = stdev(values) if len(values) > 1 else None
        summary[metric] = {"mean": fmean(values), "deviation": deviation}
    seeds = []
    for seed, of_seed in zip(system.seeds, scores, strict=True):
        seeds.append(seed_tree(seed, of_seed))
    return {"name": system.name, "scores": summary, "seeds": seeds}


def seed_tree(seed: Seed, scores: Scores) -> dict[str, Any]:
    return {
        "path": seed.path,
        "scores": {metric: asdict(score) for metric, score in scores.items()},
        "cost": asdict(seed.cost) if seed.cost else None,
    }


def score_gaps(baseline: list[Scores], rival: list[Scores], metric: str) -> list[float]:
    """The score differences of all pairs of a rival's seed and a baseline's seed."""
    gaps = []
    for ours in baseline:
        for theirs in rival:
            gaps.append(theirs[metric].value - ours[metric].value)
    return gaps


def largest_p_values(
    tests: dict[str, list[PairedResult]], metric: str, columns: range
) -> dict[str, float]:
    """For each test, the largest p-value of all pairs of seeds; `columns` are those of a rival."""
    largest = {}
    for test, of_baseline_seeds in tests.items():
        p_values = []
        for paired in of_baseline_seeds:
            results = paired.results[metric]
            p_values += [float(results[column].p_value) for column in columns]
        largest[test] = max(p_values)
    return largest


def difference(
    metric: str, gaps: list[float], p: dict[str, float], alpha: float, lines: int
) -> dict[str, Any]:
    """The mean of the score differences `gaps` of all pairs of seeds, and a verdict.

    `p` has the p-value of each test; in the result, it is empty if nothing was tested.
    """
    value = fmean(gaps)
    # Of the mean; the verdict also needs all pairs to agree.
    is_better = better(metric, value)
    significant = False
    below = [name for test, name in TESTS.items() if p[test] < alpha]
    if not any(gaps):  # sacreBLEU gives equal scores the lowest p-value
        p = {}
        verdict = SAME
    elif lines < FEWEST_LINES:
        p = {}
        verdict = f"not tested: fewer than {FEWEST_LINES} lines"
    elif not below:
        verdict = "not significantly different"
    elif len(below) < len(TESTS):
        verdict = f"not significantly different: only the {below[0]} has p < {alpha:g}"
    elif min(gaps) <= 0 <= max(gaps):
        verdict = "not significantly different: pairs of seeds disagree on which is better"
    else:
        significant = True
        verdict = "significantly better" if is_better else "significantly worse"
    return {
        "value": value,
        "better": is_better,
        "p": p,
        "significant": significant,
        "verdict": verdict,
    }
