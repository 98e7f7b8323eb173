"""Where systems differ: scores of lines in buckets, and counts of faults, with bootstrapped intervals.

A row describes a bucket or a fault:

- `title` (of the division, or "Faults"), `label`, `count` (lines), `unit` (name of the score, or "lines")
- `values` of the systems
- `gaps` between the first system and every other: `value`, its 95 % interval from `low` to `high`, `better`, and
  `significant` (the interval excludes zero, and there are enough lines)
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from nmt.compat import line_statistics, score_of_statistics
from nmt.evaluation import sacrebleu_metric
from nmt.plugins.compare.significance import FEWEST_LINES, NAMES, Sampling, better
from nmt.registry import entries_of
from nmt.text import SOURCE, load_tokenizer, scripts_of_language
from nmt.translation import TestSet

Numbers = npt.NDArray[np.float64]
Row = dict[str, Any]
Division = tuple[str, list[str], list[int]]
"""A title, the labels of its buckets, and for every line the index of its bucket."""
CHUNK = 50
"""Resamples drawn at a time."""
SHORT, LONG, FEW_CHARACTERS = 0.6, 1.6, 10
"""A translation is too short or long beyond these shares of the reference's length, and by so many characters."""
FREQUENCIES = {1: "never", 10: "1 to 9 times", 100: "10 to 99 times"}
"""Upper bounds of the buckets of frequency, and their labels."""
MOST_LINES = 200_000
"""Training lines to count; in a larger corpus, they are spread evenly."""


@dataclass
class Details:
    texts: list[list[list[str]]]  # hypotheses, [system][seed][line]
    faults: list[list[list[list[str]]]]  # of every hypothesis
    rows: list[Row]
    counted: str  # where the training words were counted; empty if they are unknown


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def faults_of(source: str | None, reference: str, text: str, scripts: frozenset[str] | None) -> list[str]:
    """What is wrong with a translation: its flags, if the source is known, and its length beside the reference's."""
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
    by_length = f"Words of the {side}", [*(f"{n}-{n + 4}" for n in range(1, 46, 5)), "46+"], lengths
    if test.corpus is None or test.sources is None:
        return [by_length], ""
    tokenizer, split = load_tokenizer(test.corpus.tokenizer_file), test.corpus.split("train")
    chosen = np.unique(np.linspace(0, len(split) - 1, min(len(split), MOST_LINES)).astype(np.int64))
    lines = (tokenizer.decode(ids, SOURCE) for ids in split.table[chosen].column("source").to_pylist())
    frequency, most = Counter(word for line in lines for word in words_of(line)), max(FREQUENCIES)
    rarest = [min((frequency[word] for word in words_of(text)), default=most) for text in texts]
    buckets = [sum(count >= bound for bound in FREQUENCIES) for count in rarest]
    labels = [*FREQUENCIES.values(), f"{most} times or more"]
    where = f"{len(chosen):,} of the {len(split):,} training sources of {test.corpus.folder}"
    return [by_length, ("Its rarest word was in training", labels, buckets)], where


@dataclass
class Bootstrap:
    metric: str  # "" counts lines, and fewer are better
    score: Callable[[Numbers], Numbers]  # summed statistics [N, K] -> scores [N]
    seeds: list[int]  # of every system
    sampling: Sampling

    def row(self, title: str, label: str, parts: list[Numbers]) -> Row:
        """The row of N lines; `parts` are their K statistics, [N, K], for every seed of every system."""
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


def look_closer(systems: list[list[list[str]]], test: TestSet, metric: str, sampling: Sampling) -> Details:
    scripts, seeds, rows = scripts_of_language(test.language or ""), list(map(len, systems)), list[Row]()
    pairs = [(test.sources[at] if test.sources else None, reference) for at, reference in enumerate(test.references)]
    faults = [
        [[faults_of(*pair, text, scripts) for pair, text in zip(pairs, seed, strict=True)] for seed in system]
        for system in systems
    ]
    bootstrap = Bootstrap("", lambda sums: sums[:, 0], seeds, sampling)
    of_seeds = [seed for system in faults for seed in system]
    for name in dict.fromkeys(name for seed in of_seeds for line in seed for name in line):
        rows.append(bootstrap.row("Faults", name, [np.array([[float(name in line)] for line in s]) for s in of_seeds]))

    scorer, texts = sacrebleu_metric(metric, sampling.tokenize), [seed for system in systems for seed in system]
    statistics = [np.array(line_statistics(scorer, seed, test.references), np.float64) for seed in texts]

    def scores(sums: Numbers) -> Numbers:
        return np.array([score_of_statistics(scorer, row) for row in sums])

    bootstrap, (parted, counted) = Bootstrap(metric, scores, seeds, sampling), divisions(test)
    for title, labels, buckets in parted:
        for index in np.unique(buckets):
            parts = [part[np.array(buckets) == index] for part in statistics]
            rows.append(bootstrap.row(title, labels[index], parts))
    return Details(systems, faults, rows, counted)
