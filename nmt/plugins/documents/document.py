"""What a file gives to be translated, and how it takes the translations back."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Translated(NamedTuple):
    """The translation of a line, and pairs of a source word and a target word, counted from 0; None: not known."""

    text: str
    alignment: Sequence[tuple[int, int]] | None = None


class Document(Protocol):
    """A file whose lines are to be translated."""

    lines: list[str]
    """None of them is blank, or holds a line end."""

    @property
    def notice(self) -> str:
        """What a user should know after `join`; empty if there is nothing."""

    def join(self, translations: Sequence[Translated]) -> bytes:
        """The file with translations instead of its lines."""


class Part(Protocol):
    """A stretch of a text that is written anew."""

    begin: int
    end: int

    @property
    def lines(self) -> list[str]:
        """The lines of it that are translated."""

    def render(self, translations: Sequence[Translated]) -> str:
        """The stretch with translations instead of its lines."""


class Encoded:
    """A text that is written as it was encoded."""

    mark, encoding = b"", "utf-8"
    """Its byte order mark, and its encoding; one that does not have all characters is of HTML or XML."""

    @property
    def notice(self) -> str:
        return ""

    def encoded(self, text: str) -> bytes:
        return self.mark + text.encode(self.encoding, "xmlcharrefreplace")


class PlainText(Encoded):
    """Lines of text; line ends, blank lines and white space around a line stay as they are."""

    def __init__(self, text: str) -> None:
        self.parts: list[tuple[str, str, str]] = []
        """Of each line of the text: white space, what is translated, white space."""
        for line in text.split("\n"):
            begun = line.lstrip()
            own = begun.rstrip()
            self.parts.append((line[: len(line) - len(begun)], own, begun[len(own) :]))
        self.lines = [own for _, own, _ in self.parts if own]

    def join(self, translations: Sequence[Translated]) -> bytes:
        found = iter(translations)
        lines = (before + (next(found).text if own else "") + after for before, own, after in self.parts)
        return self.encoded("\n".join(lines))

    def numbers(self) -> list[int]:
        """The number in the text, counted from 0, of each line that is translated."""
        return [number for number, (_, own, _) in enumerate(self.parts) if own]


class Spliced(Encoded):
    """A text of which some parts are written anew, and all others stay as they are."""

    def __init__(self, text: str, parts: Sequence[Part]) -> None:
        self.text, self.parts = text, parts
        self.lines = [line for part in parts for line in part.lines]

    def render(self, translations: Sequence[Translated]) -> str:
        pieces, at, used = list[str](), 0, 0
        for part in self.parts:
            own = translations[used : used + len(part.lines)]
            pieces += [self.text[at : part.begin], part.render(own)]
            at, used = part.end, used + len(own)
        return "".join(pieces) + self.text[at:]

    def join(self, translations: Sequence[Translated]) -> bytes:
        return self.encoded(self.render(translations))
