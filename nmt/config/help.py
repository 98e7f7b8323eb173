"""The help of a command: a first page that fits a screen, and the keys of a group or of all groups."""

import re
import textwrap
from collections.abc import Iterable
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from nmt.config.command import Command, is_bare
from nmt.config.composition import command_groups, hydra_tree, nearest
from nmt.config.fields import MISSING, flatten, in_words, keys_of, members_of
from nmt.errors import NMTError

WIDTH = 100
"""In columns."""
OPTIONS = {
    "--cfg": "Print the composed configuration and exit.",
    "--config-dir": "FOLDER: look for groups there too.",
    "--help": "GROUP or all: print its keys; alone, this page.",
}
"""The options of every command."""


def help_text(command: Command, words: list[str], config_dir: Path | None) -> str:
    """The first page, or the keys of the group that the words name; NMTError for an unknown group."""
    groups = command_groups(command, config_dir)
    about = record_groups(command.config)
    about |= {name: offered(choices) for name, (_, choices) in groups.items() if len(choices) > 1}
    topic = next(filter(is_bare, words), None)
    if topic is None:
        return first_page(command, about, {name: f"{name}={groups[name][0] or 'null'}" for name in groups})
    if topic not in ("all", *about):
        raise NMTError(f"--help {topic}: no such group; {nearest(topic, ['all', *about])}")
    rows = [(name, about[name]) for name in about if name == topic]
    for name, (default, text) in command_keys(command).items():
        if not is_hidden(command, name) if topic == "all" else name.startswith(f"{topic}."):
            rows.append((f"{name}={default}", text))
    return f"Keys of nmt {command.name}, their defaults, and what they mean\n{table(rows)}\n"


def record_groups(cls: type, offered: tuple[str, ...] = ()) -> dict[str, str]:
    """The groups of keys in a record, and what they are about."""
    about: dict[str, str] = {}
    for member in members_of(cls, offered):
        if member.is_inline:
            about |= record_groups(member.type, member.offered)
        elif is_dataclass(member.type):
            about[member.name] = first_sentence(member.type.__doc__ or "")
    return about


def command_keys(command: Command) -> dict[str, tuple[str, str]]:
    """Every key of a command -> its default and its help; keys of no group come first."""
    tree: Any = OmegaConf.to_container(hydra_tree(command, []))
    defaults = {key: in_words(value).replace(MISSING, "NEEDED") for key, value in flatten(tree).items()}
    keys = sorted(keys_of(command.config).items(), key=lambda item: "." in item[0])
    return {name: (defaults.get(name, "null"), key.help) for name, key in keys}


def first_page(command: Command, about: dict[str, str], defaults: dict[str, str]) -> str:
    """Usage, the keys that people change most, the names of the groups, and the options."""
    keys = {name: key for name, key in command_keys(command).items() if not is_hidden(command, name)}
    ungrouped = [name for name in keys if "." not in name]
    texts = {name: first_sentence(text) for name, (_, text) in keys.items()} | about
    examples = {word.partition("=")[0]: word for word in command.keys.split()}
    examples = examples or {name: f"{name}={keys[name][0]}" for name in ungrouped}
    rows = [(word, texts[key]) for key, word in examples.items() if key in texts]  # a plugin may be missing
    others = ", ".join(name for name in ungrouped if name not in examples)
    listed = [(defaults.get(name, name), text) for name, text in about.items() if not is_hidden(command, name)]
    options = OPTIONS | {name: option.help for name, option in command.all_options.items()}
    parts = [
        " ".join(filter(None, ("Usage: nmt", command.name, command.usage, "[KEY=VALUE]... [OPTIONS]"))),
        f"As in: nmt {command.name} {command.example}\n" if command.example else "",
        f"{command.summary}\n",
        f"Keys\n{table(rows)}" if rows else "",
        textwrap.fill(f"Others: {others}", WIDTH, initial_indent="  ", subsequent_indent="  ") if others else "",
        f"\nGroups of keys; --help GROUP or --help all lists them\n{table(listed)}" if listed else "",
        f"\nOptions\n{table(options.items())}\n",
    ]
    return "\n".join(filter(None, parts))


def is_hidden(command: Command, key: str) -> bool:
    return any(f"{key}.".startswith(f"{name}.") for name in command.hides.split())


def offered(options: list[str]) -> str:
    """The options of a group; those in a subfolder are only counted."""
    inside = [option.split("/")[0] for option in options if "/" in option]
    counted = [f"{folder}/... ({inside.count(folder)})" for folder in dict.fromkeys(inside)]
    return ", ".join([*(option for option in options if "/" not in option), *counted])


def first_sentence(text: str) -> str:
    return re.split(r"(?<=[.;])\s", " ".join(text.split()), maxsplit=1)[0].rstrip(".;")


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Two columns; the second is wrapped."""
    rows = list(rows)
    left = min(max((len(name) for name, _ in rows), default=0), 34)
    lines = []
    for name, text in rows:
        wrapped = textwrap.wrap(text, WIDTH - left - 4) or [""]
        first, *others = wrapped if len(name) <= left else ["", *wrapped]
        lines += [f"  {name:{left}}  {first}".rstrip(), *(f"  {'':{left}}  {line}" for line in others)]
    return "\n".join(lines)
