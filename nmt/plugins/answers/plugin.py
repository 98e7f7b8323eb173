"""Answers to the keys, options and commands of other toolkits, such as `--max-tokens`: ours, with an example."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add("answer", "foreign_words", "nmt.plugins.answers.foreign_words:answer")
