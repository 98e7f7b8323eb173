"""What a command is: its keys, what it can be told beside them, and what it does."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Option:
    """An option of a command: short for an override, or a run of its own."""

    help: str
    override: str = ""
    """What it is short for."""
    run: Callable[[list[str], Path | None, set[str]], int | None] | None = None
    """Instead of the command's own run: is given the overrides, `--config-dir` and all options that stood there."""


@dataclass(frozen=True)
class Command:
    """A verb of the command line."""

    name: str
    summary: str
    config: type
    """The dataclass of its keys."""
    run: Callable[[Any], int | None]
    """Does it; gives the exit code, None for 0."""
    root: str = ""
    """The file in conf/ that its tree begins with, where that is not called as the command is."""
    word: str = ""
    """The key that a word without = is the value of."""
    texts: tuple[str, ...] = ()
    """Keys whose values are running text, with commas, brackets, ${} and blanks at the end that need no quotes."""
    options: Mapping[str, Option] = field(default_factory=dict)
    memory: str = "end other programs, or take a machine that has more"
    """What to do where memory runs out."""

    @property
    def tree(self) -> str:
        """The name of its file in conf/."""
        return self.root or self.name
