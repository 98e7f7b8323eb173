"""Message catalogs of GNU gettext (https://www.gnu.org/software/gettext/manual, section PO Files), and subtitles.

Both hold short texts with tags, and line ends that matter. Messages without a translation get one, and the flag
`fuzzy`, because nobody has checked it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polib

from nmt.errors import NMTError
from nmt.plugins.documents.directives import same_directives
from nmt.plugins.documents.document import Direction, Document, Part, Spliced, Text, Translated, decoded
from nmt.plugins.documents.markup import Sentence, Token

ESCAPED = "\ue000"
"""Stands for the backslash of escapes of C that polib would lose."""
ESCAPE = re.compile(r"\\(?:(?=[abfvx0-7])|.)", re.DOTALL)
MARKUP = re.compile(
    r"(?P<line>\r?\n)|</?(?P<name>(?!PRI[diouxX])[a-zA-Z][\w:-]*)(?:\s+[\w:-]+\s*=[^<>]*|\s*/)?>|\{\\[^{}]*\}"
    rf"|\A\s*[-*•\u2013]\s+|{ESCAPED}(?:(?:x[\da-fA-F]+|[0-7]{{1,3}})(?:\[[\d;]*[a-zA-Z])?|.)"
)
"""A line end, a tag, a command of subtitles such as {\\an8}, the dash at the beginning, or an escape of C."""
PARAGRAPH = re.compile(r"\r?\n(?=[ \t\r\n]|[-*•\u2013]|\d+[.)])")
"""The end of a line before an empty line, an item of a list, or an indented line."""
TIMES = r"[ \t]*\d[\d:.,]* +--> "
CUE = re.compile(rf"^{TIMES}.*\n(?P<text>(?:(?!(?:\d+[ \t\r]*\n)?{TIMES})[ \t\r]*+\S.*(?:\n|\Z))*+)", re.MULTILINE)
FORMAT = re.compile(r"(?!no-|possible-|impossible-)([a-z][a-z+-]*)-format")
FORMS = re.compile(r"nplurals[ \t]*=[ \t]*([1-9])(?!\d)")
NOT_ONE = re.compile(r"plural[ \t]*=[ \t]*\(?[ \t]*n[ \t]*!=[ \t]*1[ \t]*\)?[ \t]*;")
"""The rule of languages whose first plural form is for the number one alone."""


def tokens_of(text: str) -> Iterator[Token]:
    at = 0
    for markup in MARKUP.finditer(text):
        raw, name, is_end = markup[0], markup["name"], bool(markup["line"])
        yield Token("text", text[at : markup.start()], text[at : markup.start()])
        at = markup.end()
        if not name or raw.endswith("/>"):
            yield Token("point", raw, breaks=is_end, optional=is_end)
        else:
            yield Token("close" if raw[1] == "/" else "open", raw, name=name.lower())
    yield Token("text", text[at:], text[at:])


def sentences_of(text: str, begin: int = 0) -> Iterator[Sentence]:
    """The sentences of a text that stands at `begin` in a file."""
    at = 0
    for end in [*(match.end() for match in PARAGRAPH.finditer(text)), len(text)]:
        yield Sentence(begin + at, list(tokens_of(text[at:end])), str)
        at = end


class Subtitles(Text):
    """Subtitles of SubRip: lines of text below a line of times, up to an empty line."""

    def parts(self, text: str, model: Direction) -> list[Part]:
        cues = (match.span("text") for match in CUE.finditer(text))
        return [sentence for begin, end in cues for sentence in sentences_of(text[begin:end], begin)]


@dataclass
class Message:
    """A message without a translation."""

    entry: polib.POEntry
    forms: int
    one: bool
    """Whether the first plural form is for the number one alone."""

    def __post_init__(self) -> None:
        self.sources = [text for text in (self.entry.msgid, self.entry.msgid_plural) if text]
        self.strings = [Spliced(text, list(sentences_of(text))) for text in self.sources]
        self.lines = [line for string in self.strings for line in string.lines]

    def write(self, translations: Sequence[Translated]) -> bool:
        """Write a translation; False if it would not do as a format string."""
        count = len(self.strings[0].lines)
        parts = (translations[:count], translations[count:])
        texts = [string.render(part) for string, part in zip(self.strings, parts, strict=False)]
        if len(texts) > 1 and not self.alike(self.sources[not self.one], texts[0]):
            texts[0] = texts[1]
        if not self.alike(self.sources[-1], texts[-1]):
            return False
        if len(texts) == 1:
            self.entry.msgstr = texts[0]
        for form in range(self.forms if len(texts) > 1 else 0):
            # The only form of a language without a plural is for all numbers.
            text = self.entry.msgstr_plural.get(form) or texts[form > 0 or self.forms == 1]
            self.entry.msgstr_plural[form] = text
        if "fuzzy" not in self.entry.flags:
            self.entry.flags.insert(0, "fuzzy")
        return True

    def alike(self, source: str, text: str) -> bool:
        """Whether a translation begins and ends as its source does, and takes the same arguments."""
        ends = [(side.startswith("\n"), side.endswith("\n")) for side in (source, text)]
        formats = [kind[1] for flag in self.entry.flags if (kind := FORMAT.fullmatch(flag))]
        return ends[0] == ends[1] and all(same_directives(format, source, text) for format in formats)


class Catalog(Document):
    """The messages of a catalog."""

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.content, self.model = content, Direction(source, target)
        self.text, self.mark, self.encoding = decoded(content, convert="convert it with `msgconv -t UTF-8`")
        self.lines = [line for message in self.messages(self.read()) for line in message.lines]

    def read(self) -> polib.POFile:
        text = ESCAPE.sub(lambda escape: escape[0] if escape[0] != "\\" else ESCAPED, self.text)
        try:  # with a line end, it is no name of a file; polib needs a blank before flags
            return polib.pofile(re.sub(r"^#,(?=\S)", "#, ", text, flags=re.MULTILINE) + "\n")
        except (OSError, ValueError, IndexError) as error:
            raise NMTError(f"no catalog, or damaged: {error}") from error

    def messages(self, catalog: polib.POFile) -> Iterator[Message]:
        """The messages without a translation, but not plurals of a catalog without Plural-Forms.

        NMTError for a template, another character set, or another language than that of the model's translations.
        """
        charset = catalog.metadata.get("Content-Type", "charset=UTF-8").partition("charset=")[2]
        rule = catalog.metadata.get("Plural-Forms", "")
        if charset == "CHARSET" or "nplurals=INTEGER" in rule:
            raise NMTError(f"a template: make a catalog of it first, with `msginit -l {self.model.target or 'CODE'}`")
        if charset.lower() not in ("", "utf-8", "utf8", "us-ascii", "ascii"):
            raise NMTError(f"it says that it is in {charset}: convert it with `msgconv -t UTF-8`")
        Direction(target=catalog.metadata.get("Language", "")).check(self.model)
        nplurals = FORMS.search(rule)
        for entry in catalog:
            done = list(entry.msgstr_plural.values()) if entry.msgid_plural else [entry.msgstr]
            if not (entry.obsolete or all(done)) and (nplurals or not entry.msgid_plural):
                forms = max(int(nplurals[1]) if nplurals else 0, len(done))
                message = Message(entry, forms, bool(NOT_ONE.search(rule)))
                if message.strings and all(string.lines for string in message.strings):
                    yield message

    def join(self, translations: Sequence[Translated]) -> bytes:
        catalog, at, left = self.read(), 0, 0
        for message in self.messages(catalog):
            left += not message.write(translations[at : at + len(message.lines)])
            at += len(message.lines)
        if left:
            self.notice = f"messages left untranslated, because their format directives did not arrive: {left:,}"
        if not translations:
            return self.content
        text = str(catalog).replace(ESCAPED, "\\")
        text = text if catalog.metadata else text.partition('msgstr ""\n\n')[2]  # else polib makes a header
        return self.mark + text.replace("\n", "\r\n" if "\r\n" in self.text else "\n").encode(self.encoding)
