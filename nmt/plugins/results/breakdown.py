"""Differences between systems: scores in buckets of lines, and the frequency of each fault.

A row describes a bucket or a fault:

- `title` (of the division, or "Faults"), `label`, `count` (lines), `unit` (name of the score, or
  "lines")
- `values` of the systems
- `gaps` between the first system and every other: `value`, its 95% interval from `low` to `high`,
  `better`, and `significant` (the interval excludes zero, and there are enough lines)

Shapes: N lines, K statistics of a line, R resamples, S seeds of all systems.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from nmt import compat
from nmt.config import title_of_metric
from nmt.flags import flags
from nmt.plugins.results.buckets import divisions
from nmt.plugins.results.options import CompareConfig
from nmt.plugins.results.scorers import Scorers
from nmt.plugins.results.significance import FEWEST_LINES, better
from nmt.plugins.results.systems import System
from nmt.plugins.results.test_set import TestSet
from nmt.text import scripts_of_language

SHORTEST_SHARE = 0.6
"""A translation with a smaller share of the reference's length is under-translated."""
LONGEST_SHARE = 1.6
"""A translation with a larger share of the reference's length is over-translated."""
FEW_CHARACTERS = 10
"""A smaller difference in length is not a fault: short lines vary by more than their share."""

Numbers = npt.NDArray[np.float64]
Row = dict[str, Any]
Faults = list[list[str]]  # the faults of every line of a text


def faults_of(
    source: str | None, reference: str, text: str, scripts: frozenset[str] | None
) -> list[str]:
    """The faults of a translation.

    They are flags, if the source is given, and a length far from the reference's.
    """
    faults = []
    if source is not None:
        faults += [f"flag {flag}" for flag in flags(source, text, scripts)]
    missing = len(reference) - len(text)
    # Length is counted in characters, which needs no rules for words in any script.
    if missing >= FEW_CHARACTERS and len(text) < SHORTEST_SHARE * len(reference):
        faults.append(f"under-translated: shorter than {SHORTEST_SHARE:.0%} of the reference")
    if -missing >= FEW_CHARACTERS and len(text) > LONGEST_SHARE * len(reference):
        faults.append(f"over-translated: longer than {LONGEST_SHARE:.0%} of the reference")
    return faults


@dataclass
class Bootstrap:
    """Intervals of score differences, from resampled lines (Koehn 2004)."""

    unit: str
    """Name of the score, or "lines"."""
    is_better: Callable[[float], bool]
    """Whether a difference from the first system is an improvement."""
    score: Callable[[Numbers], float]
    """Computes a score from the sum of the lines' statistics, [K]."""
    spans: list[slice]
    """The place of each system's seeds among the seeds of all systems."""
    config: CompareConfig

    def row(self, title: str, label: str, statistics: list[Numbers]) -> Row:
        """The row for N lines; `statistics` has those of every seed of every system, [N, K]."""
        count = len(statistics[0])
        samples_RS = self.resample(statistics)
        # The sum of the lines' statistics gives the score of the corpus, so lines are scored only
        # once.
        scores_S = np.array([self.score(lines_NK.sum(0)) for lines_NK in statistics])
        values = [float(scores_S[span].mean()) for span in self.spans]
        # All seeds of a system are resampled together, so that their mean stays paired.
        samples = [samples_RS[:, span].mean(1) for span in self.spans]
        gaps = []
        for value, samples_R in zip(values[1:], samples[1:], strict=True):
            gap = value - values[0]
            # 2.5% on each side: the bootstrap's 95% interval.
            low, high = np.quantile(samples_R - samples[0], [0.025, 0.975]).tolist()
            # The interval of the difference, since those of two systems can overlap although one of
            # them is better on nearly all resamples.
            excludes_zero = low > 0 or high < 0
            gaps.append(
                {
                    "value": gap,
                    "low": low,
                    "high": high,
                    "better": self.is_better(gap),
                    "significant": count >= FEWEST_LINES and excludes_zero,
                }
            )
        return {
            "title": title,
            "label": label,
            "count": count,
            "unit": self.unit,
            "values": values,
            "gaps": gaps,
        }

    def resample(self, statistics: list[Numbers]) -> Numbers:
        """The scores of resamples of the lines, the same lines for all seeds: [R, S]."""
        # The same seed for each row, so a row does not depend on the rows before it.
        generator = np.random.default_rng(self.config.seed)
        count = len(statistics[0])
        chances_N = np.full(count, 1 / count)
        samples = []
        for _ in range(self.config.resamples):
            # How often each line is drawn; the sums follow without a copy of the lines.
            # A matrix product instead of indexing: R resamples of N lines would copy R x N rows.
            draws_N = generator.multinomial(count, chances_N)
            samples.append([self.score(draws_N @ lines_NK) for lines_NK in statistics])
        return np.array(samples)


def look_closer(
    systems: list[System], test: TestSet, config: CompareConfig, scorers: Scorers
) -> tuple[list[Row], str]:
    """Compare systems by kinds of faults, and by the first metric in buckets of similar lines.

    A fault is, for example, a repetition; a bucket contains the lines of similar length, or those
    with rare words. Returns the rows of both tables, and the name of the corpus in which training
    words were counted ("" if unknown).
    """
    spans = []
    translations: list[list[str]] = []
    for system in systems:
        start = len(translations)
        translations += [seed.hypotheses for seed in system.seeds]
        spans.append(slice(start, len(translations)))
    rows = fault_rows(translations, test, spans, config)

    metric = config.metrics[0]
    scorer = scorers.make(metric)
    statistics = []
    for lines in translations:
        of_lines = compat.line_statistics(scorer, lines, test.references)
        statistics.append(np.array(of_lines, np.float64))
    bootstrap = Bootstrap(
        unit=title_of_metric(metric),
        is_better=lambda gap: better(metric, gap),
        score=lambda sums: compat.score_of_statistics(scorer, sums),
        spans=spans,
        config=config,
    )
    all_divisions, counted = divisions(test)
    # `buckets` has the bucket of each line, an index into `labels`.
    for title, labels, buckets in all_divisions:
        for index in np.unique(buckets):
            # `np.unique` skips buckets without lines.
            in_bucket = np.array(buckets) == index
            parts = [lines_NK[in_bucket] for lines_NK in statistics]
            rows.append(bootstrap.row(title, labels[index], parts))
    return rows, counted


def fault_rows(
    translations: list[list[str]], test: TestSet, spans: list[slice], config: CompareConfig
) -> list[Row]:
    """A row for each fault, in the order of their first appearance."""
    faults = [faults_of_lines(test, lines) for lines in translations]
    # A dictionary, because it keeps the order, which a set does not.
    names: dict[str, None] = {}
    for of_lines in faults:
        for of_line in of_lines:
            names |= dict.fromkeys(of_line)
    bootstrap = Bootstrap(
        unit="lines",
        is_better=lambda gap: gap < 0,
        score=lambda sums: float(sums[0]),
        spans=spans,
        config=config,
    )
    rows = []
    for name in names:
        statistics = [has_fault(name, of_lines) for of_lines in faults]
        rows.append(bootstrap.row("Faults", name, statistics))
    return rows


def faults_of_lines(test: TestSet, translations: list[str]) -> Faults:
    scripts = scripts_of_language(test.language or "")
    sources = test.sources or repeat(None, len(translations))
    lines = zip(sources, test.references, translations, strict=True)
    faults = []
    for source, reference, text in lines:
        faults.append(faults_of(source, reference, text, scripts))
    return faults


def has_fault(name: str, faults: Faults) -> Numbers:
    """1 for each line with the fault, 0 for each other line: [N, 1]."""
    return np.array([[float(name in of_line)] for of_line in faults])
