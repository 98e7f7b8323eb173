"""Scores with confidence intervals, and paired tests between systems, by sacreBLEU's own functions.

The p-values are those of `sacrebleu --paired-bs` and `--paired-ar` with the same seed.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from sacrebleu.significance import PairedTest, Result

from nmt.evaluation import sacrebleu_metric

NAMES = {"bleu": "BLEU", "chrf": "chrF2", "chrf++": "chrF2++", "ter": "TER"}
TESTS = {"bs": "paired bootstrap", "ar": "approximate randomisation"}
"""sacreBLEU's name of a test -> its name for people."""
SEED = "SACREBLEU_SEED"
FEWEST_LINES = 50
"""Lines that a test needs. Fewer have too few different resamples: those of one line are all the same."""


@dataclass
class Sampling:
    """How systems are scored and tested."""

    seed: int = 12345
    resamples: int = 1000
    """Of the paired bootstrap (Koehn 2004)."""
    trials: int = 10000
    """Of approximate randomisation (Riezler and Maxwell 2005)."""
    alpha: float = 0.05
    tokenize: str = "13a"
    """Of BLEU."""

    def least_p(self, test: str) -> float:
        """The least p-value that a test can give."""
        return 1 / (1 + {"bs": self.resamples, "ar": self.trials}[test])


@dataclass
class Estimate:
    """A corpus score and its 95 % confidence interval, mean ± margin of the bootstrap's resamples."""

    value: float
    mean: float
    margin: float


@dataclass
class Difference:
    """A system against the first one, by one metric."""

    value: float
    """The mean score of its seeds minus that of the first system's."""
    better: bool
    p: dict[str, float]
    """Test -> p-value; of several seeds, the largest of all pairs of them. Empty where there is nothing to test."""
    significant: bool
    """True where both tests are below alpha, for every pair of seeds, and all pairs agree which is better."""
    verdict: str
    """The outcome in words; where a test is below alpha and the difference is not significant, with the reason."""


@dataclass
class Numbers:
    """Scores of all seeds, and of each system after the first its difference to that; by metric."""

    estimates: list[list[dict[str, Estimate]]]
    """[system][seed]."""
    differences: list[dict[str, Difference]]
    """[system after the first]."""
    signatures: dict[str, dict[str, str]]
    """Metric -> test -> signature."""

    def mean(self, system: int, metric: str) -> float:
        return fmean(seed[metric].value for seed in self.estimates[system])

    def deviation(self, system: int, metric: str) -> float | None:
        """The standard deviation between seeds; None for one seed."""
        values = [seed[metric].value for seed in self.estimates[system]]
        return stdev(values) if len(values) > 1 else None


Tested = tuple[dict[str, str], dict[str, list[Result]]]
"""Signatures, and the results of all hypotheses, by metric."""


def lower_is_better(metric: str) -> bool:
    return metric == "ter"


@contextmanager
def sacrebleu_seed(seed: int) -> Iterator[None]:
    """sacreBLEU reads its seed from the environment."""
    before = os.environ.get(SEED)
    os.environ[SEED] = str(seed)
    try:
        yield
    finally:
        if before is None:
            del os.environ[SEED]
        else:
            os.environ[SEED] = before


def paired(
    test: str, hypotheses: list[list[str]], references: list[str], metrics: list[str], sampling: Sampling
) -> Tested:
    """Test the first hypotheses against each of the others; by metric, the signature, and the result of all."""
    scorers = {NAMES[metric]: sacrebleu_metric(metric, sampling.tokenize) for metric in metrics}
    systems: list[tuple[str, Sequence[str]]] = [(str(number), lines) for number, lines in enumerate(hypotheses)]
    samples = {"bs": sampling.resamples, "ar": sampling.trials}[test]
    with sacrebleu_seed(sampling.seed):
        signatures, found = PairedTest(systems, scorers, [references], test_type=test, n_samples=samples)()
    results: dict[str, Any] = found
    return (
        {metric: str(signatures[NAMES[metric]]) for metric in metrics},
        {metric: results[NAMES[metric]] for metric in metrics},
    )


def measure(systems: list[list[list[str]]], references: list[str], metrics: list[str], sampling: Sampling) -> Numbers:
    """Scores and tests of systems against the first one; `systems` are hypotheses, [system][seed][line]."""
    first, others = systems[0], [seed for system in systems[1:] for seed in system]
    found = {test: [paired(test, [seed, *others], references, metrics, sampling) for seed in first] for test in TESTS}
    signatures = {metric: {test: found[test][0][0][metric] for test in TESTS} for metric in metrics}
    bootstraps = [results for _, results in found["bs"]]
    rows = [{m: estimate(results[m][0]) for m in metrics} for results in bootstraps]
    rows += [{m: estimate(bootstraps[0][m][1 + index]) for m in metrics} for index in range(len(others))]
    counts = [len(system) for system in systems]
    starts = [sum(counts[:index]) for index in range(len(counts))]
    estimates = [rows[start : start + count] for start, count in zip(starts, counts, strict=True)]
    differences = []
    for own, start in zip(estimates[1:], starts[1:], strict=True):
        first_column = start - len(first) + 1
        columns = range(first_column, first_column + len(own))
        p = {m: {t: p_values(found[t], m, columns) for t in TESTS} for m in metrics}
        differences.append(
            {m: difference(m, estimates[0], own, p[m], sampling.alpha, len(references)) for m in metrics}
        )
    return Numbers(estimates, differences, signatures)


def p_values(found: list[Tested], metric: str, columns: range) -> list[float]:
    """The p-values of the seeds in these columns, against each seed of the first system."""
    values = [results[metric][column].p_value for _, results in found for column in columns]
    assert None not in values
    return [float(value) for value in values if value is not None]


def estimate(result: Result) -> Estimate:
    assert result.mean is not None and result.ci is not None  # noqa: PT018
    return Estimate(float(result.score), float(result.mean), float(result.ci))


def difference(
    metric: str,
    first: list[dict[str, Estimate]],
    other: list[dict[str, Estimate]],
    p: dict[str, list[float]],
    alpha: float,
    lines: int,
) -> Difference:
    """The difference of two systems by a metric; `p` has, for each test, the p-values of all pairs of seeds."""
    gaps = [theirs[metric].value - ours[metric].value for ours in first for theirs in other]
    value = fmean(gaps)
    better = value < 0 if lower_is_better(metric) else value > 0
    if not any(gaps):  # sacreBLEU gives equal scores the least p-value
        return Difference(value, better, {}, False, "not different at all")
    if lines < FEWEST_LINES:
        return Difference(value, better, {}, False, f"not tested: fewer than {FEWEST_LINES} lines")
    largest = {test: max(values) for test, values in p.items()}
    below = [TESTS[test] for test, most in largest.items() if most < alpha]
    verdict = "not significantly different"
    if len(below) < len(TESTS):
        verdict += f": only the {below[0]} has p < {alpha:g}" if below else ""
    elif not (all(gap > 0 for gap in gaps) or all(gap < 0 for gap in gaps)):
        verdict += ": pairs of seeds disagree which is better"
    else:
        verdict = f"significantly {'better' if better else 'worse'}"
    return Difference(value, better, largest, verdict.startswith("significantly"), verdict)
