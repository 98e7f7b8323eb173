"""Scores with confidence intervals, and paired tests, as by `sacrebleu --paired-bs` and `--paired-ar`."""

import os
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import fmean, stdev
from typing import Any

from sacrebleu.significance import PairedTest

from nmt.evaluation import sacrebleu_metric

NAMES = {"bleu": "BLEU", "chrf": "chrF2", "chrf++": "chrF2++", "ter": "TER"}
TESTS = {"bs": "paired bootstrap", "ar": "approximate randomization"}
"""sacreBLEU's names of the tests, and ours."""
FEWEST_LINES = 50
"""Lines that a test needs; with fewer, too many resamples are alike."""

Difference = dict[str, Any]
"""A system against the first: `value`, the difference of their mean scores; `better`; `p`, test -> the largest p-value
of all pairs of seeds (empty if nothing was tested); `significant`: both tests are below alpha for every pair of seeds,
and all pairs agree on the better system; `verdict`, in words."""


@dataclass
class Sampling:
    """Options of the paired bootstrap (Koehn 2004), approximate randomization (Riezler and Maxwell 2005) and BLEU."""

    seed: int = 12345
    resamples: int = 1000
    trials: int = 10000
    alpha: float = 0.05
    tokenize: str = "13a"


def better(metric: str, difference: float) -> bool:
    return difference < 0 if metric == "ter" else difference > 0


def paired(test: str, texts: list[list[str]], references: list[str], metrics: list[str], sampling: Sampling) -> Any:
    """Test all texts against the first: sacreBLEU's signatures, and its results by the metric's name."""
    scorers = {NAMES[metric]: sacrebleu_metric(metric, sampling.tokenize) for metric in metrics}
    systems = [(str(number), lines) for number, lines in enumerate(texts)]
    samples = sampling.resamples if test == "bs" else sampling.trials
    os.environ["SACREBLEU_SEED"] = str(sampling.seed)  # sacreBLEU reads its seed from there
    return PairedTest(systems, scorers, [references], test_type=test, n_samples=samples)()  # type: ignore[arg-type]


def measure(
    systems: list[list[list[str]]], references: list[str], metrics: list[str], sampling: Sampling
) -> dict[str, Any]:
    """Score all systems, hypotheses [system][seed][line], and test them against the first.

    - signatures: metric -> test -> signature
    - scores: [system][seed], metric -> value, mean and margin; mean ± margin is the 95 % interval of the bootstrap
    - means: [system], metric -> mean, and standard deviation between seeds (None for one seed)
    - differences: [system after the first], metric -> Difference
    """
    first, others = systems[0], [seed for system in systems[1:] for seed in system]
    tested = {test: [paired(test, [seed, *others], references, metrics, sampling) for seed in first] for test in TESTS}
    columns = [range(*span) for span in pairwise(accumulate(map(len, systems[1:]), initial=1))]

    def scores(seed: int, column: int) -> dict[str, Any]:
        results = {m: tested["bs"][seed][1][NAMES[m]][column] for m in metrics}
        return {m: {"value": float(r.score), "mean": float(r.mean), "margin": float(r.ci)} for m, r in results.items()}

    of_seeds = [[scores(seed, 0) for seed in range(len(first))], *([scores(0, c) for c in span] for span in columns)]
    values = [{m: [seed[m]["value"] for seed in seeds] for m in metrics} for seeds in of_seeds]

    def compared(m: str, system: int) -> Difference:
        rows = {test: [results[NAMES[m]] for _, results in tested[test]] for test in TESTS}
        p = {test: [row[column].p_value for row in rows[test] for column in columns[system]] for test in TESTS}
        return difference(m, values[0][m], values[system + 1][m], p, sampling.alpha, len(references))

    return {
        "signatures": {m: {test: str(tested[test][0][0][NAMES[m]]) for test in TESTS} for m in metrics},
        "scores": of_seeds,
        "means": [
            {m: {"mean": fmean(v), "deviation": stdev(v) if len(v) > 1 else None} for m, v in by_metric.items()}
            for by_metric in values
        ],
        "differences": [{m: compared(m, system) for m in metrics} for system in range(len(columns))],
    }


def difference(
    metric: str, first: list[float], other: list[float], p: dict[str, list[Any]], alpha: float, lines: int
) -> Difference:
    """The difference of two systems by the scores of their seeds; `p`: test -> p-values of all pairs of seeds."""
    gaps = [theirs - ours for ours in first for theirs in other]
    value, significant = fmean(gaps), False
    largest = {test: float(max(values)) for test, values in p.items()}
    below = [name for test, name in TESTS.items() if largest[test] < alpha]
    if not any(gaps):  # sacreBLEU gives equal scores the least p-value
        largest, verdict = {}, "not different at all"
    elif lines < FEWEST_LINES:
        largest, verdict = {}, f"not tested: fewer than {FEWEST_LINES} lines"
    elif not below:
        verdict = "not significantly different"
    elif len(below) < len(TESTS):
        verdict = f"not significantly different: only the {below[0]} has p < {alpha:g}"
    elif min(gaps) <= 0 <= max(gaps):
        verdict = "not significantly different: pairs of seeds disagree which is better"
    else:
        significant, verdict = True, f"significantly {'better' if better(metric, value) else 'worse'}"
    result = {"value": value, "better": better(metric, value), "p": largest}
    return {**result, "significant": significant, "verdict": verdict}
