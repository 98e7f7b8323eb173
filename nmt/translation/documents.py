"""Documents: files that are translated as a whole, with their markup.

Plugins define the formats. Importing this module loads no model code, because the server parses
documents in processes that have none.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from nmt.config import DocumentOptions, NMTError
from nmt.extensions import DocumentEntry
from nmt.items import readable
from nmt.registry import entries_of
from nmt.text import LINE_BYTES, TOO_LONG

Alignment = Sequence[tuple[int, int]] | None
"""Pairs of source and target word indices, counted from 0."""


class Translated(NamedTuple):
    """The translation of a line."""

    text: str
    alignment: Alignment = None
    trust: str = ""
    """As of `Translation`. The source replaces the text of what is to be left out."""
    probability: float | None = None
    """As of `Translation`."""
    memory: dict[str, Any] | None = None
    """What a translation memory has for the line, as JSON; see MemoryMatch."""


class Document(ABC):
    """A file in one of the supported formats."""

    lines: list[str]
    """The lines to translate; none is blank or contains a line break."""
    notice = ""
    """A warning for the user, complete after `join`."""
    refused: Sequence[Translated] = ()
    """The translations that the last `join` left out, because the file would not stay intact."""

    @abstractmethod
    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        """Parse a file; the language codes may be empty. Raise NMTError if the file is damaged.

        A format whose DocumentEntry has options takes their record as the keyword `options`.
        """

    @abstractmethod
    def join(self, translations: Sequence[Translated]) -> bytes:
        """Return the file with each line replaced by its translation."""

    def has_mark(self, line: int) -> bool:
        """Whether `join` marks the translation of a line by its trust; lines count from 0."""
        return False


def read_document(
    format: str,
    content: bytes,
    target: str = "",
    source: str = "",
    options: DocumentOptions | None = None,
) -> Document:
    """Parse a file; raise NMTError if it is damaged or a line is too long."""
    entry = entries_of(DocumentEntry)[format]
    keywords = dict[str, Any]()
    if options and entry.options:
        keywords["options"] = options.plugins[entry.options]
    reader: Callable[..., Document] = entry.load()
    document = reader(content, source, target, **keywords)
    # Documents are read whole, so `raw_lines` has not limited the lengths of their lines.
    for line in document.lines:
        # A character has at most 4 bytes in UTF-8, so most lines need not be encoded.
        if len(line) > LINE_BYTES // 4 and len(line.encode()) > LINE_BYTES:
            raise NMTError(f"{readable(line[:40])!r}: {TOO_LONG}")
    return document
