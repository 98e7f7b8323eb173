"""The content of a block, in each kind of file.

The content is what the file has, the texts are what the model reads, and the payload is what the
finished block adds to the output.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from nmt.plugins.cluster.inputs import InputFile

TRANSLATION = "translation"
"""The field that a record gets."""
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half a character, which JSON can escape but UTF-8 cannot encode."""


@dataclass
class Content:
    """Consecutive lines or records of a file."""

    number: int
    """Of the block in its file, counted from 0."""
    first: int
    """The number of the first line or record, counted from 1."""
    rows: int
    """The number of lines or records."""
    digest: str
    """The SHA-256 of the content."""
    data: Any

    @property
    def size(self) -> int:
        """The number of bytes of the lines; 0 for the rows of a table."""
        if not isinstance(self.data, list):
            return 0
        size = 0
        for line in self.data:
            # Two parallel files have a line each.
            sides = (line,) if isinstance(line, bytes) else line
            size += sum(map(len, sides))
        return size


@dataclass
class Texts:
    """What the model reads in a block."""

    lines: list[Any] = field(default_factory=list)
    """Lines of text or, if rows have several texts, tuples of them."""
    rows: list[int] = field(default_factory=list)
    """For each line, the number of the line or record in the file that has it."""

    def add(self, text: str, row: int) -> None:
        """Add the lines of a field, which may have several."""
        for line in text.split("\n"):
            clean = LONE_SURROGATE.sub("\ufffd", line.removesuffix("\r"))
            self.lines.append(clean)
            self.rows.append(row)


class Kind(Protocol):
    """A kind of file."""

    def contents(self, file: InputFile, size: int) -> Iterator[Content]:
        """Read a file in blocks of `size` lines or records."""

    def texts(self, file: InputFile, content: Content) -> Texts:
        """The texts of a block; NMTError if a record has none."""

    def payload(self, content: Content, texts: Texts, results: list[Any]) -> bytes:
        """What the finished block adds to the output."""

    def join(self, file: InputFile, payloads: Iterable[bytes], output: Path) -> None:
        """Write the payloads of all blocks of a file as an output file."""


def fields_of_rows(texts: Texts, translations: list[str]) -> dict[int, str]:
    """Number of a record -> the translation of its field, with the line breaks of the field."""
    lines = dict[int, list[str]]()
    for row, translation in zip(texts.rows, translations, strict=True):
        lines.setdefault(row, []).append(translation)
    return {row: "\n".join(parts) for row, parts in lines.items()}
