"""The lines of documents, as their translations are written."""

from collections.abc import Sequence

from nmt.config import shown
from nmt.items import readable
from nmt.text import word_spans
from nmt.translation.documents import Document, Translated
from nmt.translation.reporting import warn
from nmt.translation.stages import MARKED, OMITTED, Translation

MOST_NAMED = 10
"""The number of lines that a notice names."""
QUOTED = 30
"""The number of characters that it quotes of each of them."""


def translated_line(line: str, best: Translation) -> Translated:
    """The translation of a line of a document, or the line itself if it is to be left out."""
    if best.trust == OMITTED:
        # Each word stays at its place, and so does the markup around it.
        words = len(word_spans(line))
        return Translated(line, [(number, number) for number in range(words)], best.trust)
    return Translated(best.text, best.details.alignment if best.details else None, best.trust)


def named_lines(lines: Sequence[str], numbers: Sequence[int], count: int) -> str:
    """Some lines of a document, such as `segments 3 ('Open the door.') and 7 ('Close it.')`.

    `numbers` are at least the first MOST_NAMED of `count` lines, counted from 0. A segment has no
    number that its reader knows and can look up in the file, so its text is quoted, too.
    """
    named = list[str]()
    for number in numbers[:MOST_NAMED]:
        text = shown(readable(lines[number]))
        if len(text) > QUOTED:
            text = text[:QUOTED].rstrip() + "\u2026"
        named.append(f"{number + 1} ({text!r})")
    if count == 1:
        return f"segment {named[0]}"
    last = named[-1]
    others = count - len(named)
    if others:
        last = "1 other" if others == 1 else f"{others:,} others"
    else:
        named.pop()
    return f"segments {', '.join(named)} and {last}"


def warn_without_marks(name: str, document: Document, translations: Sequence[Translated]) -> None:
    """Print a warning if translations should be marked, but the document has no marks for them."""
    unmarked = list[int]()
    for number, line in enumerate(translations):
        if line.trust == MARKED and not document.has_mark(number):
            unmarked.append(number)
    if unmarked:
        count = len(unmarked)
        advice = "to keep their source text instead, pass below=omit"
        lines = "1 line is" if count == 1 else f"{count:,} lines are"
        named = named_lines(document.lines, unmarked, count)
        warn(f"{name}: this format has no marks, so {lines} not marked: {named}; {advice}")
