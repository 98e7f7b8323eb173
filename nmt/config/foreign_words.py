"""Keys and options of other toolkits and their equivalents here, from the table foreign_words.tsv."""

from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("foreign_words.tsv")


@cache
def table() -> dict[tuple[str, str], tuple[str, str]]:
    """A command and another toolkit's word -> an answer, and an example."""
    rows = [line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    return {
        (command, word): (answer, example)
        for commands, words, answer, example in rows
        for command in commands.split(",")
        for word in words.split()
    }


def our_words(command: str, word: str) -> str:
    """The one-line answer to another toolkit's key or option; empty if the table does not have it.

    Dashes before and between its words do not matter, nor does a value after =.
    """
    name = word.partition("=")[0]
    plain = name.lstrip("-").replace("-", "_").lower()
    answer, example = table().get((command, plain), ("", ""))
    return f"{name}: {answer}{', as ' if example else ''}{example}" if answer else ""
