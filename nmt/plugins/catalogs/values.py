"""The base of catalogs: files with strings at known places, which are replaced there."""

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from nmt.items import COPY, USUAL, Finder
from nmt.plugins.documents import (
    READINGS_LEFT_OUT,
    Inset,
    Kind,
    MarkupToken,
    Part,
    Reader,
    Spliced,
    String,
    decode_file,
    has_items,
    is_message,
    lacking,
    lost_readings,
    notice_of,
)
from nmt.text import BLOCKS, INLINE, SEPARATORS
from nmt.translation import Document, Translated

REFUSED = "strings left untranslated because the model lost their placeholders"
UNREADABLE = "strings left untranslated because nmt cannot parse their syntax"
FRONT_MATTER_LEFT = "strings whose front matter is left untranslated"
MEDIA = "application|audio|font|image|multipart|text|video"
IDENTIFIER = re.compile(
    r"[\w$-]{1,200}(?:\.[\w$-]{1,200}){1,50};?"  # org.example.Main
    r"|/?(?:[a-z\d_.-]{1,200}/){2,50}[\w.*-]{0,200}"  # a/b/c
    rf"|(?:{MEDIA})/[\w.+*-]{{1,100}}"
    r"|true|false|null"
)
"""A name in a program; a word alone is text."""
LONGEST_TECHNICAL = 1000
STRING = Kind()
ANGLES = re.compile(r"<([A-Za-z][\w-]{0,60})>")
CLOSED = re.compile(r"</([A-Za-z][\w-]{0,60})")
ELEMENTS = INLINE | BLOCKS | SEPARATORS
"""Elements of HTML. Another name in angle brackets is a placeholder if it is never closed."""


@dataclass
class Addition:
    """A copy of a value's translation, such as a further plural form, inserted at an offset."""

    at: int
    before: str
    after: str = ""


@dataclass
class Value:
    """A string at a span of the file."""

    begin: int
    end: int
    string: String
    write: Callable[[str], str]
    """Turns a text into the notation of the file."""
    additions: list[Addition] = field(default_factory=list)


class Template(String):
    """A string whose placeholders are those of a pattern; they are copied."""

    def __init__(self, text: str, placeholder: re.Pattern[str], kind: Kind = STRING) -> None:
        self.placeholder = placeholder
        self.kind = kind
        super().__init__(text)

    def find_parts(self, text: str) -> list[Part]:
        matches = [*self.placeholder.finditer(text), *placeholders_in_angles(text)]
        insets = list[Inset]()
        for match in sorted(matches, key=lambda match: match.start()):
            token = MarkupToken("copy", match[0], match[0])
            insets.append(Inset(*match.span(), token))
        if not insets and self.kind is STRING:
            return super().find_parts(text)
        return Reader(text, 0, self.kind, insets).parts

    def keeps(self, translations: Sequence[Translated], text: str) -> bool:
        if self.message:
            return super().keeps(translations, text)
        # A translation may have text that looks like a placeholder of the format.
        if self.placeholders(self.text) != self.placeholders(text):
            return False
        for line, translation in zip(self.lines, translations, strict=True):
            # The copies are in the text, even if the model lost them.
            if not has_items(COPY.sub(" ", line), COPY.sub(" ", translation.text)):
                return False
        return True

    def placeholders(self, text: str) -> Counter[str]:
        return Counter(placeholder[0] for placeholder in self.placeholder.finditer(text))


class Values(Document):
    """A file with strings; a string that would lose a placeholder stays untranslated."""

    on_missing_character = "strict"
    """What Python's encoder does with a character that the file's encoding lacks."""

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.text, self.mark, self.encoding = self.decode(content)
        self.source = source
        self.target = target
        self.left = Counter[str]()  # what stays untranslated, by the reason
        self.edits = list[Part]()  # changes that depend on no translation
        self.values = [*self.read(self.text)]
        self.lines = list[str]()
        for value in self.values:
            self.lines += value.string.lines

    def decode(self, content: bytes) -> tuple[str, bytes, str]:
        """The text, its byte order mark and its encoding."""
        return decode_file(content)

    @abstractmethod
    def read(self, text: str) -> Iterable[Value]:
        """The strings to translate; raise NMTError if the file is damaged."""

    def join(self, translations: Sequence[Translated]) -> bytes:
        left = iter(translations)
        parts = [*self.edits]
        counts = Counter(self.left)
        for value in self.values:
            string = value.string
            lines = list(islice(left, len(string.lines)))
            text = string.render(lines)
            written = self.text[value.begin : value.end]
            # Strings that do not change are not written again.
            if text != string.text:
                if string.keeps(lines, text):
                    written = value.write(text)
                    parts.append(Part(value.begin, value.end, otherwise=written))
                    counts[READINGS_LEFT_OUT] += lost_readings(string.text, text)
                else:
                    counts[REFUSED] += 1
            for addition in value.additions:
                inserted = addition.before + written + addition.after
                parts.append(Part(addition.at, addition.at, otherwise=inserted))
        self.notice = self.notice_with(counts)
        text = Spliced(self.text, parts).render(())
        return self.mark + text.encode(self.encoding, self.on_missing_character)

    def notice_with(self, counts: Counter[str]) -> str:
        strings = [value.string for value in self.values]
        messages = [string.message for string in strings if string.message]
        counts[UNREADABLE] += sum(not string.is_readable for string in strings)
        counts[FRONT_MATTER_LEFT] += sum(string.has_front_matter for string in strings)
        return notice_of(*counts.items(), lacking(messages, self.target))


def placeholders_in_angles(text: str) -> list[re.Match[str]]:
    """Placeholders such as <file>, which are no elements of HTML or XML."""
    closed = {*CLOSED.findall(text)}
    matches = ANGLES.finditer(text)
    return [match for match in matches if not {match[1].lower(), match[1]} & (ELEMENTS | closed)]


def is_technical(text: str) -> bool:
    """Whether a text has nothing to translate, such as a class name, a path, a URL or a number."""
    text = text.strip()
    # A message that chooses among texts looks like a placeholder. A long text has words.
    if is_message(text) or len(text) > LONGEST_TECHNICAL:
        return False
    if IDENTIFIER.fullmatch(text):
        return True
    at = 0
    for begin, end in Finder([USUAL]).stretches(text):
        if any(map(str.isalpha, text[at:begin])):
            return False
        at = end
    return not any(map(str.isalpha, text[at:]))


def line_number(text: str, offset: int) -> int:
    """The number of the line, counted from 1, at an offset of a text."""
    return text.count("\n", 0, offset) + 1
