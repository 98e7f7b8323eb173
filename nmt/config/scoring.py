"""The names of the metrics, and the tokenizers of BLEU."""

from nmt.registry import entries_of

BLEU_TOKENIZERS = (
    *("13a", "intl", "zh", "ja-mecab", "ko-mecab", "char"),
    *("flores101", "flores200", "spBLEU-1K", "none"),
)
"""sacreBLEU's names of them, without the one that it deprecates."""


def metric_names(fact: str = "") -> tuple[str, ...]:
    """The metrics, or those with a fact: "text" for metrics of text, "paired" for those with tests of significance."""
    return tuple(name for name, entry in entries_of("metric").items() if not fact or entry.facts.get(fact))
