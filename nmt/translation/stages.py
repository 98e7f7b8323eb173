"""Lines on their way to the search and back: the stages that they pass, and the translations that come out.

A stage changes lines on the way in, calls the rest of the chain, and undoes that in the translations on the way out. It
may call the rest again, for lines that did not come out well. The registry has all stages, as kind "stage", with the
`order` in which lines pass them.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from nmt.config import TranslatorOptions
from nmt.errors import NMTError
from nmt.search import Constraints
from nmt.text import Tokenizer

if TYPE_CHECKING:
    from nmt.translation.segments import Limits, Segment
    from nmt.translation.token_scores import Details

LANGUAGE_TAG = re.compile(r"\s*(<2[\w-]{1,30}>|>>[\w-]{1,30}<<)")
LOOK_ALIKES = dict(zip("\u2018\u2019\u201c\u201d\u2010\u2011\u2013\u2014", "''\"\"----", strict=True))
"""What a model knows in place of typographic quotes and dashes that it does not know."""


class RefusedLine(NMTError):
    """The line at `index`, counted from 0, cannot be translated."""

    def __init__(self, index: int, problem: str) -> None:
        super().__init__(index, problem)
        self.index, self.problem = index, problem

    def __str__(self) -> str:
        return f"line {self.index + 1}: {self.problem}"


@dataclass(frozen=True)
class Line:
    """A line on its way to the search."""

    text: str
    tag: str = ""
    """The tag of a target language that the line began with, and a blank."""
    align: bool = False
    """Its translations get details."""
    cut_at: frozenset[str] = frozenset()
    """Characters that are copied, as those that the model does not know."""


@dataclass
class Translation:
    """One of a line's translations; its score is log P(Y|X) / lp(Y)."""

    text: str
    score: float
    log_probability: float
    details: "Details | None" = None
    copied: list[str] = field(default_factory=list)
    """Stretches of the line that were copied, because the model does not know their characters."""
    flags: list[str] = field(default_factory=list)
    """Likely failures."""
    notes: dict[str, str] = field(default_factory=dict)
    """What a user should know about it, by kind."""


Outcome = list[Translation] | RefusedLine
"""The translations of a line, best first, or why it is refused."""
Rest = Callable[[list[Line]], list[Outcome]]
"""The rest of a chain of stages, which ends with the search."""


class Stage:
    """A stage of translation, which by itself does nothing."""

    def translate(self, lines: list[Line], rest: Rest) -> list[Outcome]:
        return rest(lines)

    def constraints(self, segments: "Sequence[Segment]") -> Constraints | None:
        """What the translations of segments must have."""

    def report(self, line: str, translations: list[Translation], counts: dict[str, int]) -> dict[str, Any]:
        """More fields for the record of a line; and what is to be counted, for the summary."""
        return {}

    def summary(self, counts: Mapping[str, int]) -> str:
        """A notice at the end."""
        return ""


def with_refused(lines: Sequence[Line | RefusedLine], rest: Rest) -> list[Outcome]:
    """The outcomes of lines, some of which are refused."""
    outcomes = iter(rest([line for line in lines if isinstance(line, Line)]))
    return [next(outcomes) if isinstance(line, Line) else line for line in lines]


def split_tag(line: str, tokenizer: Tokenizer) -> tuple[str, str]:
    """The tag that a line begins with, and a blank, and the rest of it; NMTError for a tag that is not the model's."""
    tag = tokenizer.leading_tag(line.lstrip()) if tokenizer.tags else ""
    if tag:
        return f"{tag} ", line.lstrip().removeprefix(tag)
    other = LANGUAGE_TAG.match(line) if tokenizer.tags else None
    if other and any(tag[:2] == other[1][:2] for tag in tokenizer.tags):
        raise NMTError(f"{other[1]}: the model has {', '.join(tokenizer.tags)}")
    return "", line


class Tags(Stage):
    """Takes the tag off each line that begins with one."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    def translate(self, lines: list[Line], rest: Rest) -> list[Outcome]:
        untagged = list[Line | RefusedLine]()
        for line in lines:
            try:
                tag, text = split_tag(line.text, self.tokenizer)
                untagged.append(replace(line, text=text, tag=tag))
            except NMTError as error:
                untagged.append(RefusedLine(0, str(error)))
        return with_refused(untagged, rest)


def tags(
    options: TranslatorOptions, tokenizer: Tokenizer, limits: "Limits", notice: Callable[[str], None]
) -> Tags | None:
    return Tags(tokenizer) if tokenizer.tags else None


class Characters(Stage):
    """Writes plain quotes and dashes in place of typographic ones that the model does not know.

    The record of a line tells which stretches with unknown characters were copied.
    """

    def __init__(self, characters: frozenset[str]) -> None:
        self.look_alikes = {ord(a): b for a, b in LOOK_ALIKES.items() if a not in characters and b in characters}

    def translate(self, lines: list[Line], rest: Rest) -> list[Outcome]:
        return rest([replace(line, text=line.text.translate(self.look_alikes)) for line in lines])

    def report(self, line: str, translations: list[Translation], counts: dict[str, int]) -> dict[str, Any]:
        return {"copied": translations[0].copied} if translations[0].copied else {}


def characters(
    options: TranslatorOptions, tokenizer: Tokenizer, limits: "Limits", notice: Callable[[str], None]
) -> Characters | None:
    return None if limits.characters is None else Characters(limits.characters)
