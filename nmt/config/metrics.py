"""Names of metrics and of BLEU's tokenizers."""

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

    Metrics that score text have the fact "text", those with significance tests "paired".
    """
    metrics = entries_of("metric")
    return tuple(name for name, entry in metrics.items() if not fact or entry.facts.get(fact))
