"""Answers to keys, options and commands of other toolkits, from foreign_words.tsv."""

from functools import cache
from itertools import product
from pathlib import Path

TABLE = Path(__file__).with_name("foreign_words.tsv")


@cache
def foreign_words() -> dict[tuple[str, str], tuple[str, str]]:
    """Map (command, another toolkit's key or option) to the answer's two parts: an example with our key, and a note."""
    table: dict[tuple[str, str], tuple[str, str]] = {}
    for line in filter(None, TABLE.read_text(encoding="utf-8").splitlines()):
        if line[0] != "#":
            commands, words, example, note = line.split("\t")
            table |= dict.fromkeys(product(commands.split(","), words.split()), (example, note))
    return table


def answer(command: str, word: str) -> str:
    """The one-line answer to another toolkit's key or option, with or without dashes and value; empty if unknown."""
    name = word.partition("=")[0]
    example, note = foreign_words().get((command, name.lstrip("-").replace("-", "_").lower()), ("", ""))
    answer = "; ".join(filter(None, (example and f"use {example}", note)))
    return f"{name}: {answer}" if answer else ""
