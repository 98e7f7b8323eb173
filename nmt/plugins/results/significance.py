"""Scores, significance tests, and where systems differ: scores for buckets of lines, and fault counts.

The tests are those of `sacrebleu --paired-bs` and `--paired-ar`. A row describes a bucket or a fault:

- `title` (of the division, or "Faults"), `label`, `count` (lines), `unit` (name of the score, or "lines")
- `values` of the systems
- `gaps` between the first system and every other: `value`, its 95 % interval from `low` to `high`, `better`, and
  `significant` (the interval excludes zero, and there are enough lines)
"""

import os
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import accumulate, pairwise, repeat
from statistics import fmean, stdev
from typing import Any

import numpy as np
import numpy.typing as npt
from sacrebleu.significance import PairedTest

from nmt.compat import line_statistics, score_of_statistics
from nmt.evaluation import sacrebleu_metric
from nmt.plugins.results.systems import System
from nmt.plugins.results.test_set import TestSet
from nmt.registry import entries_of
from nmt.text import SOURCE, load_tokenizer, scripts_of_language

NAMES = {"bleu": "BLEU", "chrf": "chrF2", "chrf++": "chrF2++", "ter": "TER"}
TESTS = {"bs": "paired bootstrap", "ar": "approximate randomization"}  # sacreBLEU's names for the tests, and ours
SAME = "not different at all"
FEWEST_LINES = 50  # needed for a test; with fewer lines, too many resamples coincide
CHUNK = 50  # resamples drawn at a time
SHORT, LONG, FEW_CHARACTERS = 0.6, 1.6, 10  # bounds of the length relative to the reference's; minimum difference
FREQUENCIES = {1: "never", 10: "1 to 9 times", 100: "10 to 99 times"}  # upper bounds of buckets -> labels
MOST_LINES = 200_000  # count words in at most this many training lines, spread evenly over the corpus

Numbers = npt.NDArray[np.float64]
Row = dict[str, Any]
Division = tuple[str, list[str], list[int]]
"""A title, the labels of its buckets, and the index of each line's bucket."""
Difference = dict[str, Any]
"""How a system compares with the first: `value`, the difference in mean score; `better`; `p`, test -> the largest
p-value of all pairs of seeds (empty if nothing was tested); `significant`, whether both p-values are below alpha for
every pair of seeds, and all pairs agree on the better system; `verdict`, in words."""


@dataclass
class Sampling:
    """Options for the paired bootstrap (Koehn 2004), approximate randomization (Riezler and Maxwell 2005) and BLEU."""

    seed: int = 12345
    resamples: int = 1000
    trials: int = 10000
    alpha: float = 0.05
    tokenize: str = "13a"


def better(metric: str, difference: float) -> bool:
    return difference < 0 if metric == "ter" else difference > 0


def paired(test: str, texts: list[list[str]], references: list[str], metrics: list[str], sampling: Sampling) -> Any:
    """Test all translations against the first; return sacreBLEU's signatures and results by metric name."""
    scorers = {NAMES[metric]: sacrebleu_metric(metric, sampling.tokenize) for metric in metrics}
    systems = [(str(number), lines) for number, lines in enumerate(texts)]
    samples = sampling.resamples if test == "bs" else sampling.trials
    os.environ["SACREBLEU_SEED"] = str(sampling.seed)  # sacreBLEU reads its seed from here
    return PairedTest(systems, scorers, [references], test_type=test, n_samples=samples)()  # type: ignore[arg-type]


def measure(systems: list[System], references: list[str], metrics: list[str], sampling: Sampling) -> dict[str, Any]:
    """Score all systems and test them against the first; the keys are those of `nmt compare --json`.

    A seed's scores have value, mean and margin: mean ± margin is the bootstrap's 95 % interval. A system's scores are
    the mean and deviation over its seeds (deviation None for one seed); its comparison has one Difference per metric.
    """
    first, others = systems[0].seeds, [seed.hypotheses for system in systems[1:] for seed in system.seeds]
    texts = [[seed.hypotheses, *others] for seed in first]
    tested = {test: [paired(test, rows, references, metrics, sampling) for rows in texts] for test in TESTS}
    columns = [range(*span) for span in pairwise(accumulate((len(s.seeds) for s in systems[1:]), initial=1))]

    def scores(seed: int, column: int) -> dict[str, Any]:
        results = {m: tested["bs"][seed][1][NAMES[m]][column] for m in metrics}
        return {m: {"value": float(r.score), "mean": float(r.mean), "margin": float(r.ci)} for m, r in results.items()}

    of_seeds = [[scores(seed, 0) for seed in range(len(first))], *([scores(0, c) for c in span] for span in columns)]
    values = [{m: [seed[m]["value"] for seed in seeds] for m in metrics} for seeds in of_seeds]
    trees = list[dict[str, Any]]()
    for system, of_seed, by_metric in zip(systems, of_seeds, values, strict=True):
        means = {m: {"mean": fmean(v), "deviation": stdev(v) if len(v) > 1 else None} for m, v in by_metric.items()}
        pairs = zip(system.seeds, of_seed, strict=True)
        seeds = [{"path": seed.path, "scores": s, "cost": seed.cost and asdict(seed.cost)} for seed, s in pairs]
        trees.append({"name": system.name, "scores": means, "seeds": seeds})

    def compared(m: str, system: int) -> Difference:
        rows = {test: [results[NAMES[m]] for _, results in tested[test]] for test in TESTS}
        p = {test: [row[column].p_value for row in rows[test] for column in columns[system]] for test in TESTS}
        return difference(m, values[0][m], values[system + 1][m], p, sampling.alpha, len(references))

    against = systems[0].name
    comparisons: list[dict[str, Any]] = [
        {"system": system.name, "against": against, "metrics": {m: compared(m, index) for m in metrics}}
        for index, system in enumerate(systems[1:])
    ]
    decisive = comparisons[0]["metrics"][metrics[0]]
    return {
        "signatures": {m: {test: str(tested[test][0][0][NAMES[m]]) for test in TESTS} for m in metrics},
        "systems": trees,
        "comparisons": comparisons,
        "first_is_worse": decisive["significant"] and decisive["better"],
    }


def difference(
    metric: str, first: list[float], other: list[float], p: dict[str, list[Any]], alpha: float, lines: int
) -> Difference:
    """The difference between two systems, from their seeds' scores; `p`: test -> p-values of all pairs of seeds."""
    gaps = [theirs - ours for ours in first for theirs in other]
    value, significant = fmean(gaps), False
    largest = {test: float(max(values)) for test, values in p.items()}
    below = [name for test, name in TESTS.items() if largest[test] < alpha]
    if not any(gaps):  # sacreBLEU gives equal scores the lowest p-value
        largest, verdict = {}, SAME
    elif lines < FEWEST_LINES:
        largest, verdict = {}, f"not tested: fewer than {FEWEST_LINES} lines"
    elif not below:
        verdict = "not significantly different"
    elif len(below) < len(TESTS):
        verdict = f"not significantly different: only the {below[0]} has p < {alpha:g}"
    elif min(gaps) <= 0 <= max(gaps):
        verdict = "not significantly different: pairs of seeds disagree on which is better"
    else:
        significant, verdict = True, f"significantly {'better' if better(metric, value) else 'worse'}"
    result = {"value": value, "better": better(metric, value), "p": largest}
    return {**result, "significant": significant, "verdict": verdict}


@dataclass
class Details:
    texts: list[list[str]]  # hypotheses of the first seed, [system][line]
    faults: list[list[list[str]]]  # of these hypotheses
    rows: list[Row]
    counted: str  # where the training words were counted; empty if unknown


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def faults_of(source: str | None, reference: str, text: str, scripts: frozenset[str] | None) -> list[str]:
    """What is wrong with a translation: flags, if the source is given, and a length far from the reference's."""
    finders = entries_of("flags").values() if source is not None else ()
    names = [f"flag {flag}" for entry in finders for flag in entry.load()(source, text, scripts, [])]
    if len(reference) - len(text) >= FEW_CHARACTERS and len(text) < SHORT * len(reference):
        names.append(f"under-translated: shorter than {SHORT:.0%} of the reference")
    if len(text) - len(reference) >= FEW_CHARACTERS and len(text) > LONG * len(reference):
        names.append(f"over-translated: longer than {LONG:.0%} of the reference")
    return names


def divisions(test: TestSet) -> tuple[list[Division], str]:
    texts, side = (test.sources, "source") if test.sources else (test.references, "reference")
    lengths = [min(max(len(text.split()) - 1, 0) // 5, 9) for text in texts]
    by_length = f"Words in the {side}", [*(f"{n}-{n + 4}" for n in range(1, 46, 5)), "46+"], lengths
    if test.corpus is None or test.sources is None:
        return [by_length], ""
    tokenizer, split = load_tokenizer(test.corpus.tokenizer_file), test.corpus.split("train")
    chosen = np.unique(np.linspace(0, len(split) - 1, min(len(split), MOST_LINES)).astype(np.int64))
    lines = (tokenizer.decode(ids, SOURCE) for ids in split.table[chosen].column("source").to_pylist())
    frequency, most = Counter(word for line in lines for word in words_of(line)), max(FREQUENCIES)
    rarest = [min((frequency[word] for word in words_of(text)), default=most) for text in texts]
    buckets = [sum(count >= bound for bound in FREQUENCIES) for count in rarest]
    labels = [*FREQUENCIES.values(), f"{most} times or more"]
    where = f"{len(chosen):,} of the {len(split):,} training source lines in {test.corpus.folder}"
    return [by_length, ("Count of its rarest word in training", labels, buckets)], where


@dataclass
class Bootstrap:
    metric: str  # if "", the score is a number of lines, and lower is better
    score: Callable[[Numbers], Numbers]  # summed statistics [N, K] -> scores [N]
    seeds: list[int]  # number of seeds per system
    sampling: Sampling

    def row(self, title: str, label: str, parts: list[Numbers]) -> Row:
        """The row for N lines; `parts` are their K statistics, [N, K], for every seed of every system."""
        rng, count, chunks = np.random.default_rng(self.sampling.seed), len(parts[0]), []
        for start in range(0, self.sampling.resamples, CHUNK):
            size = min(CHUNK, self.sampling.resamples - start)
            draws = rng.multinomial(count, np.full(count, 1 / count), size=size)
            chunks.append(np.stack([self.score(draws @ part) for part in parts], axis=1))
        scores = np.array([self.score(part.sum(0, keepdims=True))[0] for part in parts])
        samples, spans = np.concatenate(chunks), [slice(*pair) for pair in pairwise(np.cumsum([0, *self.seeds]))]
        values, means = [scores[span].mean() for span in spans], [samples[:, span].mean(1) for span in spans]
        gaps = []
        for value, mean in zip(values[1:], means[1:], strict=True):
            gap, (low, high) = float(value - values[0]), np.quantile(mean - means[0], [0.025, 0.975]).tolist()
            significant = count >= FEWEST_LINES and (low > 0 or high < 0)
            is_better = better(self.metric or "ter", gap)
            gaps.append({"value": gap, "low": low, "high": high, "better": is_better, "significant": significant})
        row = {"title": title, "label": label, "count": count, "unit": NAMES.get(self.metric, "lines")}
        return {**row, "values": list(map(float, values)), "gaps": gaps}


def look_closer(systems: list[System], test: TestSet, metric: str, sampling: Sampling) -> Details:
    seeds, texts = [len(s.seeds) for s in systems], [seed.hypotheses for s in systems for seed in s.seeds]
    scripts = scripts_of_language(test.language or "")
    lines = [zip(test.sources or repeat(None, len(text)), test.references, text, strict=True) for text in texts]
    faults, rows = [[faults_of(*line, scripts) for line in text] for text in lines], list[Row]()
    bootstrap = Bootstrap("", lambda sums: sums[:, 0], seeds, sampling)
    for name in dict.fromkeys(name for text in faults for line in text for name in line):
        rows.append(bootstrap.row("Faults", name, [np.array([[float(name in line)] for line in t]) for t in faults]))

    scorer = sacrebleu_metric(metric, sampling.tokenize)
    statistics = [np.array(line_statistics(scorer, text, test.references), np.float64) for text in texts]

    def scores(sums: Numbers) -> Numbers:
        return np.array([score_of_statistics(scorer, row) for row in sums])

    bootstrap, (parted, counted) = Bootstrap(metric, scores, seeds, sampling), divisions(test)
    for title, labels, buckets in parted:
        for index in np.unique(buckets):
            parts = [part[np.array(buckets) == index] for part in statistics]
            rows.append(bootstrap.row(title, labels[index], parts))
    firsts = [0, *accumulate(seeds[:-1])]
    return Details([texts[first] for first in firsts], [faults[first] for first in firsts], rows, counted)
