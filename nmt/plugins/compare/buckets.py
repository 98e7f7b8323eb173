"""Where systems differ: scores of lines in buckets, and counts of faults, with bootstrapped intervals.

Lines are resampled, the same ones for all systems, with the seed of the tests. Shapes: N lines, S seeds of all systems,
R resamples, K statistics of a line.

A row is a bucket or a fault: its `title` (of the division, or "Faults"), `label`, `count` of the lines in it or in
which the fault can be, `unit` (name of the score, or "lines"), `values` of the systems, and `gaps` of each system
after the first to the first: `value` with the interval `low` to `high` of 95 %; `better`; `significant` where the
interval leaves out zero in enough lines; `strength` in standard deviations of the resamples, for a bucket of what goes
beyond the difference in all other lines, if that is less.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise, repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from nmt.compat import line_statistics, score_of_statistics
from nmt.evaluation import sacrebleu_metric
from nmt.plugins.compare.lines import FAULTS, Division, Line, divisions, training_words
from nmt.plugins.compare.significance import FEWEST_LINES, NAMES, Sampling, better
from nmt.translation import TestSet

Numbers = npt.NDArray[np.float64]
Row = dict[str, Any]
CHUNK = 50
"""Resamples that are drawn at once."""
SURE = 2.0
"""Standard deviations beyond which a difference is reported on top."""


def in_deviations(values: Numbers, samples: Numbers) -> Numbers:
    return abs(values) / (np.array([column.std() for column in samples.T]) + 1e-9)


@dataclass
class Bootstrap:
    """Differences of systems by the sum of statistics of lines."""

    metric: str
    """That of the score; "" for numbers of lines, of which fewer are better."""
    score: Callable[[Numbers], Numbers]
    """Scores [M] of summed statistics [M, K]."""
    systems: list[list[list[str]]]
    """Hypotheses, [system][seed][line]."""
    sampling: Sampling

    def gaps(self, parts: list[Numbers]) -> tuple[Numbers, Numbers, Numbers]:
        """Scores of the systems, their differences to the first, and these resampled, [R, systems - 1].

        Each part is [N, K].
        """
        rng, count, chunks = np.random.default_rng(self.sampling.seed), len(parts[0]), []
        for start in range(0, self.sampling.resamples, CHUNK):
            size = min(CHUNK, self.sampling.resamples - start)
            draws = rng.multinomial(count, np.full(count, 1 / count), size=size)
            chunks.append(np.stack([self.score(draws @ part) for part in parts], axis=1))
        whole, samples = np.array([self.score(part.sum(0, keepdims=True))[0] for part in parts]), np.concatenate(chunks)
        spans = [slice(*pair) for pair in pairwise(np.cumsum([0, *map(len, self.systems)]))]
        values = np.array([whole[span].mean() for span in spans])
        means = np.stack([samples[:, span].mean(1) for span in spans], axis=1)
        return values, values[1:] - values[0], means[:, 1:] - means[:, :1]

    def row(self, title: str, label: str, parts: list[Numbers], rest: list[Numbers] | None = None) -> Row:
        """The row of some lines, whose statistics are `parts`; for a bucket, `rest` are those of all other lines."""
        values, differences, samples = self.gaps(parts)
        strengths = in_deviations(differences, samples)
        if rest and len(rest[0]) >= FEWEST_LINES:
            _, others, drawn = self.gaps(rest)
            strengths = np.minimum(strengths, in_deviations(differences - others, samples - drawn))
        elif rest is not None:  # all lines are in it, or nearly all
            strengths = np.zeros_like(strengths)
        gaps, count = [], len(parts[0])
        for value, strength, drawn in zip(differences.tolist(), strengths.tolist(), samples.T, strict=True):
            low, high = np.quantile(drawn, [0.025, 0.975]).tolist()
            gap = {"value": value, "low": low, "high": high, "strength": strength}
            significant = count >= FEWEST_LINES and (low > 0 or high < 0)
            gaps.append({**gap, "better": better(self.metric or "ter", value), "significant": significant})
        unit = NAMES[self.metric] if self.metric else "lines"
        row = {"title": title, "label": label, "count": count, "unit": unit}
        return {**row, "values": values.tolist(), "gaps": gaps}


def bucket_rows(
    lines: list[Line], systems: list[list[list[str]]], parted: list[Division], metric: str, sampling: Sampling
) -> Iterator[Row]:
    """A row for each bucket that holds lines; `systems` are hypotheses, [system][seed][line]."""
    scorer, references = sacrebleu_metric(metric, sampling.tokenize), [line.reference for line in lines]
    statistics = [np.array(line_statistics(scorer, t, references), np.float64) for seeds in systems for t in seeds]

    def score(sums: Numbers) -> Numbers:
        return np.array([score_of_statistics(scorer, summed) for summed in sums])

    bootstrap = Bootstrap(metric, score, systems, sampling)
    for division in parted:
        buckets = np.array([division.bucket(line) for line in lines])
        for index, label in enumerate(division.labels):
            if (inside := buckets == index).any():
                parts, rest = [part[inside] for part in statistics], [part[~inside] for part in statistics]
                yield bootstrap.row(division.title, label, parts, rest)


def fault_rows(lines: list[Line], systems: list[list[list[str]]], sampling: Sampling) -> Iterator[Row]:
    """A row for each fault that any translation has; its values are numbers of lines."""
    bootstrap = Bootstrap("", lambda sums: sums[:, 0], systems, sampling)
    texts = [seed for system in systems for seed in system]
    for fault in FAULTS:
        chosen = [index for index, line in enumerate(lines) if fault.applies(line)]
        parts = [np.array([[float(fault.has(lines[index], seed[index]))] for index in chosen]) for seed in texts]
        if chosen and any(part.any() for part in parts):
            yield bootstrap.row("Faults", fault.title, parts)


@dataclass
class Details:
    """The lines of a test set, and where systems differ in them."""

    lines: list[Line]
    divisions: list[Division]
    rows: list[Row]
    counted: str
    """Where the words of training were counted; empty where they are unknown."""


def look_closer(
    systems: list[list[list[str]]], test: TestSet, training: str | None, metric: str, sampling: Sampling
) -> Details:
    """All faults and buckets of systems, whose hypotheses are [system][seed][line]."""
    sources = test.sources or repeat(None, len(test.references))
    lines = [Line(*pair) for pair in zip(sources, test.references, strict=True)]
    frequency, counted = training_words(test, training)
    parted = divisions(frequency, test.sources is not None)
    rows = [*fault_rows(lines, systems, sampling), *bucket_rows(lines, systems, parted, metric, sampling)]
    return Details(lines, parted, rows, counted)


def strongest(rows: list[Row], count: int) -> list[tuple[Row, int]]:
    """The rows, and systems after the first, with the differences that are surest, the surest first."""
    gaps = {(at, system): gap for at, row in enumerate(rows) for system, gap in enumerate(row["gaps"])}
    sure = [place for place, gap in gaps.items() if gap["significant"] and gap["strength"] > SURE]
    return [(rows[at], system) for at, system in sorted(sure, key=lambda place: -gaps[place]["strength"])[:count]]
