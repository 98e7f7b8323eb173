"""Answers to unknown keys and options: a plugin's answer or the nearest key."""

import difflib
import os
from collections.abc import Iterable

from nmt.registry import entries_of

exists = os.path.exists  # unlike Path.exists, False for a string that cannot be a file name


def answer(command: str, words: list[str]) -> str:
    """Return a plugin's one-line answer to keys, options or a command of other toolkits, or an empty string."""
    return next(filter(None, (entry.load()(command, words) for entry in entries_of("answer").values())), "")


def explain(command: str, words: list[str], word: str, keys: list[str]) -> str:
    """The message for `word`, an unknown key or option among `words`: a plugin's answer, text= or the nearest key."""
    name = word.partition("=")[0].lstrip("+~")
    near = nearest_key(name.lstrip("-").replace("-", "_"), keys)
    if "text" in keys and " " in word and not near.startswith("did you mean"):
        near = f"if this is input text, write text='{word}'"
    unknown = f"{name}: no such option" if name.startswith("-") else f"unknown key {name}"
    return answer(command, words) or f"{unknown}; {near}"


def nearest(word: str, words: Iterable[str]) -> str:
    matches = difflib.get_close_matches(word, words := [*words], n=1, cutoff=0.5)
    return f"did you mean {matches[0]}?" if matches else "choose from " + ", ".join(w for w in words if "/" not in w)


def nearest_key(key: str, keys: list[str]) -> str:
    """Suggest the key whose last part is nearest, preferring the same group; otherwise list that group's keys."""
    group, _, last_part = key.rpartition(".")
    siblings = [name for name in keys if group and name.startswith(f"{group}.")]
    for names, cutoff in ((siblings or [name for name in keys if "." not in name], 0.6), (keys, 0.75)):
        last = {name.rpartition(".")[2]: name for name in names}
        if matches := difflib.get_close_matches(last_part, last, n=1, cutoff=cutoff):
            return f"did you mean {last[matches[0]]}?"
    return f"choose from {', '.join(siblings or dict.fromkeys(name.split('.')[0] for name in keys))}"
