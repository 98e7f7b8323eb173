"""A command: its keys, the words and options that it takes beside them, and its run function."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.config.fields import keys_of
from nmt.registry import entries_of

if TYPE_CHECKING:
    from omegaconf import DictConfig


@dataclass(frozen=True)
class Option:
    """An option of a command: an abbreviation of an override, or another run function."""

    help: str
    override: str = ""
    """The override that it stands for."""
    run: Callable[[list[str], Path | None, set[str]], int | None] | None = None
    """Replaces the command's own; takes the overrides, `--config-dir` and all options that were given."""


@dataclass(frozen=True)
class Command:
    """A command of the command line."""

    name: str
    config: type
    """The dataclass of its keys."""
    run: Callable[[Any], int | None]
    """Returns the exit code; None is 0."""
    words: Callable[[list[str]], dict[str, Any]]
    """Turns words without = into keys and values. A mapping sets a whole group."""
    initial: Callable[[str], dict[str, dict[str, Any]]] = lambda init: {}
    """The groups that the model `init` decides, and their values."""
    complete: Callable[["DictConfig", list[str]], None] = lambda tree, keys: None
    """Changes the composed tree by which keys were given."""
    usage: str = ""
    """The words without = that it takes, as shown in its help."""
    example: str = ""
    """An example of what follows its name."""
    keys: str = ""
    """The KEY=VALUE that people change most, for the first page of its help; empty: all keys of no group."""
    hides: str = ""
    """Groups and keys of its tree that it does not read and its help does not list."""
    groups: Mapping[str, str | None] = field(default_factory=dict)
    """The groups of YAML files in its tree, in the order of their composition, and the default option of each."""
    texts: tuple[str, ...] = ()
    """Keys whose values are running text: commas, brackets, ${} and final blanks need no quotes there."""
    entries: str = ""
    """The key that a word NAME=[A,B] is an entry of, where NAME is no key."""
    options: Mapping[str, Option] = field(default_factory=dict)
    memory: str = "end other programs, or take a machine that has more"
    """The advice for running out of memory."""

    @property
    def summary(self) -> str:
        """One sentence, which the registration of the command contains."""
        return str(entries_of("command")[self.name].facts["summary"])

    @property
    def all_options(self) -> dict[str, Option]:
        """The options of the command, including options from plugins."""
        start = f"{self.name} "
        added = {name: entry for name, entry in entries_of("option").items() if name.startswith(start)}
        return {**self.options, **{name.removeprefix(start): entry.load() for name, entry in added.items()}}


def exists(path: Path) -> bool:
    """True if a path exists; False also for a text that cannot be a file name."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def is_bare(word: str) -> bool:
    """True for a word that is not KEY=VALUE.

    A path such as runs/heads=4 and a sentence may contain =, but a key has neither slash nor blank. Hydra's ~KEY
    deletes a key.
    """
    key, equals, _ = word.partition("=")
    return bool(re.search(r"[/\s]", key)) if equals else not re.fullmatch(r"~[\w.]+", word)


def is_entry(command: Command, word: str) -> bool:
    """True for NAME=[A,B] that is no key, of a command that takes such entries."""
    entry = re.fullmatch(r"([\w.+-]+)=\[.*\]", word)
    return bool(command.entries and entry and entry[1] not in keys_of(command.config))
