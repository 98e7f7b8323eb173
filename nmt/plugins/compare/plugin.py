"""Compare systems on one test set: scores, significance tests, and where they differ."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    summary = "Compare systems on a test set: significance, cost, and where they differ."
    add("command", "compare", "nmt.plugins.compare.command:COMMAND", summary=summary)
