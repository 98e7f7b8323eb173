"""A command: its keys, the words and options that it takes beside them, and what it does."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nmt.errors import NMTError


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
    usage: str = ""
    """The words without = that it takes, as its help shows them."""
    example: str = ""
    """What one may type behind its name."""
    keys: str = ""
    """The KEY=VALUE that people change most, for the first page of its help; none: all that are in no group."""
    hides: str = ""
    """Groups and keys of its tree that it does not read, and its help leaves out."""
    root: str = ""
    """The file in conf/ that its tree begins with, where that is not called as the command is."""
    word: str = ""
    """The key that a word without = is the value of."""
    words: Callable[[list[str]], dict[str, Any]] | None = None
    """The keys, and their values, that several words without = are short for. A mapping settles a whole group."""
    texts: tuple[str, ...] = ()
    """Keys whose values are running text, with commas, brackets, ${} and blanks at the end that need no quotes."""
    options: Mapping[str, Option] = field(default_factory=dict)
    memory: str = "end other programs, or take a machine that has more"
    """What to do where memory runs out."""

    @property
    def tree(self) -> str:
        """The name of its file in conf/."""
        return self.root or self.name

    def values_of(self, words: list[str]) -> dict[str, Any]:
        """The keys and values that words without = are short for; NMTError where it takes no such words."""
        if self.words:
            return self.words(words)
        if not self.word:
            raise NMTError(f"{words[0]!r} is not KEY=VALUE; `nmt {self.name} --help` lists the keys")
        if len(words) > 1:
            raise NMTError(f"{words[-1]}: `nmt {self.name}` takes one {self.word}; {words[0]} is given too")
        return {self.word: words[0]}
