"""Where systems differ: scores of lines in buckets, and counts of faults, with bootstrapped intervals.

Lines are resampled, the same ones for all systems, with the seed of the tests. Shapes: N lines, S seeds of all systems,
R resamples, K statistics of a line.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from nmt.compat import line_statistics, score_of_statistics
from nmt.evaluation import sacrebleu_metric
from nmt.plugins.compare.lines import FAULTS, Division, Line, divisions, training_words
from nmt.plugins.compare.significance import FEWEST_LINES, NAMES, Sampling, lower_is_better
from nmt.translation import TestSet

Numbers = npt.NDArray[np.float64]
CHUNK = 50
"""Resamples that are drawn at once."""
SURE = 2.0
"""Standard deviations beyond which a difference is reported on top."""


@dataclass
class Gap:
    """The difference of a system to the first, in a bucket."""

    value: float
    low: float
    """Of the 95 % interval of the paired bootstrap."""
    high: float
    strength: float
    """The difference in standard deviations of its resamples; of a bucket, that of what it is beyond the difference in
    all other lines, if that is less."""
    better: bool
    significant: bool
    """True where the interval leaves out zero, and there are enough lines."""


@dataclass
class Row:
    """A bucket of lines, or a fault."""

    title: str
    """Of the division it is of; "Faults" for a fault."""
    label: str
    count: int
    """Lines in the bucket, or in which the fault can be."""
    unit: str
    """Name of the score; "lines" for a fault."""
    values: list[float]
    """Of each system; of several seeds, the mean."""
    gaps: list[Gap]
    """Of each system after the first."""


@dataclass
class Scale:
    """How statistics of lines become scores of systems."""

    unit: str
    score: Callable[[Numbers], Numbers]
    """Scores [M] of summed statistics [M, K]."""
    lower_is_better: bool
    seeds: list[int]
    """The number of seeds of each system."""
    sampling: Sampling

    def gaps(self, parts: list[Numbers]) -> tuple[list[float], list[float], Numbers]:
        """Scores of the systems, their differences to the first, and these resampled, [R, systems - 1].

        Each part is [N, K].
        """
        rng, count, chunks = np.random.default_rng(self.sampling.seed), len(parts[0]), []
        for start in range(0, self.sampling.resamples, CHUNK):
            size = min(CHUNK, self.sampling.resamples - start)
            draws = rng.multinomial(count, np.full(count, 1 / count), size=size)
            chunks.append(np.stack([self.score(draws @ part) for part in parts], axis=1))
        whole, samples = np.array([self.score(part.sum(0, keepdims=True))[0] for part in parts]), np.concatenate(chunks)
        spans = [slice(*pair) for pair in pairwise(np.cumsum([0, *self.seeds]))]
        values = [float(whole[span].mean()) for span in spans]
        means = np.stack([samples[:, span].mean(1) for span in spans], axis=1)
        return values, [value - values[0] for value in values[1:]], means[:, 1:] - means[:, :1]


def in_deviations(value: float, samples: Numbers) -> float:
    """A value in standard deviations of its resamples."""
    return abs(value) / (float(samples.std()) + 1e-9)


def row(title: str, label: str, scale: Scale, parts: list[Numbers], rest: list[Numbers] | None = None) -> Row:
    """The row of some lines, whose statistics are `parts`; for a bucket, `rest` are those of all other lines."""
    values, differences, samples = scale.gaps(parts)
    beyond = scale.gaps(rest) if rest and len(rest[0]) >= FEWEST_LINES else None
    gaps = []
    for index, gap in enumerate(differences):
        low, high = (float(bound) for bound in np.quantile(samples[:, index], [0.025, 0.975]))
        strength = in_deviations(gap, samples[:, index])
        if beyond:
            _, others, other_samples = beyond
            more = in_deviations(gap - others[index], samples[:, index] - other_samples[:, index])
            strength = min(strength, more)
        elif rest is not None:  # all lines are in it, or nearly all
            strength = 0.0
        significant = len(parts[0]) >= FEWEST_LINES and (low > 0 or high < 0)
        gaps.append(Gap(gap, low, high, strength, gap < 0 if scale.lower_is_better else gap > 0, significant))
    return Row(title, label, len(parts[0]), scale.unit, values, gaps)


def bucket_rows(
    lines: list[Line], systems: list[list[list[str]]], parted: list[Division], metric: str, sampling: Sampling
) -> list[Row]:
    """A row for each bucket that holds lines; `systems` are hypotheses, [system][seed][line]."""
    scorer, references = sacrebleu_metric(metric, sampling.tokenize), [line.reference for line in lines]
    statistics = [np.array(line_statistics(scorer, t, references), np.float64) for seeds in systems for t in seeds]

    def score(sums: Numbers) -> Numbers:
        return np.array([score_of_statistics(scorer, summed) for summed in sums])

    scale = Scale(NAMES[metric], score, lower_is_better(metric), [len(system) for system in systems], sampling)
    rows = []
    for division in parted:
        buckets = np.array([division.bucket(line) for line in lines])
        for index, label in enumerate(division.labels):
            inside = buckets == index
            if inside.any():
                parts, rest = [part[inside] for part in statistics], [part[~inside] for part in statistics]
                rows.append(row(division.title, label, scale, parts, rest))
    return rows


def fault_rows(lines: list[Line], systems: list[list[list[str]]], sampling: Sampling) -> list[Row]:
    """A row for each fault that any translation has; its values are numbers of lines."""
    scale = Scale("lines", lambda sums: sums[:, 0], True, [len(system) for system in systems], sampling)
    rows = []
    for fault in FAULTS:
        chosen = [index for index, line in enumerate(lines) if fault.applies(line)]
        parts = [
            np.array([[float(fault.has(lines[index], seed[index]))] for index in chosen])
            for system in systems
            for seed in system
        ]
        if chosen and any(part.any() for part in parts):
            rows.append(row("Faults", fault.title, scale, parts))
    return rows


@dataclass
class Details:
    """The lines of a test set, and where systems differ in them."""

    lines: list[Line]
    divisions: list[Division]
    rows: list[Row]
    counted: str
    """Where the words of training were counted; empty where they are not known."""


def look_closer(
    systems: list[list[list[str]]], test: TestSet, training: str | None, metric: str, sampling: Sampling
) -> Details:
    """All faults and buckets of systems, whose hypotheses are [system][seed][line]."""
    sources: list[str | None] = [None] * len(test.references) if test.sources is None else [*test.sources]
    lines = [Line(*pair) for pair in zip(sources, test.references, strict=True)]
    frequency, counted = training_words(test, training)
    parted = divisions(frequency, test.sources is not None)
    rows = fault_rows(lines, systems, sampling) + bucket_rows(lines, systems, parted, metric, sampling)
    return Details(lines, parted, rows, counted)


def strongest(rows: list[Row], count: int) -> list[tuple[Row, int]]:
    """The rows, and systems after the first, with the differences that are surest, the surest first."""
    sure = [
        (row, index) for row in rows for index, gap in enumerate(row.gaps) if gap.significant and gap.strength > SURE
    ]
    return sorted(sure, key=lambda pair: -pair[0].gaps[pair[1]].strength)[:count]
