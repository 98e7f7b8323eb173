"""Names of metrics and of BLEU's tokenizers."""

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

    "text": they score text. "paired": they have significance tests.
    """
    names = []
    for name, entry in entries_of(MetricEntry).items():
        has_fact = {"": True, "text": entry.scores_text, "paired": entry.is_paired}
        if has_fact[fact]:
            names.append(name)
    return tuple(names)
