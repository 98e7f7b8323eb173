"""The base of all document formats.

It splices translations into the text of a document.
"""

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from nmt.plugins.documents.encodings import decode_file, decode_markup, encode_markup
from nmt.translation import Document, Translated

MOST_NAMES = 5
"""The names that a count in a notice shows."""


@dataclass
class Part:
    """A span of text, replaced with the translation of its line.

    If it has no line, it is replaced with `otherwise`.
    """

    begin: int
    end: int
    lines: list[str] = field(default_factory=list)
    otherwise: str = ""

    # Without an annotation, it is no field.
    is_refused = False
    """Whether the last `render` left the translations out."""

    def render(self, translations: Sequence[Translated]) -> str:
        return translations[0].text if translations else self.otherwise


class Spliced:
    """A string whose `parts`, which count from `begin`, are replaced; the rest is kept."""

    def __init__(self, text: str, parts: Iterable[Part], begin: int = 0) -> None:
        self.text = text
        # Formats add parts by kind, such as declarations before sentences. The sort is stable, so
        # parts at the same place keep their order.
        self.parts = sorted(parts, key=lambda part: part.begin)
        self.begin = begin
        self.lines = list[str]()
        for part in self.parts:
            self.lines += part.lines
        self.refused: list[Translated] = []
        """The translations that the last `render` left out."""

    def render(self, translations: Iterable[Translated]) -> str:
        pieces = list[str]()
        at = 0
        left = iter(translations)
        self.refused = []
        for part in self.parts:
            # Parts may be at the same place; each adds its text.
            pieces.append(self.text[at : part.begin - self.begin])
            # A part has no line (a declaration), one line, or several (all sentences of a page).
            of_part = [*islice(left, len(part.lines))]
            pieces.append(part.render(of_part))
            if part.is_refused:
                self.refused += of_part
            at = part.end - self.begin
        pieces.append(self.text[at:])
        return "".join(pieces)


def notice_of(*counts: tuple[str, int]) -> str:
    """A warning with each number that is not zero."""
    return "; ".join(f"{what}: {count:,}" for what, count in counts if count)


def with_names(what: str, names: Counter[str]) -> tuple[str, int]:
    """A count for `notice_of` with the names that occur most often."""
    shown = [name for name, _ in names.most_common(MOST_NAMES)]
    if len(names) > MOST_NAMES:
        shown.append("...")
    return f"{what} ({', '.join(shown)})", names.total()


class Text(Document):
    """A text file, written back in its original encoding."""

    convert = "save it as UTF-8"
    """Advises the user what to do with a file in another encoding."""

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        text, self.mark, self.encoding = self.decode(content)
        self.text = Spliced(text, self.parts(text, target))
        self.lines = self.text.lines

    def decode(self, content: bytes) -> tuple[str, bytes, str]:
        """The text, its byte order mark and its encoding."""
        return decode_file(content, convert=self.convert)

    @abstractmethod
    def parts(self, text: str, target: str) -> Sequence[Part]:
        """The parts to replace; `target` is a language code or empty."""

    def join(self, translations: Sequence[Translated]) -> bytes:
        content = self.mark + self.encoded(self.text.render(translations))
        self.refused = self.text.refused
        return content

    def encoded(self, text: str) -> bytes:
        # In other files, all encodings have all characters.
        return encode_markup(text, self.encoding, self.text.text)


class MarkedUp(Text):
    """A file of HTML or XML, which may declare its encoding."""

    def decode(self, content: bytes) -> tuple[str, bytes, str]:
        return decode_markup(content)


def plain_text(text: str) -> Spliced:
    """Find the lines to translate in a text.

    Blank lines and the whitespace around lines stay unchanged.
    """
    # Line breaks and the white space between the matches belong to no part, so they stay.
    lines = re.finditer(r"[^\s](?:[^\n]*[^\s])?", text)
    return Spliced(text, [Part(*line.span(), [line[0]]) for line in lines])


class PlainText(Text):
    def parts(self, text: str, target: str) -> Sequence[Part]:
        return plain_text(text).parts
