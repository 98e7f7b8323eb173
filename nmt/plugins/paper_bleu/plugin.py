"""The BLEU scores of table 2: on Moses tokens, with hyphenated compounds left whole or split."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    for metric in ("tokenized", "split"):
        add("metric", metric, "nmt.plugins.paper_bleu.paper_bleu:paper_bleu", text=True)
