"""Keys and options of other toolkits, answered by ours: foreign_words.tsv is the table."""

from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("foreign_words.tsv")


@cache
def table() -> dict[tuple[str, str], tuple[str, str]]:
    """A command and a word of others -> what to say of it, and an example of ours."""
    rows = [line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    return {
        (command, word): (answer, example)
        for commands, words, answer, example in rows
        for command in commands.split(",")
        for word in words.split()
    }


def our_words(command: str, word: str) -> str:
    """The answer to a key or an option of another toolkit, in one line; empty where the table does not know it.

    Whether it has dashes before or between its words, and a value behind =, does not matter.
    """
    name = word.partition("=")[0]
    plain = name.lstrip("-").replace("-", "_").lower()
    answer, example = table().get((command, plain), ("", ""))
    return f"{name}: {answer}, as {example}" if answer else ""
