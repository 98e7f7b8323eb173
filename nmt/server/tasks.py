"""What the server asks of a model's process, and what that answers."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Search:
    """How lines are translated; only lines with the same search go into one batch."""

    n_best: int = 1
    details: bool = False
    glossary: tuple[tuple[str, str], ...] = ()
    """Terms with their translations, instead of those of the model's own glossary."""


@dataclass
class Batch:
    """Lines to translate."""

    search: Search
    lines: list[str]
    """Each begins with its tag, where the model has tags."""


@dataclass
class WordAlternatives:
    """A translation whose words after `before` are looked for anew."""

    line: str
    before: str
    count: int


@dataclass
class Ready:
    """The first answer of a process: its model is loaded."""


@dataclass
class Failure:
    """The answer to a task, or to a single line, that a person can mend."""

    problem: str
    broken: bool = False
    """It is the server that failed, and not the text: the same request may be answered later."""
    again: bool = False
    """The server itself ended the process, because of another task: this one is to be done again."""


@dataclass
class Line:
    """The translations of a line, best first, and what is known of the best one."""

    texts: list[str]
    words: dict[str, Any] = field(default_factory=dict)
    """With details: the answer's `sourceWords`, `words`, `alignment`, `confidence`, `protected` and `terms`."""
    flags: list[str] = field(default_factory=list)
    """Those of the best one: "protected" if something that is to stay as it is did not arrive exactly once."""


Answer = list[Line | Failure]
