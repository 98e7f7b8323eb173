"""The lines of documents, as their translations are written."""

from collections.abc import Sequence

from nmt.text import word_spans
from nmt.translation.documents import Document, Translated
from nmt.translation.reporting import warn
from nmt.translation.stages import MARKED, OMITTED, Translation


def translated_line(line: str, best: Translation) -> Translated:
    """The translation of a line of a document, or the line itself if it is to be left out."""
    if best.trust == OMITTED:
        # Each word stays at its place, and so does the markup around it.
        words = len(word_spans(line))
        return Translated(line, [(number, number) for number in range(words)], best.trust)
    return Translated(best.text, best.details.alignment if best.details else None, best.trust)


def warn_without_marks(name: str, document: Document, translations: Sequence[Translated]) -> None:
    """Print a warning if translations should be marked, but the document has no marks for them."""
    unmarked = 0
    for number, line in enumerate(translations):
        if line.trust == MARKED and not document.has_mark(number):
            unmarked += 1
    if unmarked:
        advice = "to keep their source text instead, pass below=omit"
        lines = "1 line is" if unmarked == 1 else f"{unmarked:,} lines are"
        warn(f"{name}: this format has no marks, so {lines} not marked; {advice}")
