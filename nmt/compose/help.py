"""The help of a command: a page that fits a screen, and the keys of a group or of all of them."""

import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import get_type_hints

from nmt.compose.command import Command
from nmt.compose.explanations import nearest
from nmt.compose.groups import command_groups, command_keys
from nmt.compose.overrides import is_bare
from nmt.config.trainer import TrainerConfig
from nmt.errors import NMTError

WIDTH = 100
"""Columns."""


def help_text(command: Command, words: list[str], options: Mapping[str, str], config_dir: Path | None) -> str:
    """The first page, or the keys of the group that the words name; NMTError where there is none of that name."""
    groups = command_groups(command, config_dir)
    kinds = {**get_type_hints(command.config), "trainer": TrainerConfig}  # of trainer, its type does not tell the keys
    sections = {name: kind.__doc__ or "" for name, kind in kinds.items() if is_dataclass(kind) or name in groups}
    about = {name: first_sentence(text) for name, text in sections.items() if name != "trainer" or name in groups}
    about |= {name: offered(choices) for name, (_, choices) in groups.items() if len(choices) > 1}
    topic = next(filter(is_bare, words), None)
    if topic is None:
        return first_page(command, about, options, {name: f"{name}={groups[name][0] or 'null'}" for name in groups})
    if topic not in ("all", *about):
        raise NMTError(f"--help {topic}: no such group; {nearest(topic, ['all', *about])}")
    keys = command_keys(command)
    shown = [key for key in keys if (not is_hidden(command, key.name) if topic == "all" else key.group == topic)]
    rows = [*((name, about[name]) for name in about if name == topic), *((key.setting, key.help) for key in shown)]
    return f"Keys of nmt {command.name}, their defaults, and what they mean\n{table(rows)}\n"


def first_page(command: Command, about: dict[str, str], options: Mapping[str, str], defaults: dict[str, str]) -> str:
    """Usage, the keys that people change most, the groups by name, and the options: a screen of it."""
    keys = [key for key in command_keys(command) if not is_hidden(command, key.name)]
    texts = {key.name: first_sentence(key.help) for key in keys} | about
    examples = command.keys.split() or [key.setting for key in keys if not key.group]
    told = [word.partition("=")[0] for word in examples]
    others = ", ".join(key.name for key in keys if not key.group and key.name not in told)
    listed = [(defaults.get(name, name), text) for name, text in about.items() if not is_hidden(command, name)]
    parts = [
        " ".join(filter(None, ("Usage: nmt", command.name, command.usage, "[KEY=VALUE]... [OPTIONS]"))),
        f"As in: nmt {command.name} {command.example}\n" if command.example else "",
        f"{command.summary}\n",
        "Keys\n" + table((word, texts[key]) for word, key in zip(examples, told, strict=True)),
        textwrap.fill(f"Others: {others}", WIDTH, initial_indent="  ", subsequent_indent="  ") if others else "",
        f"\nGroups of keys; --help GROUP or --help all lists them\n{table(listed)}" if listed else "",
        f"\nOptions\n{table(options.items())}\n",
    ]
    return "\n".join(filter(None, parts))


def is_hidden(command: Command, key: str) -> bool:
    return any(f"{key}.".startswith(f"{name}.") for name in command.hides.split())


def offered(options: list[str]) -> str:
    """The options of a group; of those in a folder only how many there are."""
    inside = [option.split("/")[0] for option in options if "/" in option]
    counted = [f"{folder}/... ({inside.count(folder)})" for folder in dict.fromkeys(inside)]
    return ", ".join([*(option for option in options if "/" not in option), *counted])


def first_sentence(text: str) -> str:
    return re.split(r"(?<=[.;])\s", " ".join(text.split()), maxsplit=1)[0].rstrip(".;")


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Two columns, the second wrapped."""
    rows = list(rows)
    left = min(max((len(name) for name, _ in rows), default=0), 34)
    lines = []
    for name, text in rows:
        wrapped = textwrap.wrap(text, WIDTH - left - 4) or [""]
        first, *others = wrapped if len(name) <= left else ["", *wrapped]
        lines += [f"  {name:{left}}  {first}".rstrip(), *(f"  {'':{left}}  {line}" for line in others)]
    return "\n".join(lines)
