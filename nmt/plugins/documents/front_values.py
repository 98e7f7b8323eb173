"""Texts in front matter, with their places in the file."""

from collections.abc import Callable
from dataclasses import dataclass, field


class Unreadable(Exception):
    """Front matter that breaks the rules of its notation."""


@dataclass
class Value:
    """A text at the end of a path of keys."""

    name: str
    """The keys, joined with dots; items of lists have the name of their list."""

    begin: int
    end: int
    """The offsets of what `write` replaces."""

    text: str

    write: Callable[[str], str | None]
    """How another text is written in its place; None if it cannot be."""


@dataclass
class Values:
    """The texts of front matter in order."""

    values: list[Value]

    read: Callable[[str], list[str] | None]
    """The texts of the front matter after a change, in the same order; None if it is damaged."""

    left: list[str] = field(default_factory=list)
    """The names of further texts."""
