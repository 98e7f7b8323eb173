"""Answers to keys, options and commands of other toolkits, from foreign_words.tsv."""

import re
import shlex
from difflib import get_close_matches
from functools import cache
from itertools import pairwise, product
from pathlib import Path

from nmt.commands import COMMANDS
from nmt.config import MISSING, NMTError, checked, groups, is_bare, keys_of, parse

TABLE = Path(__file__).with_name("foreign_words.tsv")
OPTION = re.compile(r"-(?![\d.]+$)\S+")  # neither text nor a number nor `-`
SLOT = re.compile(r"(?:([\w.]+)=[^\s<]*)?<([^\s>]+)>")  # KEY=<DEFAULT>


@cache
def foreign_words() -> dict[tuple[str, str], tuple[str, str]]:
    """Map (command, another toolkit's key or option) to the answer's two parts: an example with our key, and a note."""
    table: dict[tuple[str, str], tuple[str, str]] = {}
    for line in filter(None, TABLE.read_text(encoding="utf-8").splitlines()):
        if line[0] != "#":
            commands, words, example, note = line.split("\t")
            table |= dict.fromkeys(product(commands.split(","), words.split()), (example, note))
    return table


def answer(command: str, words: list[str]) -> str:
    """One line about all words of other toolkits and all our keys with dashes; empty if there are none.

    A value follows = or is the next word. Of several answers, only the first clauses are given.
    """
    answers: dict[str, list[str]] = {}
    for word, following in pairwise([*words, "--"]):
        name, equals, value = word.partition("=")
        if OPTION.fullmatch(word) or equals or command == "nmt":
            is_value = not equals and is_bare(following) and not OPTION.fullmatch(following)
            shown, text = answer_to(command, name, equals or " ", following if is_value else value)
            answers.setdefault(text, []).append(shown)
        if command == "nmt":
            break
    answers.pop("", None)
    lines = [f"{', '.join(names)}: {text}" for text, names in answers.items()]
    return "; ".join(line.partition("; ")[0] for line in lines) if len(lines) > 1 else "".join(lines)


def answer_to(command: str, name: str, joint: str, value: str) -> tuple[str, str]:
    """The word with its value if the answer contains it, and the answer; empty if there is none."""
    key, has_dash = name.lstrip("+~-").replace("-", "_").lower(), name.startswith("-")
    ours = [] if command == "nmt" else [*keys_of(COMMANDS[command].config), *groups(COMMANDS[command])]
    is_ours = any(f"{our}.".startswith(f"{key}.") for our in ours)
    near = get_close_matches(key, [word for name, word in foreign_words() if name == command], 1, cutoff=0.9)
    names = [key, key.rpartition(".")[2], *near] if not is_ours else [key] if has_dash else []
    example, note = next((row for name in names if (row := foreign_words().get((command, name)))), ("", ""))
    same = [our for our in ours if our == key] or [our for our in ours if not is_ours and our.endswith(f".{key}")]
    if len(same) == 1 and (has_dash or not is_ours) and not example + note:
        is_switch = accepts(command, same[0], "true") and not accepts(command, same[0], "x")
        example = f"{same[0]}=<{'true' if is_switch else 'VALUE'}>"
    slot = SLOT.search(example)
    is_file = bool(re.search(r"[./]", value) and slot and re.fullmatch("[a-z]+", slot[2]))
    if is_used := bool(slot and value and not is_file and (slot[2] == "VALUE" or accepts(command, slot[1], value))):
        name = f"{name}{joint}{value}"
    filled = SLOT.sub(lambda m: m[0].replace(f"<{m[2]}>", shlex.quote(value) if is_used else m[2]), example)
    return name, "; ".join(filter(None, (filled and f"use {filled}", note)))


def accepts(command: str, key: str, value: str) -> bool:
    """True if a key of a command, or the place of a command's name, accepts a value from a command line."""
    if command == "nmt":
        return value in COMMANDS
    if key in (options := groups(COMMANDS[command])):
        return value in options[key][1]
    member, override = keys_of(COMMANDS[command].config)[key], parse(f"{key}={value}")
    try:
        checked(key, value if member.is_text else override.value() if override else MISSING, member)
    except NMTError:
        return False
    return True
