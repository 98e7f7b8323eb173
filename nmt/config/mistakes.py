"""Answers to unknown keys and options: a plugin's answer or the nearest key."""

import difflib
import os
from collections.abc import Iterable

from nmt.registry import entries_of

exists = os.path.exists  # unlike Path.exists, False for a string that cannot be a file name


def answer(command: str, word: str) -> str:
    """Return a plugin's one-line answer to a key, option or command that nmt does not have, or an empty string."""
    return next(filter(None, (entry.load()(command, word) for entry in entries_of("answer").values())), "")


def unknown_key(command: str, key: str, word: str, keys: list[str]) -> str:
    """The message for an unknown key: a plugin's answer, text=, or the nearest key."""
    group, _, name = key.rpartition(".")
    if any(other.startswith(f"{group}.") for other in keys) and (special := answer(command, name)):
        return f"{group}.{special}"
    near = nearest_key(key, keys)
    if "text" in keys and " " in word and not near.startswith("did you mean"):
        near = f"if this is input text, write text='{word}'"
    return answer(command, key) or f"unknown key {key}; {near}"


def explain_option(command: str, word: str, keys: list[str]) -> str:
    """The message for an argument with a leading dash: KEY=VALUE, a plugin's answer, or the nearest key."""
    name, _, value = word.lstrip("-").partition("=")
    key = name.replace("-", "_")
    if key in keys:
        return f"{word}: write options as KEY=VALUE, such as {key}={value or 'VALUE'}"
    return answer(command, word) or f"{word}: no such option or key; {nearest_key(key, keys)}"


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
