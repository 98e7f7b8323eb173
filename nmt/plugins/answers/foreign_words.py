"""Answers to words of other toolkits, such as `--max-tokens`, by the keys of nmt.

The keys, options and commands of other toolkits are in foreign_words.tsv.
"""

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from nmt import config
from nmt.commands import COMMANDS
from nmt.config import NMTError, groups, is_bare, keys_of

TABLE = Path(__file__).with_name("foreign_words.tsv")
OPTION = re.compile(r"-(?![\d.]+$)\S+")
"""An option: neither text nor a negative number nor `-` alone."""
SLOT = re.compile(r"(?:(?P<key>[\w.]+)=[^\s<]*)?<(?P<default>[^\s>]+)>")
"""KEY=<DEFAULT> in an example; the user's value may replace <DEFAULT>."""
LANGUAGE = re.compile(r"[a-z]{2,3}([-_]\w+)?")


class Advice(NamedTuple):
    """The two parts of an answer; either may be empty."""

    example: str
    """Words of nmt's command line."""
    note: str


@dataclass(frozen=True)
class Word:
    """A word of a command line, read as NAME=VALUE, or as NAME followed by a value."""

    name: str
    joint: str
    """The text between name and value: "=" or " "."""
    value: str

    @property
    def key(self) -> str:
        """The name as the table has it: without leading signs, with _ for dashes, in lower case."""
        return self.name.lstrip("+~-").replace("-", "_").lower()

    @property
    def is_option(self) -> bool:
        return self.name.startswith("-")

    def __str__(self) -> str:
        return f"{self.name}{self.joint}{self.value}"


NO_ADVICE = Advice("", "")


@cache
def foreign_words() -> dict[tuple[str, str], Advice]:
    """Map (command, another toolkit's key or option) to the advice on it."""
    table = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        commands, words, example, note = line.split("\t")
        for command in commands.split(","):
            for word in words.split():
                table[command, word] = Advice(example, note)
    return table


def answer(command: str, words: list[str]) -> str:
    """One line about all words of other toolkits and all our keys with dashes.

    Empty if there are none. Of several answers, only the first clauses are given. The command "nmt"
    stands for a first word that is not a command.
    """
    names_by_text: dict[str, list[str]] = {}
    for word in words_to_answer(command, words):
        name, text = answer_to(command, word)
        if text:
            names_by_text.setdefault(text, []).append(name)
    answers = [f"{', '.join(names)}: {text}" for text, names in names_by_text.items()]
    if len(answers) == 1:
        return answers[0]
    # Several answers in full would be too long for one line.
    return "; ".join(line.partition("; ")[0] for line in answers)


def words_to_answer(command: str, words: list[str]) -> Iterable[Word]:
    """The words that may be keys or options of another toolkit; of `nmt` itself, only the first."""
    # The last word has no following one: "--" is an option, so it is not a value.
    pairs = [read_word(word, following) for word, following in pairwise([*words, "--"])]
    if command == "nmt":
        return pairs[:1]
    return [word for word in pairs if word.joint == "=" or OPTION.fullmatch(word.name)]


def read_word(word: str, following: str) -> Word:
    """Split a word at =.

    Without =, the next word is its value, unless that is a key or an option.
    """
    name, equals, value = word.partition("=")
    if equals:
        return Word(name, "=", value)
    is_value = is_bare(following) and not OPTION.fullmatch(following)
    return Word(name, " ", following if is_value else "")


def answer_to(command: str, word: Word) -> tuple[str, str]:
    """The word, with its value if the answer contains it, and the answer, which may be empty."""
    advice = advice_on(command, word)
    # The user's value is shown only if our key accepts it, because the answer should work if
    # copied.
    slot = SLOT.search(advice.example)
    is_used = bool(slot and word.value and fits_slot(command, slot, word.value))
    parts = []
    if advice.example:
        parts.append(f"use {fill(advice.example, word.value if is_used else None)}")
    if advice.note:
        parts.append(advice.note)
    return str(word) if is_used else word.name, "; ".join(parts)


def advice_on(command: str, word: Word) -> Advice:
    """The table's advice on a word, or else the key of ours that it means."""
    ours = our_keys(command)
    is_ours = any(f"{our}.".startswith(f"{word.key}.") for our in ours)
    # A key of nmt is not a foreign word, unless the user wrote it as an option with dashes.
    if is_ours and not word.is_option:
        return NO_ADVICE
    names = [word.key]
    if not is_ours:
        names += similar_words(command, word.key)
    for name in names:
        if (command, name) in foreign_words():
            return foreign_words()[command, name]
    return advice_on_key(command, word.key, ours)


def similar_words(command: str, key: str) -> list[str]:
    """The last part of a dotted key, and the nearest word of the table, such as for a plural."""
    _, _, last_part = key.rpartition(".")
    table = [word for of_command, word in foreign_words() if of_command == command]
    return [last_part, *get_close_matches(key, table, n=1, cutoff=0.9)]


def advice_on_key(command: str, key: str, ours: list[str]) -> Advice:
    """Advice to write a key of nmt, or the only key that ends with `key`.

    A switch without a value means true.
    """
    meant = [our for our in ours if our == key]
    is_group = any(our.startswith(f"{key}.") for our in ours)
    if not meant and not is_group:
        # Such as beam_size for decode.beam_size. If several groups have the key, none is more
        # likely.
        meant = [our for our in ours if our.endswith(f".{key}")]
    if len(meant) != 1:
        return NO_ADVICE
    [key] = meant
    # Keys that accept any string accept "true", too, but are not switches.
    is_switch = accepts(command, key, "true") and not accepts(command, key, "x")
    default = "true" if is_switch else "VALUE"
    return Advice(f"{key}=<{default}>", note="")


def our_keys(command: str) -> list[str]:
    """The keys and groups of a command."""
    if command == "nmt":
        return []
    return [*keys_of(COMMANDS[command].config), *groups(COMMANDS[command])]


def fill(example: str, value: str | None) -> str:
    """An example with a value in its slots, or with their defaults."""

    def filled(slot: re.Match[str]) -> str:
        default = slot["default"]
        # Quoted, because users paste the answer into a shell.
        content = default if value is None else shlex.quote(value)
        return slot[0].replace(f"<{default}>", content)

    return SLOT.sub(filled, example)


def fits_slot(command: str, slot: re.Match[str], value: str) -> bool:
    """True if an example can use the user's value instead of the slot's default."""
    key = slot["key"]
    default = slot["default"]
    is_file = re.search(r"[./]", value)
    if is_file and re.fullmatch("[a-z]+", default):  # the slot is for a name
        return False
    # A language code, as some toolkits want for similar options; the slot takes a file.
    if key == "input" and LANGUAGE.fullmatch(value) and not config.exists(value):
        return False
    if key == "init" and (Path(value) / "manifest.json").exists():  # a corpus
        return False
    return default == "VALUE" or accepts(command, key, value)


def accepts(command: str, key: str, value: str) -> bool:
    """True if a key of a command accepts a value from a command line.

    The command "nmt" has no keys: its slots take names of commands.
    """
    if command == "nmt":
        return bool(key) or value in COMMANDS
    options = groups(COMMANDS[command])
    if key in options:
        _, names = options[key]
        return value in names
    member = keys_of(COMMANDS[command].config)[key]
    override = config.parse(f"{key}={value}")
    try:
        # Text is taken as it was written; any other value is what Hydra reads in the word.
        if member.is_text:
            config.checked(key, value, member)
        else:
            config.checked(key, override.value() if override else config.MISSING, member)
    except NMTError:
        return False
    return True
