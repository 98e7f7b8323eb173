"""Answers to words that are no key, option or command: what the user may have meant."""

import difflib
from collections.abc import Iterable

from nmt.extensions import AnswerEntry
from nmt.registry import entries_of

DID_YOU_MEAN = "did you mean"
NEAR_SIBLING = 0.6
NEAR_KEY = 0.75
NEAR_WORD = 0.5
"""The least similarity (difflib's ratio) of keys of a group, of all keys, and of other words.

The more words there are, the more of them resemble a word by chance.
"""


def answer(command: str, words: list[str]) -> str:
    """A plugin's one-line answer to keys, options or a command of other toolkits, or ""."""
    for entry in entries_of(AnswerEntry).values():
        text = entry.load()(command, words)
        if text:
            return text
    return ""


def explain(command: str, words: list[str], word: str, keys: list[str]) -> str:
    """The message for `word`, an unknown key or option among `words`.

    It is a plugin's answer or a suggestion: text= for input text, otherwise the nearest key.
    """
    # A plugin knows the words of other toolkits, which may resemble a wrong key of nmt.
    from_plugin = answer(command, words)
    if from_plugin:
        return from_plugin
    name = word.partition("=")[0].lstrip("+~")
    # Other toolkits write --max-steps for what is max_steps here.
    suggestion = nearest_key(name.lstrip("-").replace("-", "_"), keys)
    # Text with an = in it: no key has a space.
    if "text" in keys and " " in word and not suggestion.startswith(DID_YOU_MEAN):
        suggestion = f"if this is input text, write text='{word}'"
    if name.startswith("-"):
        return f"{name}: no such option; {suggestion}"
    return f"unknown key {name}; {suggestion}"


def nearest(word: str, words: Iterable[str]) -> str:
    """Suggest the nearest of the words; if none is near, list those outside of folders."""
    words = list(words)
    close = difflib.get_close_matches(word, words, n=1, cutoff=NEAR_WORD)
    if close:
        return f"{DID_YOU_MEAN} {close[0]}?"
    return "choose from " + ", ".join(name for name in words if "/" not in name)


def nearest_key(key: str, keys: list[str]) -> str:
    """Suggest the key whose last part is nearest, preferring the same group.

    If none is near, list that group's keys, or the first parts of all keys.
    """
    group, _, last_part = key.rpartition(".")
    # Only the last parts are compared: a common group would make any two keys similar.
    siblings = []
    if group:
        siblings = [name for name in keys if name.startswith(f"{group}.")]
    outside_groups = [name for name in keys if "." not in name]
    for names, cutoff in ((siblings or outside_groups, NEAR_SIBLING), (keys, NEAR_KEY)):
        key_of_last_part = {name.rpartition(".")[2]: name for name in names}
        close = difflib.get_close_matches(last_part, key_of_last_part, n=1, cutoff=cutoff)
        if close:
            return f"{DID_YOU_MEAN} {key_of_last_part[close[0]]}?"
    # All keys would fill the screen.
    first_parts = dict.fromkeys(name.split(".")[0] for name in keys)
    return f"choose from {', '.join(siblings or first_parts)}"
