"""The metrics of texts, and the tokenizers of BLEU."""

from collections.abc import Sequence

from nmt.config.rules import require_choice

SACREBLEU_METRICS = ("bleu", "chrf", "chrf++", "ter")
TEXT_METRICS = (*SACREBLEU_METRICS, "tokenised", "split")
"""Those of sacreBLEU, and the paper's two tokenised BLEUs."""
BLEU_TOKENIZERS = (
    *("13a", "intl", "zh", "ja-mecab", "ko-mecab", "char"),
    *("flores101", "flores200", "spBLEU-1K", "none"),
)
"""sacreBLEU's names of them, without the one that it deprecates."""


def check_scoring(metrics: Sequence[str], choices: Sequence[str], tokenize: str | None) -> None:
    """NMTError for an unknown metric or tokenizer."""
    for metric in metrics:
        require_choice("metrics", metric, tuple(choices))
    if tokenize is not None:
        require_choice("tokenize", tokenize, BLEU_TOKENIZERS)
