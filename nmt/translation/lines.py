"""Lines and their segments, the units that the search translates."""

from dataclasses import dataclass

Span = tuple[int, int]
"""Begin and end of a stretch of a text, as indices of characters."""


@dataclass(frozen=True)
class Line:
    """A line on its way to the search."""

    text: str
    tag: str = ""
    """Target language tag and a space, removed from the text."""
    align: bool = False
    """Add details to its translations."""
    cut_at: frozenset[str] = frozenset()
    """Characters to copy as if the model did not know them."""


@dataclass
class Segment:
    """A line, or a stretch of one, that is translated as a unit or copied."""

    ids: list[int]
    """Empty if the segment is copied."""
    text: str
    """The text to translate or copy; for part of a sentence, the whole sentence."""
    start: int = 0
    """Index of the segment's first character in the line as the model reads it."""
    skipped: int = 0
    """For part of a sentence, the number of the sentence's tokens before it."""
    prefixed: int = 0
    """For part of a sentence, the number of source prefix tokens that it begins with.

    0 for a whole sentence, which is encoded as one text with the prefix.
    """
    copied: bool = False
    glued: bool = False
    """Not preceded by a space."""
    sentence_tokens: int = 0
    """For part of a sentence, the number of tokens in the whole sentence; otherwise 0."""
    sentences: tuple["Segment", ...] = ()
    """For a chunk of several sentences, its sentences."""
