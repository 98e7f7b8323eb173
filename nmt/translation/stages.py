"""The chain of stages around the search, and the translations that they exchange.

A stage changes lines on their way in, calls the rest of the chain, and reverses the change in the
translations. It may call the rest more than once. A plugin adds a stage with a `StageEntry`;
lines pass through the stages in ascending `order`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from nmt.config import NMTError
from nmt.search import Constraints
from nmt.translation.alignment import Details
from nmt.translation.lines import Line, Segment

TRUSTED = "trusted"
"""The trust in translations that are probable enough."""
MARKED = "mark"
"""The trust in translations that are to be marked, because they are less probable."""
OMITTED = "omit"
"""The trust in translations that are to be left out, because they are less probable."""
EXACT_MATCH = "exact"
"""The match of a line whose translation is that of an entry of a translation memory."""
SENTENCES_MATCH = "sentences"
"""The match of a line that has sentences with the translations of entries."""
MARK = "\N{WARNING SIGN} "
"""Begins a line of text whose translation is marked."""


class RefusedLine(NMTError):
    """The line at `index`, counted from 0, cannot be translated."""

    def __init__(self, index: int, problem: str) -> None:
        super().__init__(index, problem)
        self.index = index
        self.problem = problem

    def __str__(self) -> str:
        return f"line {self.index + 1}: {self.problem}"


class MemoryEntry(NamedTuple):
    """An entry of a translation memory that is like a line, or like a sentence in it."""

    source: str
    target: str
    score: float
    """How similar the source is, 0 to 1; 1 only for the same text."""


@dataclass
class MemoryMatch:
    """What a translation memory has for a line."""

    match: str
    """exact: the translation is that of an entry; sentences: those of some sentences are; fuzzy:
    the entries are only similar, and the model translated the line."""
    entries: list[MemoryEntry]
    """For exact and sentences, the entries used, in order; for fuzzy, the most similar first."""

    def as_json(self) -> dict[str, Any]:
        return {"match": self.match, "entries": [entry._asdict() for entry in self.entries]}


@dataclass
class Translation:
    """A translation of a line; its score is log P(Y|X) / lp(Y)."""

    text: str
    score: float
    log_probability: float
    details: Details | None = None
    copied: list[str] = field(default_factory=list)
    """Stretches with characters that the model does not know."""
    flags: list[str] = field(default_factory=list)
    """Likely failures."""
    notes: dict[str, str] = field(default_factory=dict)
    """Message for the user -> details, which may be empty."""
    refusals: dict[str, str] = field(default_factory=dict)
    """The same, instead of `notes`, if a document does not stay intact with the translation."""
    tokens: int = 0
    """The number of tokens, with end symbols, whose log probabilities were added."""
    probability: float | None = None
    """The calibrated probability that the translation is good; None: not known."""
    trust: str = ""
    """TRUSTED, MARKED or OMITTED; empty unless the user asks for a minimum probability."""
    memory: MemoryMatch | None = None
    """What a translation memory has for the line; None: nothing, or there is no memory."""

    @property
    def is_from_memory(self) -> bool:
        """Whether the whole translation is that of a translation memory."""
        if self.memory is None:
            return False
        # Without tokens, the model translated none of the sentences.
        has_all_sentences = self.memory.match == SENTENCES_MATCH and self.tokens == 0
        return self.memory.match == EXACT_MATCH or has_all_sentences

    @property
    def is_below(self) -> bool:
        """Whether the translation is less probable to be good than the user asks for."""
        return self.trust in (MARKED, OMITTED)

    @property
    def text_to_write(self) -> str:
        """The text for an output that may leave translations out; see `marked_text`."""
        return "" if self.trust == OMITTED else self.text

    @property
    def marked_text(self) -> str:
        """The text for an output of lines of text, which has no other place for a mark."""
        return MARK + self.text if self.trust == MARKED else self.text_to_write


Outcome = list[Translation] | RefusedLine
"""The translations of a line, best first, or why there are none."""
Rest = Callable[[list[Line]], list[Outcome]]
"""The remaining stages of a chain, which ends with the search."""


class Stage:
    """A translation stage; this base class changes nothing."""

    translates: ClassVar[bool] = False
    """Whether the stage translates some lines itself, without the search.

    A search for other words of a translation leaves such stages out.
    """
    notices: Sequence[str] = ()
    """Messages for the user about the stage and the model. nmt prints them where it loads a
    translator; on a cluster, the first worker sends them to the command."""

    def refresh(self) -> None:
        """Use the current content of the stage's files; a server calls this before each batch."""

    def translate(self, lines: list[Line], rest: Rest) -> list[Outcome]:
        return rest(lines)

    def constraints(self, segments: Sequence[Segment]) -> Constraints | None:
        """What the translations of segments must contain; None: no constraints."""

    def report(self, line: str, best: Translation) -> dict[str, Any]:
        """Additional fields for a line's record; may add notes to the translation."""
        return {}


def with_refused(lines: Sequence[Line | RefusedLine], rest: Rest) -> list[Outcome]:
    """The outcomes of lines, some of which have already been refused."""
    # Stages see only lines that can be translated, so they need not handle refused ones.
    accepted = [line for line in lines if isinstance(line, Line)]
    outcomes = iter(rest(accepted))
    return [line if isinstance(line, RefusedLine) else next(outcomes) for line in lines]
