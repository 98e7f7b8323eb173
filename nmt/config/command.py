"""Commands, and the YAML groups that they compose."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from nmt.errors import NMTError

OPTIONAL = "optional "
"""Hydra's prefix for a group that may have no option."""
OPTIONS = {
    "--cfg": "Print the composed configuration and exit.",
    "--config-dir": "FOLDER: folder of your own options, searched before ./conf.",
    "--help": "Print this page, the keys of a group (--help GROUP) or all keys (--help all).",
}
"""The options of every command."""

Values = dict[str, Any]
"""Keys and values; a value that is a mapping sets a whole group."""


@dataclass(frozen=True)
class Command:
    """A command of `nmt`: what it runs, its keys, and its help."""

    name: str
    config: type
    """The dataclass of its keys."""
    run: Callable[[Any], int | None]
    """Returns the exit code; None means 0."""
    words: Callable[[list[str]], Values] | None = None
    """Converts arguments without = to keys and values."""
    initial: Callable[[str], dict[str, Values]] = lambda init: {}
    """The groups that the model at `init` sets."""
    usage: str = ""
    """Arguments without =, as shown in the help."""
    examples: tuple[str, ...] = ()
    """The words of two command lines."""
    hides: str = ""
    """Groups and keys that the command does not read."""
    instead: Mapping[str, str] = field(default_factory=dict)
    """Hidden key -> the key that users mistake it for."""
    groups: Mapping[str, str | None] = field(default_factory=dict)
    """The YAML groups in composition order, each with its default option."""
    entries: str = ""
    """The key to whose list NAME=[A,B] or NAME=PATH adds an entry, unless NAME is itself a key.

    Empty if the command takes no such arguments. `nmt compare base=runs/old new=runs/new` adds two
    systems to compare.
    """
    options: Mapping[str, str] = field(default_factory=dict)
    """Option -> the override that it abbreviates."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Name of a key in other toolkits -> the key, if both mean exactly the same."""
    memory: str = "close other programs, or use a machine with more memory"
    """Advice if memory runs out."""


class Group(NamedTuple):
    """A YAML group of a command."""

    default: str
    """The option that is chosen by default; empty if there is none."""
    options: list[str]
    """All options, in order; FOLDER/NAME for those in a subfolder."""


# Once per process: the folders of plugins do not change while a command runs.
@cache
def conf_folders() -> tuple[Path, ...]:
    """The folders of the groups of nmt and of its plugins."""
    package = Path(__file__).resolve().parents[1]
    # A wheel contains conf/ in the package; in a clone, it is next to the package.
    in_wheel = package / "conf"
    core = in_wheel if in_wheel.is_dir() else package.parent / "conf"
    # Sorted, because file systems list folders in any order, and the first one with an option wins.
    return core, *sorted((package / "plugins").glob("*/conf"))


def user_folders(config_dir: Path | None) -> list[Path]:
    """The folders of the user's own options: `--config-dir` and ./conf, unless it is nmt's own."""
    if config_dir is not None and not config_dir.is_dir():
        raise NMTError(f"--config-dir {config_dir}: no such folder")
    folders = []
    # In order of precedence: `--config-dir` is given for this command alone.
    for folder in (config_dir, Path("conf")):
        # In a clone of nmt, ./conf is nmt's own folder.
        if folder and folder.is_dir() and folder.resolve() not in conf_folders():
            folders.append(folder.resolve())
    return folders


def groups(command: Command, config_dir: Path | None = None) -> dict[str, Group]:
    """The groups of a command by name, in alphabetical order."""
    folders = [*conf_folders(), *user_folders(config_dir)]
    groups = {}
    for name in sorted(command.groups, key=without_mark):
        group = without_mark(name)
        options: set[str] = set()
        # By the names of files: completion and help need not read what is in them.
        for folder in folders:
            options |= options_in(folder / group)
        groups[group] = Group(command.groups[name] or "", sorted(options))
    return groups


def without_mark(group: str) -> str:
    return group.removeprefix(OPTIONAL)


def options_in(folder: Path) -> set[str]:
    """The options that the YAML files in a folder and its subfolders define."""
    files = [file for file in folder.rglob("*.yaml") if file.is_file()]
    return {file.relative_to(folder).with_suffix("").as_posix() for file in files}
