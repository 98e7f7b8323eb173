"""Java's .properties files (java.util.Properties.load in the documentation of the Java platform).

Most are resource bundles, whose values the class MessageFormat of Java reads.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from nmt.config import NMTError
from nmt.plugins.catalogs.messages import JavaMessage, doubles_apostrophes
from nmt.plugins.catalogs.templates import line_number
from nmt.plugins.catalogs.values import Value, Values
from nmt.plugins.documents import decode_file, is_technical
from nmt.text import problem_of

LATIN_1 = "iso8859-1"
CONTINUATION = r"\\(?:\r\n?|\n)[ \t\f]*+"
SPACE = rf"(?>(?:[ \t\f]|{CONTINUATION})*)"
ESCAPE = rf"{CONTINUATION}|\\(?:[^\r\n]|\Z)"
ENTRY = re.compile(
    r"[ \t\f]*+(?:"
    r"[#!][^\r\n]*+"
    rf"|(?>(?:[^\\ \t\f\r\n=:]|{ESCAPE})*){SPACE}(?>[=:]{SPACE}|)"
    rf"(?P<value>(?>(?:[^\\\r\n]|{ESCAPE})*))"
    r")(?:\r\n?|\n|\Z)"
)
"""A comment, or a key and its value."""
ESCAPED = re.compile(rf"(?:\\u[\da-fA-F]{{4}})+|{ESCAPE}")
BREAK = re.compile(r"\\(?P<end>\r\n?|\n)(?P<indent>[ \t\f]*)")
NO_UNICODE = re.compile(r"(?<!\\)(?:\\\\)*+\\u(?![\da-fA-F]{4})")
LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
CONTROLS = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
WORD = re.compile(r"(?>(?:[^ \\]|\\[^n])*)(?:\\n| +|\\?\Z)")
"""Text up to the end of a line, or up to the white space behind a word."""


class Properties(Values):
    """A file of Java properties; keys, comments and technical values stay unchanged."""

    def decode(self, content: bytes) -> tuple[str, bytes, str]:
        try:
            content.decode()
        except UnicodeDecodeError:
            problem = problem_of(content[:8192])
            if problem:
                raise NMTError(problem) from None
            # The encoding of all properties before Java 9.
            return content.decode(LATIN_1), b"", LATIN_1
        text, mark, encoding = decode_file(content)
        # Both encodings of properties have the characters of ASCII.
        return text, mark, encoding if mark or not text.isascii() else "ascii"

    def read(self) -> None:
        self.values += self.values_in(self.file)

    def values_in(self, text: str) -> Iterator[Value]:
        spans = [entry.span("value") for entry in ENTRY.finditer(text) if entry["value"]]
        for begin, end in spans:
            damaged = NO_UNICODE.search(text, begin, end)
            if damaged:
                number = line_number(text, damaged.end())
                raise NMTError(f"line {number}: \\u needs four hexadecimal digits")
        values = [read_value(text[begin:end]) for begin, end in spans]
        is_doubled = doubles_apostrophes(values)
        for (begin, end), value in zip(spans, values, strict=True):
            if not is_technical(value):
                notation = notation_of(text[begin:end], self.encoding)
                yield Value(begin, end, JavaMessage(value, is_doubled), notation.write)


def read_value(raw: str) -> str:
    """The text that Java reads."""
    return ESCAPED.sub(read_escape, raw)


def read_escape(escape: re.Match[str]) -> str:
    raw = escape[0]
    if raw.startswith("\\u"):
        # Two escapes for a character beyond U+FFFF are a pair in UTF-16.
        units = bytes.fromhex(raw.replace("\\u", ""))
        return units.decode("utf-16-be", "surrogatepass")
    if raw[1:2] in ("", "\r", "\n"):
        return ""  # the line continues
    return LETTERS.get(raw[1], raw[1])


@dataclass
class Notation:
    """How a value is written in its file."""

    encoding: str
    """Other characters are written as escapes."""
    escaped: set[str]
    """Signs with a backslash that need none."""
    width: int = 0
    """The length of the longest line; 0 for a value on a single line."""
    continuation: str = ""
    """The backslash, the line break and the indentation of the next line."""
    breaks_at_ends: bool = False
    """Whether a line of the file ends where a line of the text ends."""
    table: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.table = {ord(sign): escape for sign, escape in CONTROLS.items()}
        self.table |= {ord(sign): f"\\{sign}" for sign in self.escaped}

    def write(self, text: str) -> str:
        written = self.without_other_characters(text.translate(self.table))
        if written.startswith(" "):
            written = f"\\{written}"  # white space at the beginning would be skipped
        return self.wrapped(written) if self.continuation else written

    def without_other_characters(self, text: str) -> str:
        if self.encoding not in ("ascii", LATIN_1):
            return text
        limit = 0x80 if self.encoding == "ascii" else 0x100
        pieces = list[str]()
        for character in text:
            if ord(character) < limit:
                pieces.append(character)
            else:
                units = character.encode("utf-16-be").hex()
                pieces += [f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)]
        return "".join(pieces)

    def wrapped(self, text: str) -> str:
        """The value on lines as long as in the source."""
        lines = [""]
        for word in WORD.findall(text):
            line = lines[-1]
            is_end = self.breaks_at_ends and line.endswith("\\n")
            is_full = bool(line) and len(line) + len(word.rstrip()) > self.width
            if word and (is_end or is_full):
                lines.append("")
            lines[-1] += word
        for number, line in enumerate(lines):
            if number and line.startswith(" "):
                lines[number] = f"\\{line}"
        return self.continuation.join(lines)


def notation_of(raw: str, encoding: str) -> Notation:
    """The notation of a value in a file of this encoding."""
    if "\\u" in raw:
        encoding = "ascii"
    signs = {sign for sign in ":=#!'\"" if f"\\{sign}" in raw}
    lines = BREAK.split(raw)[::3]
    first = BREAK.search(raw)
    if not first:
        return Notation(encoding, signs)
    ends = [line.endswith("\\n") for line in lines[:-1]]
    width = max(map(len, lines))
    return Notation(encoding, signs, width, first[0], any(ends))
