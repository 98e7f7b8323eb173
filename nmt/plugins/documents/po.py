"""Message catalogs of GNU gettext (https://www.gnu.org/software/gettext/manual, section PO Files), by polib.

Messages without a translation get one, and the flag `fuzzy`, as nobody has checked it. All else stays as it is.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polib

from nmt.errors import NMTError
from nmt.plugins.documents.document import Direction, Document, Spliced, Translated, decoded
from nmt.plugins.documents.strings import sentences_of
from nmt.text import same_directives

FORMAT = re.compile(r"(?!no-|possible-|impossible-)([a-z][a-z+-]*)-format")
FORMS = re.compile(r"nplurals[ \t]*=[ \t]*([1-9])(?!\d)")
NOT_ONE = re.compile(r"plural[ \t]*=[ \t]*\(?[ \t]*n[ \t]*!=[ \t]*1[ \t]*\)?[ \t]*;")
"""The rule of languages whose first plural form is for the number one alone."""
ESCAPE = re.compile(r"\\(?:(a)|x([\da-fA-F]{1,2})|([0-7]{1,3})|.)", re.DOTALL)
CONTROL = re.compile("[\x01-\x08\x0e-\x1b\x7f]")
FLAGS = re.compile(r"^#,(?=\S)", re.MULTILINE)


def for_polib(text: str) -> str:
    """A catalog with the characters that C's escapes stand for, and a blank before its flags."""

    def character(escape: re.Match[str]) -> str:
        bell, hexadecimal, octal = escape.groups()
        code = 7 if bell else int(hexadecimal, 16) if hexadecimal else int(octal, 8) if octal else 0
        plain = CONTROL.match(chr(code)) or (32 < code < 127 and chr(code) not in '"\\')
        return chr(code) if plain else escape[0]

    return FLAGS.sub("#, ", ESCAPE.sub(character, text))


@dataclass
class Message:
    """A message without a translation."""

    entry: polib.POEntry
    forms: int
    one: bool
    """Whether the first plural form is for the number one alone."""

    def __post_init__(self) -> None:
        self.sources = [text for text in (self.entry.msgid, self.entry.msgid_plural) if text]
        self.strings = [Spliced(text, sentences_of(text)) for text in self.sources]
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
        """True if a translation begins and ends as its source does, and takes the same arguments."""
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
        try:
            return polib.pofile(f"{for_polib(self.text)}\n")  # with a line end, it is no name of a file
        except (OSError, ValueError, IndexError) as error:
            raise NMTError(f"no catalog, or damaged: {error}") from error

    def messages(self, catalog: polib.POFile) -> Iterator[Message]:
        """The messages without a translation, but not plurals of a catalog without Plural-Forms; NMTError for a
        template, another character set, or another language than that of the model's translations."""
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
        text = CONTROL.sub(lambda control: f"\\{ord(control[0]):03o}", str(catalog))
        text = text if catalog.metadata else text.partition('msgstr ""\n\n')[2]  # else polib makes a header
        return self.mark + text.replace("\n", "\r\n" if "\r\n" in self.text else "\n").encode(self.encoding)
