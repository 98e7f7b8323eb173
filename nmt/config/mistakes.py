"""Answers to unknown keys and options: our key for another toolkit's option (foreign_words.tsv), or the nearest key."""

import difflib
import os
from collections.abc import Iterable
from functools import cache
from itertools import product
from pathlib import Path

TABLE = Path(__file__).with_name("foreign_words.tsv")
exists = os.path.exists  # unlike Path.exists, False for a string that cannot be a file name


@cache
def foreign_words() -> dict[tuple[str, str], tuple[str, str]]:
    """Map (command, another toolkit's key or option) to the answer's two parts: an example with our key, and a note."""
    table: dict[tuple[str, str], tuple[str, str]] = {}
    for line in filter(None, TABLE.read_text(encoding="utf-8").splitlines()):
        if line[0] != "#":
            commands, words, example, note = line.split("\t")
            table |= dict.fromkeys(product(commands.split(","), words.split()), (example, note))
    return table


def our_words(command: str, word: str) -> str:
    """The one-line answer to another toolkit's key or option, with or without dashes and value; empty if unknown."""
    name = word.partition("=")[0]
    example, note = foreign_words().get((command, name.lstrip("-").replace("-", "_").lower()), ("", ""))
    answer = "; ".join(filter(None, (example and f"use {example}", note)))
    return f"{name}: {answer}" if answer else ""


def unknown_key(command: str, key: str, word: str, keys: list[str]) -> str:
    """The message for an unknown key; it suggests our equivalent, text=, or the nearest key."""
    group, _, name = key.rpartition(".")
    if any(other.startswith(f"{group}.") for other in keys) and (equivalent := our_words(command, name)):
        return f"{group}.{equivalent}"
    near = nearest_key(key, keys)
    if "text" in keys and " " in word and not near.startswith("did you mean"):
        near = f"if this is input text, write text='{word}'"
    return our_words(command, key) or f"unknown key {key}; {near}"


def explain_option(command: str, word: str, keys: list[str]) -> str:
    """The message for an argument with a leading dash; it suggests KEY=VALUE, our equivalent or the nearest key."""
    name, _, value = word.lstrip("-").partition("=")
    key = name.replace("-", "_")
    if key in keys:
        return f"{word}: write options as KEY=VALUE, such as {key}={value or 'VALUE'}"
    return our_words(command, word) or f"{word}: no such option or key; {nearest_key(key, keys)}"


def nearest(word: str, words: Iterable[str]) -> str:
    matches = difflib.get_close_matches(word, words := [*words], n=1, cutoff=0.5)
    return f"did you mean {matches[0]}?" if matches else f"choose from {', '.join(words)}"


def nearest_key(key: str, keys: list[str]) -> str:
    """Suggest the key whose last part is nearest, preferring the same group; otherwise list that group's keys."""
    group, _, last_part = key.rpartition(".")
    siblings = [name for name in keys if group and name.startswith(f"{group}.")]
    for names, cutoff in ((siblings or [name for name in keys if "." not in name], 0.6), (keys, 0.75)):
        last = {name.rpartition(".")[2]: name for name in names}
        if matches := difflib.get_close_matches(last_part, last, n=1, cutoff=cutoff):
            return f"did you mean {last[matches[0]]}?"
    return f"choose from {', '.join(siblings or dict.fromkeys(name.split('.')[0] for name in keys))}"
