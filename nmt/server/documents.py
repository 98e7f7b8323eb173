"""Texts and files as lines to translate, and back. Each format is a reader in READERS."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Protocol

from nmt.errors import NMTError


class Document(Protocol):
    """A text whose lines are to be translated."""

    lines: list[str]
    """None of them is blank."""

    def join(self, translations: list[str]) -> str:
        """The text with translations instead of its lines."""


@dataclass
class PlainText:
    """Lines of text; line ends, blank lines and white space around a line stay as they are."""

    parts: list[tuple[str, str, str]]
    """Of each line of the text: white space, what is translated, white space."""

    def __init__(self, text: str) -> None:
        self.parts = []
        for line in text.split("\n"):
            begun = line.lstrip()
            own = begun.rstrip()
            self.parts.append((line[: len(line) - len(begun)], own, begun[len(own) :]))
        self.lines = [own for _, own, _ in self.parts if own]

    def join(self, translations: list[str]) -> str:
        found = iter(translations)
        return "\n".join(before + (next(found) if own else "") + after for before, own, after in self.parts)

    def numbers(self) -> list[int]:
        """The number in the text, counted from 0, of each line that is translated."""
        return [number for number, (_, own, _) in enumerate(self.parts) if own]


def read_plain_text(content: bytes) -> PlainText:
    """A file of plain text; NMTError where it is not in UTF-8."""
    try:
        return PlainText(content.decode())
    except UnicodeDecodeError as error:
        raise NMTError(f"not UTF-8 at byte {error.start + 1}: save it as UTF-8") from error


READERS: dict[str, Callable[[bytes], Document]] = {".txt": read_plain_text}
"""By the suffix of a file's name."""


def read_document(name: str, content: bytes) -> Document:
    """The document in a file; NMTError where its format is not known, or it is damaged."""
    suffix = PurePath(name).suffix.lower()
    if suffix not in READERS:
        raise NMTError(f"files of this kind are not translated; {', '.join(READERS)} are")
    return READERS[suffix](content)
