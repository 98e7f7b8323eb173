"""A command: its keys, the words and options that it takes beside them, and its run function."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    summary: str
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
    root: str = ""
    """The root file of its tree in conf/, if that has another name than the command."""
    texts: tuple[str, ...] = ()
    """Keys whose values are running text: commas, brackets, ${} and final blanks need no quotes there."""
    entries: str = ""
    """The key that a word NAME=[A,B] is an entry of, where NAME is no key."""
    options: Mapping[str, Option] = field(default_factory=dict)
    memory: str = "end other programs, or take a machine that has more"
    """The advice for running out of memory."""

    @property
    def tree(self) -> str:
        """The name of its root file in conf/."""
        return self.root or self.name
