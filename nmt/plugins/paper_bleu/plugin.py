"""What this plugin adds."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    for metric in ("tokenized", "split"):
        add("metric", metric, "nmt.plugins.paper_bleu.paper_bleu:paper_bleu", text=True)
