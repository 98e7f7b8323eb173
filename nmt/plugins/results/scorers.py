"""The metrics of `nmt compare`, as sacreBLEU's paired tests take them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nmt import compat, evaluation
from nmt.config import title_of_metric
from nmt.evaluation import LineScores, Scoring
from nmt.extensions import MetricEntry, import_attribute
from nmt.plugins.results.options import CompareConfig
from nmt.plugins.results.systems import System
from nmt.plugins.results.test_set import TestSet
from nmt.registry import entries_of


@dataclass(frozen=True)
class GivenScores:
    """The scores of the lines of all systems by a metric that scores each line on its own."""

    signature: str
    scores: Mapping[tuple[str, ...], list[float]]
    """The lines of a system -> their scores."""


@dataclass(frozen=True)
class Scorers:
    """What is needed to make the metrics of a comparison."""

    tokenize: str
    """The tokenizer for BLEU."""
    splits: bool = False
    """Whether TER splits Chinese and Japanese text into characters."""
    given: Mapping[str, GivenScores] = field(default_factory=dict)
    """By metric; sacreBLEU computes all other metrics."""

    @classmethod
    def of_systems(cls, systems: list[System], test: TestSet, config: CompareConfig) -> "Scorers":
        """Score the lines of all systems by each metric that is not sacreBLEU's."""
        given = {}
        for metric in config.metrics:
            function = entries_of(MetricEntry)[metric].line_scores
            if function:
                given[metric] = scores_of_lines(metric, function, systems, test, config)
        return cls(
            tokenize=config.tokenize or evaluation.DEFAULT_TOKENIZER,
            splits=evaluation.ter_splits(test.language, test.references),
            given=given,
        )

    def make(self, metric: str) -> Any:
        """A new sacreBLEU metric, because a metric changes its signature when it is tested."""
        given = self.given.get(metric)
        if given:
            return compat.MeanOfLines(title_of_metric(metric), given.signature, given.scores)
        return evaluation.sacrebleu_metric(metric, self.tokenize, splits=self.splits)


def scores_of_lines(
    metric: str, function: str, systems: list[System], test: TestSet, config: CompareConfig
) -> GivenScores:
    """Score the lines of all systems at once: a large model is loaded once."""
    # Each text once: seeds of a system may give the same translations.
    texts: dict[tuple[str, ...], None] = {}
    for system in systems:
        texts |= dict.fromkeys(tuple(seed.hypotheses) for seed in system.seeds)
    options = config.metric_options.plugins
    scoring = Scoring(metric, test.language, sources=test.sources, options=options)
    compute = import_attribute(function)
    result: LineScores = compute(list(texts), test.references, scoring)
    return GivenScores(result.signature, dict(zip(texts, result.scores, strict=True)))
