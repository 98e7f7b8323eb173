"""The names of the metrics, and the tokenizers of BLEU."""

from collections.abc import Sequence

from nmt.config.fields import require, require_choice
from nmt.registry import entries_of

BLEU_TOKENIZERS = (
    *("13a", "intl", "zh", "ja-mecab", "ko-mecab", "char"),
    *("flores101", "flores200", "spBLEU-1K", "none"),
)
"""sacreBLEU's names of them, without the one that it deprecates."""


def metric_names(fact: str = "") -> tuple[str, ...]:
    """The metrics, or those with a fact: "text" for metrics of text, "paired" for those with tests of significance."""
    return tuple(name for name, entry in entries_of("metric").items() if not fact or entry.facts.get(fact))


def check_scoring(metrics: Sequence[str], tokenize: str | None, fact: str = "") -> None:
    """NMTError for an unknown metric, one without the fact, or an unknown tokenizer."""
    names = metric_names(fact)
    require(bool(metrics), f"metrics: name at least one of {', '.join(names)}")
    for metric in metrics:
        require_choice("metrics", metric, names)
    if tokenize is not None:
        require_choice("tokenize", tokenize, BLEU_TOKENIZERS)
