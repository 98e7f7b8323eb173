"""What the server asks of its processes, and what they answer."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from nmt.plugins.documents import Translated


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


@dataclass(frozen=True)
class SentDocument:
    """A document as a client sent it. The process that parses it keeps nothing, so it parses it again to write it."""

    content: bytes
    name: str = ""
    """The file's name, whose suffix tells its format; none for a text in `format`."""
    format: str = ""
    source: str = ""
    target: str = ""


@dataclass
class Read:
    """Documents whose lines are to be found; of each, at most one more than `most`, which is then too long."""

    documents: list[SentDocument]
    most: int


class Lines(NamedTuple):
    """The lines of a document, and whether it has markup."""

    lines: list[str]
    marked_up: bool


@dataclass
class Write:
    """Documents to be written with the translations of their lines, in one or more variants each."""

    documents: list[SentDocument]
    variants: list[list[list["Translated"]]]


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
    """The process ended before it answered, which another task may have caused."""


@dataclass
class Line:
    """The translations of a line, best first, and what is known of the best one."""

    texts: list[str]
    words: dict[str, Any] = field(default_factory=dict)
    """With details: the answer's `sourceWords`, `words`, `alignment`, `confidence`, `protected` and `terms`."""
    flags: list[str] = field(default_factory=list)
    """Those of the best one: "protected" if something that is to stay as it is did not arrive exactly once."""


Answer = list[Line | Failure]
