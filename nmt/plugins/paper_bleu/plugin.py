"""The BLEUs of table 2: on Moses tokens, without and with hyphenated compounds split."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    for metric in ("tokenized", "split"):
        add("metric", metric, "nmt.plugins.paper_bleu.paper_bleu:paper_bleu", text=True)
