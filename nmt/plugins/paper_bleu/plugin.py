"""The BLEU scores of table 2: on Moses tokens, with hyphenated compounds left whole or split."""

from nmt.extensions import Add, MetricEntry


def register(add: Add) -> None:
    path = "nmt.plugins.paper_bleu.paper_bleu:paper_bleu"
    add(MetricEntry("tokenized", path, scores_text=True))
    add(MetricEntry("split", path, scores_text=True))
