"""Scores with confidence intervals, and paired tests between systems, by sacreBLEU's own functions.

The p-values are those of `sacrebleu --paired-bs` and `--paired-ar` with the same seed.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
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
    """Scores of all seeds, and the differences of each system after the first to that."""

    scores: list[list[dict[str, Any]]]
    """[system][seed], by metric: value, mean and margin; mean ± margin is the 95 % interval of the bootstrap."""
    means: list[dict[str, Any]]
    """[system], by metric: mean, and standard deviation between seeds, None for one seed."""
    differences: list[dict[str, Difference]]
    """[system after the first], by metric."""
    signatures: dict[str, dict[str, str]]
    """Metric -> test -> signature."""


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
        del os.environ[SEED]
        if before is not None:
            os.environ[SEED] = before


def paired(
    test: str, hypotheses: list[list[str]], references: list[str], metrics: list[str], sampling: Sampling
) -> tuple[dict[str, str], dict[str, list[Result]]]:
    """Test the first hypotheses against each of the others; by metric, the signature, and the result of all."""
    scorers = {NAMES[metric]: sacrebleu_metric(metric, sampling.tokenize) for metric in metrics}
    systems: list[tuple[str, Sequence[str]]] = [(str(number), lines) for number, lines in enumerate(hypotheses)]
    samples = {"bs": sampling.resamples, "ar": sampling.trials}[test]
    with sacrebleu_seed(sampling.seed):
        signatures, results = PairedTest(systems, scorers, [references], test_type=test, n_samples=samples)()
    by_name: dict[str, Any] = results
    return {m: str(signatures[NAMES[m]]) for m in metrics}, {m: by_name[NAMES[m]] for m in metrics}


def measure(systems: list[list[list[str]]], references: list[str], metrics: list[str], sampling: Sampling) -> Numbers:
    """Scores and tests of systems against the first one; `systems` are hypotheses, [system][seed][line]."""
    first, others = systems[0], [seed for system in systems[1:] for seed in system]
    tested = {test: [paired(test, [seed, *others], references, metrics, sampling) for seed in first] for test in TESTS}

    def scores(seed: int, column: int) -> dict[str, Any]:
        results = {m: tested["bs"][seed][1][m][column] for m in metrics}
        return {m: {"value": float(r.score), "mean": r.mean, "margin": r.ci} for m, r in results.items()}

    numbers = Numbers([[scores(seed, 0) for seed in range(len(first))]], [], [], {})
    for system, start in zip(systems[1:], accumulate(map(len, systems[1:]), initial=1), strict=False):
        columns = range(start, start + len(system))
        numbers.scores.append([scores(0, column) for column in columns])
        pairs = {
            m: {test: [results[m][c].p_value for _, results in tested[test] for c in columns] for test in TESTS}
            for m in metrics
        }
        ours, theirs = ({m: [seed[m]["value"] for seed in numbers.scores[side]] for m in metrics} for side in (0, -1))
        alpha, lines = sampling.alpha, len(references)
        numbers.differences.append({m: difference(m, ours[m], theirs[m], pairs[m], alpha, lines) for m in metrics})
    for seeds in numbers.scores:
        values_of = {m: [seed[m]["value"] for seed in seeds] for m in metrics}
        deviation = {m: stdev(values) if len(values) > 1 else None for m, values in values_of.items()}
        numbers.means.append({m: {"mean": fmean(values_of[m]), "deviation": deviation[m]} for m in metrics})
    numbers.signatures = {m: {test: tested[test][0][0][m] for test in TESTS} for m in metrics}
    return numbers


def difference(
    metric: str, first: list[float], other: list[float], p: dict[str, list[Any]], alpha: float, lines: int
) -> Difference:
    """The difference of two systems by the scores of their seeds; `p` has the p-values of all their pairs by test."""
    gaps = [theirs - ours for ours in first for theirs in other]
    value = fmean(gaps)
    better = value < 0 if lower_is_better(metric) else value > 0
    if not any(gaps):  # sacreBLEU gives equal scores the least p-value
        return Difference(value, better, {}, False, "not different at all")
    if lines < FEWEST_LINES:
        return Difference(value, better, {}, False, f"not tested: fewer than {FEWEST_LINES} lines")
    largest = {test: float(max(values)) for test, values in p.items()}
    below = [TESTS[test] for test, most in largest.items() if most < alpha]
    verdict = "not significantly different"
    if len(below) < len(TESTS):
        verdict += f": only the {below[0]} has p < {alpha:g}" if below else ""
    elif not (all(gap > 0 for gap in gaps) or all(gap < 0 for gap in gaps)):
        verdict += ": pairs of seeds disagree which is better"
    else:
        verdict = f"significantly {'better' if better else 'worse'}"
    return Difference(value, better, largest, verdict.startswith("significantly"), verdict)
