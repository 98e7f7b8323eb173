"""Names of metrics, their options, and the names of BLEU's tokenizers."""

from dataclasses import dataclass
from typing import Any

from nmt.config.fields import plugin_options
from nmt.extensions import MetricEntry
from nmt.registry import entries_of

BLEU_TOKENIZERS = (
    "13a",
    "intl",
    "zh",
    "ja-mecab",
    "ko-mecab",
    "char",
    "flores101",
    "flores200",
    "spBLEU-1K",
    "none",
)
"""sacreBLEU's tokenizer names, without the deprecated one."""


def metric_names(fact: str = "") -> tuple[str, ...]:
    """All metrics, or only those with a fact.

    "text": they need nothing but text and its reference. "paired": they have significance tests.
    """
    names = []
    for name, entry in entries_of(MetricEntry).items():
        is_of_text = entry.scores_text and not entry.needs_source
        has_fact = {"": True, "text": is_of_text, "paired": entry.is_paired}
        if has_fact[fact]:
            names.append(name)
    return tuple(names)


def title_of_metric(name: str) -> str:
    """The metric's name in tables, such as chrF2."""
    return entries_of(MetricEntry)[name].title or name


@dataclass
class MetricOptions:
    """The options of the metrics that plugins add."""

    plugins: dict[str, Any] = plugin_options("metrics")
