"""HTML pages about a training run and about a model's attention."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    summary = "Write a page about a training run: curves, translations, corpus, configuration."
    add("command", "report", "nmt.plugins.report.command:REPORT", summary=summary)
    summary = "Draw what each head of a model attends to in a sentence and its translation."
    add("command", "attention", "nmt.plugins.report.command:ATTENTION", summary=summary)
