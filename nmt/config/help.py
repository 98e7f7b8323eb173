"""The help of a command: a first page that fits a screen, and the keys of a group or of all groups."""

import re
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from nmt.config.composition import Command, command_groups, hydra_tree, is_bare
from nmt.config.fields import MISSING, flatten, in_words, keys_of
from nmt.config.mistakes import nearest
from nmt.errors import NMTError
from nmt.registry import entries_of

WIDTH = 100  # in columns
OPTIONS = {
    "--cfg": "Print the composed configuration and exit.",
    "--config-dir": "FOLDER: look for groups there too.",
    "--help": "GROUP or all: print its keys; alone, this page.",
}


def help_text(command: Command, words: list[str], config_dir: Path | None) -> str:
    """The first page, or the keys of the group that the words name; NMTError for an unknown group."""
    options, keys = command_groups(command, config_dir), keys_of(command.config)
    about: dict[str, str] = {}
    for name, key in keys.items():
        if "." in name:
            about.setdefault(name.split(".")[0], first_sentence(key.record.__doc__))
    about |= {name: offered(choices) for name, (_, choices) in options.items() if len(choices) > 1}
    tree: Any = OmegaConf.to_container(hydra_tree(command, []))
    values = {name: in_words(value).replace(MISSING, "NEEDED") for name, value in flatten(tree).items()}
    rows = {name: (f"{name}={values.get(name, 'null')}", key.help) for name, key in keys.items()}
    topic = next(filter(is_bare, words), None)
    if topic is None:
        about = {f"{name}={options[name][0] or 'null'}" if name in options else name: about[name] for name in about}
        return first_page(command, rows, about)
    if topic not in ("all", *about):
        raise NMTError(f"--help {topic}: no such group; {nearest(topic, ['all', *about])}")
    if topic == "all":  # keys of no group come first
        names = [name for name, (_, text) in rows.items() if is_read(command, name, text)]
        listed = [rows[name] for name in sorted(names, key=lambda name: "." in name)]
    else:
        listed = [(topic, about[topic]), *(row for name, row in rows.items() if name.startswith(f"{topic}."))]
    return f"Keys of nmt {command.name}, their defaults, and what they mean\n{table(listed)}\n"


def first_page(command: Command, rows: dict[str, tuple[str, str]], about: dict[str, str]) -> str:
    """Usage, the keys that people change most, the names of the groups, and the options."""
    ungrouped = [name for name, (_, text) in rows.items() if "." not in name and is_read(command, name, text)]
    examples = {word.partition("=")[0]: word for word in command.keys.split()}
    examples = examples or {name: rows[name][0] for name in ungrouped}
    texts = {name: first_sentence(text) for name, (_, text) in rows.items()}
    texts |= {name.partition("=")[0]: text for name, text in about.items()}
    keys = [(word, texts[key]) for key, word in examples.items() if key in texts]  # a plugin may be missing
    others = f"Others: {', '.join(name for name in ungrouped if name not in examples)}"
    listed = [(name, text) for name, text in about.items() if is_read(command, name.partition("=")[0])]
    options = OPTIONS | {name: option.help for name, option in command.all_options.items()}
    parts = [
        " ".join(filter(None, ("Usage: nmt", command.name, command.usage, "[KEY=VALUE]... [OPTIONS]"))),
        f"As in: nmt {command.name} {command.example}\n" if command.example else "",
        f"{entries_of('command')[command.name].facts['summary']}\n",
        f"Keys\n{table(keys)}" if keys else "",
        textwrap.fill(others, WIDTH, initial_indent="  ", subsequent_indent="  ") if others[8:] else "",
        f"\nGroups of keys; --help GROUP or --help all lists them\n{table(listed)}" if listed else "",
        f"\nOptions\n{table(options.items())}\n",
    ]
    return "\n".join(filter(None, parts))


def is_read(command: Command, key: str, text: str = "") -> bool:
    """False for a key that the command hides, or whose text begins with another command that it is for."""
    reader = text.partition(":")[0]
    is_of_other = reader != command.name and reader in entries_of("command")
    return not is_of_other and not any(f"{key}.".startswith(f"{name}.") for name in command.hides.split())


def offered(options: list[str]) -> str:
    """The options of a group; those in a subfolder are only counted."""
    folders = [option.split("/")[0] for option in options if "/" in option]
    counted = [f"{folder}/... ({folders.count(folder)})" for folder in dict.fromkeys(folders)]
    return ", ".join([*(option for option in options if "/" not in option), *counted])


def first_sentence(text: str) -> str:
    return re.split(r"(?<=[.;])\s", " ".join(text.split()), maxsplit=1)[0].rstrip(".;")


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Two columns; the second is wrapped, and begins on the next line beside a long first one."""
    rows, lines = [*rows], list[str]()
    left = min(max((len(name) for name, _ in rows), default=0), 34)
    for name, text in rows:
        wrapped = textwrap.wrap(text, WIDTH - left - 4)
        first, *others = wrapped if len(name) <= left else ["", *wrapped]
        lines += [f"  {name:{left}}  {first}".rstrip(), *(f"  {'':{left}}  {line}" for line in others)]
    return "\n".join(lines)
