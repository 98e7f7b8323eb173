"""Where systems differ: scores of lines in buckets, and counts of faults, with bootstrapped intervals.

Lines are resampled, the same ones for all systems, with the seed of the tests. Shapes: N lines, S seeds of all systems,
R resamples, K statistics of a line.

A row is a bucket or a fault: its `title` (of the division, or "Faults"), `label`, `count` of the lines in it or in
which the fault can be, `unit` (name of the score, or "lines"), `values` of the systems, and `gaps` of each system
after the first to the first: `value` with the interval `low` to `high` of 95 %; `better`; `significant` where the
interval leaves out zero in enough lines; `strength` in standard deviations of the resamples, for a bucket of what goes
beyond the difference in all other lines, if that is less.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from nmt.compat import line_statistics, score_of_statistics
from nmt.evaluation import sacrebleu_metric
from nmt.plugins.compare.lines import FAULTS, Division, Line, divisions, training_words
from nmt.plugins.compare.significance import FEWEST_LINES, NAMES, Sampling, lower_is_better
from nmt.translation import TestSet

Numbers = npt.NDArray[np.float64]
Row = dict[str, Any]
CHUNK = 50
"""Resamples that are drawn at once."""
SURE = 2.0
"""Standard deviations beyond which a difference is reported on top."""


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

    def row(self, title: str, label: str, parts: list[Numbers], rest: list[Numbers] | None = None) -> Row:
        """The row of some lines, whose statistics are `parts`; for a bucket, `rest` are those of all other lines."""

        def in_deviations(value: float, samples: Numbers) -> float:
            return abs(value) / (float(samples.std()) + 1e-9)

        values, differences, samples = self.gaps(parts)
        beyond = self.gaps(rest)[1:] if rest and len(rest[0]) >= FEWEST_LINES else None
        gaps = []
        for index, (value, drawn) in enumerate(zip(differences, samples.T, strict=True)):
            low, high = (float(bound) for bound in np.quantile(drawn, [0.025, 0.975]))
            strength = in_deviations(value, drawn)
            if beyond:
                strength = min(strength, in_deviations(value - beyond[0][index], drawn - beyond[1][:, index]))
            elif rest is not None:  # all lines are in it, or nearly all
                strength = 0.0
            better = value < 0 if self.lower_is_better else value > 0
            significant = len(parts[0]) >= FEWEST_LINES and (low > 0 or high < 0)
            gap = {"value": value, "low": low, "high": high, "strength": strength}
            gaps.append({**gap, "better": better, "significant": significant})
        count = len(parts[0])
        return {"title": title, "label": label, "count": count, "unit": self.unit, "values": values, "gaps": gaps}


def bucket_rows(
    lines: list[Line], systems: list[list[list[str]]], parted: list[Division], metric: str, sampling: Sampling
) -> list[Row]:
    """A row for each bucket that holds lines; `systems` are hypotheses, [system][seed][line]."""
    scorer, references = sacrebleu_metric(metric, sampling.tokenize), [line.reference for line in lines]
    statistics = [np.array(line_statistics(scorer, t, references), np.float64) for seeds in systems for t in seeds]

    def score(sums: Numbers) -> Numbers:
        return np.array([score_of_statistics(scorer, summed) for summed in sums])

    scale = Scale(NAMES[metric], score, lower_is_better(metric), list(map(len, systems)), sampling)
    rows = []
    for division in parted:
        buckets = np.array([division.bucket(line) for line in lines])
        for index, label in enumerate(division.labels):
            inside = buckets == index
            if inside.any():
                parts, rest = [part[inside] for part in statistics], [part[~inside] for part in statistics]
                rows.append(scale.row(division.title, label, parts, rest))
    return rows


def fault_rows(lines: list[Line], systems: list[list[list[str]]], sampling: Sampling) -> list[Row]:
    """A row for each fault that any translation has; its values are numbers of lines."""
    scale = Scale("lines", lambda sums: sums[:, 0], True, list(map(len, systems)), sampling)
    texts, rows = [seed for system in systems for seed in system], []
    for fault in FAULTS:
        chosen = [index for index, line in enumerate(lines) if fault.applies(line)]
        parts = [np.array([[float(fault.has(lines[index], seed[index]))] for index in chosen]) for seed in texts]
        if chosen and any(part.any() for part in parts):
            rows.append(scale.row("Faults", fault.title, parts))
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
    pairs = [(row, index, gap) for row in rows for index, gap in enumerate(row["gaps"])]
    sure = [pair for pair in pairs if pair[2]["significant"] and pair[2]["strength"] > SURE]
    return [(row, index) for row, index, _ in sorted(sure, key=lambda pair: -pair[2]["strength"])[:count]]
