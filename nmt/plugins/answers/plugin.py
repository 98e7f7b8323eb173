"""Answers to mistakes: keys, options and commands of other toolkits, such as `--max-tokens`, and YAML files."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add("answer", "foreign_words", "nmt.plugins.answers.mistakes:answer")
    add("file", "mistakes", "nmt.plugins.answers.mistakes:check_files")
