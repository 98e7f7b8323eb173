"""Answers to mistakes: words of other toolkits, such as `--max-tokens`, and YAML files."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add("answer", "foreign_words", "nmt.plugins.answers.foreign_words:answer")
    add("file", "mistakes", "nmt.plugins.answers.option_files:check_files")
