"""The base of catalogs whose values are translated where they are, as strings of a program."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from nmt.plugins.documents import (
    READINGS_LEFT_OUT,
    SURROGATES_LEFT,
    Part,
    Spliced,
    String,
    decode_file,
    decode_markup,
    encode_markup,
    lacking,
    lost_readings,
    notice_of,
)
from nmt.translation import Document, Translated

REFUSED = "strings left untranslated because the translation lost their placeholders"
UNREADABLE = "strings left untranslated because nmt cannot parse their ICU syntax"
FRONT_MATTER_LEFT = "strings whose front matter is left untranslated"
MARKUP_LEFT = "strings with comments or elements of XML left untranslated"


@dataclass
class Copy:
    """Another plural form with the same text, inserted at an offset of the file."""

    at: int
    before: str
    after: str = ""


@dataclass
class Value:
    """A string in a file: its span there, its text, and how to write another text."""

    begin: int
    end: int
    string: String
    write: Callable[[str], str]
    copies: list[Copy] = field(default_factory=list)
    is_completed: bool = False
    """Whether `string` has plural forms that the file lacks."""


class Values(Document):
    """A file whose values are replaced with their translations."""

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.file, self.mark, self.encoding = self.decode(content)
        self.source = source
        self.target = target
        self.values = list[Value]()
        self.changes = list[Part]()
        """What else changes, such as plural forms that the target language lacks."""
        self.left = Counter[str]()
        """What stays untranslated, by the reason."""
        self.read()
        self.lines = list[str]()
        for value in self.values:
            self.lines += value.string.lines

    def decode(self, content: bytes) -> tuple[str, bytes, str]:
        """The text, its byte order mark and its encoding."""
        return decode_file(content)

    def encode(self, text: str) -> bytes:
        """The bytes of the translated file, without the mark."""
        return text.encode(self.encoding)

    @abstractmethod
    def read(self) -> None:
        """Parse the file into `values` and `changes`."""

    def join(self, translations: Sequence[Translated]) -> bytes:
        left = iter(translations)
        parts = [*self.changes]
        counts = self.left.copy()
        self.refused = list[Translated]()
        for value in self.values:
            # Take the lines of every value, even of one that stays, so that the next value gets
            # its own.
            lines = list(islice(left, len(value.string.lines)))
            text = checked(value.string, lines, counts, self.refused)
            if text is None and value.is_completed:
                text = value.string.text
            written = self.file[value.begin : value.end]
            if text is not None:
                written = value.write(text)
                parts.append(Part(value.begin, value.end, otherwise=written))
            for copy in value.copies:
                added = copy.before + written + copy.after
                parts.append(Part(copy.at, copy.at, otherwise=added))
        strings = [value.string for value in self.values]
        self.notice = notice_about(strings, counts, self.target)
        text = Spliced(self.file, parts).render(())
        return self.mark + self.encode(text)


class XmlValues(Values):
    """A file of XML, which may declare its encoding."""

    def decode(self, content: bytes) -> tuple[str, bytes, str]:
        return decode_markup(content)

    def encode(self, text: str) -> bytes:
        return encode_markup(text, self.encoding, self.file)


def checked(
    string: String,
    lines: Sequence[Translated],
    counts: Counter[str],
    refused: list[Translated],
) -> str | None:
    """The new text of a string; None if it does not change, or may not.

    The latter is counted, and its translations are added to `refused`.
    """
    text = string.render(lines)
    if text == string.text:
        return None
    if not string.keeps(lines, text):
        counts[REFUSED] += 1
        refused += lines
        return None
    counts[READINGS_LEFT_OUT] += lost_readings(string.text, text)
    return text


def space_before(text: str, at: int) -> str:
    """The white space directly before an offset, which separates a form from the one before it."""
    begin = at
    while begin and text[begin - 1] in " \t\r\n":
        begin -= 1
    return text[begin:at]


def notice_about(strings: Sequence[String], counts: Counter[str], target: str) -> str:
    """The notice about a file with these strings."""
    unreadable = sum(not string.is_readable for string in strings)
    fronts = sum(string.has_front_matter for string in strings)
    halves = sum(string.has_surrogates for string in strings)
    messages = [string.message for string in strings if string.message]
    return notice_of(
        *counts.items(),
        (UNREADABLE, unreadable),
        (FRONT_MATTER_LEFT, fronts),
        (SURROGATES_LEFT, halves),
        lacking(messages, target),
    )
