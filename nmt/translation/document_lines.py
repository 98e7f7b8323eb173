"""The lines of documents, as their translations are written."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from nmt.config import shown
from nmt.items import readable
from nmt.text import word_spans
from nmt.translation.documents import Document, Translated
from nmt.translation.reporting import fields_of, report_notes, warn
from nmt.translation.stages import MARKED, OMITTED, Stage, Translation

MOST_NAMED = 10
"""The number of lines that a notice names."""
QUOTED = 30
"""The number of characters that it quotes of each of them."""


class LineNotes(NamedTuple):
    """What to tell the user about a line: notes on its translation, or why it is left out."""

    notes: dict[str, str]
    refusals: dict[str, str]


class DocumentNotes:
    """The notes on the lines of a document, until it is known which translations it has."""

    def __init__(self) -> None:
        self.lines: list[LineNotes] = []

    def add(self, stages: Sequence[Stage], line: str, best: Translation) -> None:
        """Add the notes on the best translation of the next line."""
        fields_of(stages, line, best)
        self.lines.append(LineNotes(best.notes, best.refusals))

    def report(
        self,
        document: Document,
        translations: Sequence[Translated],
        counts: dict[str, int],
        file: str = "",
    ) -> dict[str, list[int]]:
        """Print and count the notes, as `report` does, after the document has been written.

        `file` names the document in messages, as in "a.md: ". Returns the lines with each note,
        counted from 0.
        """
        refused = refused_by(document)
        noted = defaultdict[str, list[int]](list)
        rows = zip(document.lines, self.lines, translations, strict=True)
        for number, (line, about_line, translated) in enumerate(rows):
            # A line of a document has no number that its reader knows, so messages quote the line.
            where = f"{file}{shown(readable(line))!r}"
            is_refused = id(translated) in refused
            notes = about_line.refusals if is_refused else about_line.notes
            report_notes(notes, where, counts)
            for note in notes:
                noted[note].append(number)
        return noted


def refused_by(document: Document) -> set[int]:
    """The identities of the translations that a document does not have."""
    # Not their values: lines may have equal translations.
    return {id(translated) for translated in document.refused}


def translated_line(line: str, best: Translation) -> Translated:
    """The translation of a line of a document, or the line itself if it is to be left out."""
    if best.trust == OMITTED:
        # Each word stays at its place, and so does the markup around it.
        words = len(word_spans(line))
        return Translated(line, [(number, number) for number in range(words)], best.trust)
    return Translated(best.text, best.details.alignment if best.details else None, best.trust)


def named_lines(lines: Sequence[str], numbers: Sequence[int]) -> str:
    """Some lines of a document, such as `segments 3 ('Open the door.') and 7 ('Close it.')`.

    `numbers` count from 0. A segment has no number that its reader knows and can look up in the
    file, so its text is quoted, too. Only the first MOST_NAMED lines are named.
    """
    named = list[str]()
    for number in numbers[:MOST_NAMED]:
        text = shown(readable(lines[number]))
        if len(text) > QUOTED:
            text = text[:QUOTED].rstrip() + "\u2026"
        named.append(f"{number + 1} ({text!r})")
    if len(numbers) == 1:
        return f"segment {named[0]}"
    last = named[-1]
    others = len(numbers) - len(named)
    if others:
        last = "1 other" if others == 1 else f"{others:,} others"
    else:
        named.pop()
    return f"segments {', '.join(named)} and {last}"


def warn_without_marks(name: str, document: Document, translations: Sequence[Translated]) -> None:
    """Print a warning if translations should be marked, but the document has no marks for them."""
    unmarked = list[int]()
    refused = refused_by(document)
    for number, line in enumerate(translations):
        is_to_mark = line.trust == MARKED and id(line) not in refused
        if is_to_mark and not document.has_mark(number):
            unmarked.append(number)
    if unmarked:
        count = len(unmarked)
        advice = "to keep their source text instead, pass below=omit"
        lines = "1 line is" if count == 1 else f"{count:,} lines are"
        named = named_lines(document.lines, unmarked)
        warn(f"{name}: this format has no marks, so {lines} not marked: {named}; {advice}")
