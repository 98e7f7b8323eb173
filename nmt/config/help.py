"""A command's help: a first page that fits on one screen, and the keys of one group or all groups."""

import re
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from nmt.config.composition import Command, groups, hydra_tree, is_bare
from nmt.config.fields import MISSING, flatten, in_words, keys_of
from nmt.config.mistakes import nearest
from nmt.errors import NMTError
from nmt.registry import entries_of

WIDTH = 100  # in columns
OPTIONS = {
    "--cfg": "Print the composed configuration and exit.",
    "--config-dir": "FOLDER: also look for groups there.",
    "--help": "GROUP or all: print those keys; without either: print this page.",
}


def help_text(command: Command, words: list[str], config_dir: Path | None) -> str:
    """The first page, or the keys of the group named in `words`; NMTError if the group is unknown."""
    options, keys = groups(command, config_dir), keys_of(command.config)
    about: dict[str, str] = {}
    for name, key in keys.items():
        if "." in name:
            about.setdefault(name.split(".")[0], first_sentence(key.record.__doc__))
    about |= {name: offered(choices) for name, (_, choices) in options.items() if len(choices) > 1}
    tree: Any = OmegaConf.to_container(hydra_tree(command, []))
    values = {name: in_words(value).replace(MISSING, "REQUIRED") for name, value in flatten(tree).items()}
    rows = {name: (f"{name}={values.get(name, 'null')}", key.help) for name, key in keys.items()}
    topic = next(filter(is_bare, words), None)
    if topic is None:
        singles = [row for name, row in rows.items() if "." not in name and is_read(command, name, row[1])]
        read = {name: text for name, text in about.items() if is_read(command, name)}
        chosen = {name: f"{name}={options[name][0] or 'null'}" for name in read if name in options}
        return first_page(command, singles, [(chosen.get(name, name), text) for name, text in read.items()])
    if topic not in ("all", *about):
        raise NMTError(f"--help {topic}: no such group; {nearest(topic, ['all', *about])}")
    if topic == "all":  # keys outside any group come first
        names = [name for name, (_, text) in rows.items() if is_read(command, name, text)]
        listed = [rows[name] for name in sorted(names, key=lambda name: "." in name)]
    else:
        listed = [(topic, about[topic]), *(row for name, row in rows.items() if name.startswith(f"{topic}."))]
    return f"Keys of nmt {command.name}, with their defaults and meanings\n{table(listed)}\n"


def first_page(command: Command, keys: list[tuple[str, str]], groups: list[tuple[str, str]]) -> str:
    """Usage, keys outside any group, groups, and options."""
    options = OPTIONS | {name: option.help for name, option in command.all_options.items()}
    parts = [
        " ".join(filter(None, ("Usage: nmt", command.name, command.usage, "[KEY=VALUE]... [OPTIONS]"))),
        f"As in: nmt {command.name} {command.example}\n" if command.example else "",
        f"{entries_of('command')[command.name].facts['summary']}\n",
        f"Keys\n{table((name, first_sentence(text)) for name, text in keys)}\n" if keys else "",
        f"Groups of keys; list them with --help GROUP or --help all\n{table(groups)}\n" if groups else "",
        f"Options\n{table(options.items())}\n",
    ]
    return "\n".join(filter(None, parts))


def is_read(command: Command, key: str, text: str = "") -> bool:
    """False for a key that the command hides or whose help begins with the name of another command."""
    reader = text.partition(":")[0]
    is_of_other = reader != command.name and reader in entries_of("command")
    return not is_of_other and not any(f"{key}.".startswith(f"{name}.") for name in command.hides.split())


def offered(options: list[str]) -> str:
    """List a group's options; for each subfolder, give only the number of its options."""
    folders = [option.split("/")[0] for option in options if "/" in option]
    counted = [f"{folder}/... ({folders.count(folder)})" for folder in dict.fromkeys(folders)]
    return ", ".join([*(option for option in options if "/" not in option), *counted])


def first_sentence(text: str) -> str:
    return re.split(r"(?<=[.;])\s", " ".join(text.split()), maxsplit=1)[0].rstrip(".;")


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Format rows as two columns and wrap the second, which starts on a new line if the first is too long."""
    rows, lines = [*rows], list[str]()
    left = min(max((len(name) for name, _ in rows), default=0), 34)
    for name, text in rows:
        wrapped = textwrap.wrap(text, WIDTH - left - 4)
        first, *others = wrapped if len(name) <= left else ["", *wrapped]
        lines += [f"  {name:{left}}  {first}".rstrip(), *(f"  {'':{left}}  {line}" for line in others)]
    return "\n".join(lines)
