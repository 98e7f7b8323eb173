"""GNU gettext message catalogs (https://www.gnu.org/software/gettext/manual, section PO Files)."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import polib

from nmt.config import NMTError
from nmt.plugins.documents.catalog_lines import CatalogLines, check_lines, damaged_line
from nmt.plugins.documents.directives import FORMAT, same_directives
from nmt.plugins.documents.document import notice_of
from nmt.plugins.documents.encodings import decode_file
from nmt.plugins.documents.headers import LANGUAGE, new_language, plural_header
from nmt.plugins.documents.plural_forms import lacking
from nmt.plugins.documents.readings import READINGS_LEFT_OUT, lost_readings
from nmt.plugins.documents.string_markup import ESCAPED
from nmt.plugins.documents.strings import FRONT_MATTER_LEFT, String
from nmt.translation import OMITTED, TRUSTED, Document, Translated

CONVERT = "convert it with `msgconv -t UTF-8`"
PLURAL_FORMS = "Plural-Forms"
CHARSETS = ("", "utf-8", "utf8", "us-ascii", "ascii")
ESCAPE = re.compile(r"\\(?:(?=[abfvx0-7])|.)", re.DOTALL)
"""An escape; the backslash alone if polib would not write the escape as it was, as in \\x1b."""
FLAGS_WITHOUT_SPACE = re.compile(r"^#,(?=\S)", re.MULTILINE)
FORMS = re.compile(r"nplurals[ \t]*=[ \t]*([1-9])(?!\d)")
WITHOUT_FORMS = "plural messages left untranslated because the header has no valid Plural-Forms"
REFUSED = "messages left untranslated because the translation lost their format directives"
UNREADABLE = "messages left untranslated because nmt cannot parse their ICU syntax"
LEFT_OUT = "messages left untranslated because they are probably not good"
WITHOUT_WORDS = "messages without words left untranslated"


def fits(entry: polib.POEntry, text: str) -> bool:
    """True if a translation has the line breaks at its ends and the arguments of its message."""
    source = entry.msgid_plural or entry.msgid
    # `msgfmt -c` requires this of every translation.
    if source.startswith("\n") != text.startswith("\n"):
        return False
    if source.endswith("\n") != text.endswith("\n"):
        return False
    for flag in entry.flags:
        kind = FORMAT.fullmatch(flag)
        if kind and not same_directives(kind[1], source, text):
            return False
    return True


def is_translated(entry: polib.POEntry) -> bool:
    return all(entry.msgstr_plural.values()) if entry.msgid_plural else bool(entry.msgstr)


@dataclass
class CatalogMessage:
    """A message to translate."""

    index: int
    """The index of the message's entry in the catalog."""
    strings: list[String]
    """The message's text, and its plural if there is one."""


class Catalog(Document):
    """A catalog; its messages without a translation are translated, unless they are obsolete.

    All translations are fuzzy, except those that are probable enough for a user's minimum.
    """

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.text, self.mark, self.encoding = decode_file(content, convert=CONVERT)
        self.content = content
        self.target = target
        catalog = self.read()
        check_header(catalog.metadata, target)
        nplurals = FORMS.search(catalog.metadata.get(PLURAL_FORMS, ""))
        self.forms = int(nplurals[1]) if nplurals else 0
        self.language: str | None = None  # declared by the header of the translation
        # A notice, if the header declared a third language.
        self.relabeled = ""
        declared = catalog.metadata.get(LANGUAGE)
        if declared is not None:
            self.language, self.relabeled = new_language(declared.strip(), source, target)
        self.left = Counter[str]()  # what stays untranslated, by the reason
        self.messages = list[CatalogMessage]()
        for index, entry in enumerate(catalog):
            if not entry.obsolete and not is_translated(entry):
                self.add(index, entry)
        self.lines = list[str]()
        for string in self.strings():
            self.lines += string.lines

    def read(self) -> polib.POFile:
        # polib 1.2 would write the backslash of \x1b twice, and break a line at \v or \f.
        text = ESCAPE.sub(read_escape, self.text)
        check_lines(text)
        # polib needs a space before flags. The newline tells it that this is not a file name.
        with_spaces = FLAGS_WITHOUT_SPACE.sub("#, ", text) + "\n"
        try:
            catalog = polib.pofile(with_spaces)
        # The exceptions that polib raises for damaged files.
        except (OSError, ValueError, IndexError) as error:
            raise NMTError(f"not a message catalog, or it is damaged: {error}") from error
        # polib reads some catalogs that msgfmt rejects.
        number = damaged_line(text)
        if number:
            raise NMTError(
                "not a message catalog, or it is damaged: "
                f"line {number} is a comment within a message, or msgstr is missing"
            )
        return catalog

    def add(self, index: int, entry: polib.POEntry) -> None:
        """Add a message, or count it if it cannot be translated."""
        strings = [String(text) for text in (entry.msgid, entry.msgid_plural) if text]
        if entry.msgid_plural and not self.forms:
            self.left[WITHOUT_FORMS] += 1
            return
        if not all(string.is_readable for string in strings):
            self.left[UNREADABLE] += 1
            return
        has_front_matter = any(string.has_front_matter for string in strings)
        self.left[FRONT_MATTER_LEFT] += has_front_matter
        if any(string.lines for string in strings):
            self.messages.append(CatalogMessage(index, strings))
        elif not has_front_matter:
            self.left[WITHOUT_WORDS] += 1

    def strings(self) -> Iterator[String]:
        for message in self.messages:
            yield from message.strings

    def has_mark(self, line: int) -> bool:
        return True

    def join(self, translations: Sequence[Translated]) -> bytes:
        catalog = self.read()
        lines = CatalogLines(self.text, catalog)
        left = iter(translations)
        refused = 0
        readings = 0
        self.refused = list[Translated]()
        self.left[LEFT_OUT] = 0
        for message in self.messages:
            entry = catalog[message.index]
            count = sum(len(string.lines) for string in message.strings)
            translated = list(islice(left, count))
            trusts = {line.trust for line in translated}
            if OMITTED in trusts:
                self.left[LEFT_OUT] += 1
                continue
            of_message = iter(translated)
            texts = [translation_of(entry, string, of_message) for string in message.strings]
            # The last string is the plural, which `fill` also uses for a singular that does not
            # fit.
            if texts[-1]:
                filled = self.fill(entry, texts[0], texts[-1])
                # Text that has no translation stands in for it.
                is_whole = all(texts) and all(line.text.strip() for line in translated)
                is_trusted = is_whole and trusts == {TRUSTED}
                lines.replace(entry, filled, is_fuzzy=not is_trusted)
                readings += lost_readings(message.strings[-1].text, texts[-1])
            else:
                refused += 1
                self.refused += translated
        self.notice = self.notice_with(refused, readings, is_new=bool(translations))
        # Without translations, not even the header changes.
        if not translations:
            return self.content
        return self.mark + lines.text(self.language).encode(self.encoding)

    def fill(self, entry: polib.POEntry, first: str, last: str) -> str:
        """The `msgstr` lines of a message, whose empty forms are filled with its translations.

        The translations are those of its text and of its plural; both are the same if it has none.
        """
        filled = polib.POEntry(msgstr=last)
        if entry.msgid_plural:
            # A language without plurals has one form for all numbers.
            forms = [last] if self.forms == 1 else [first or last, last]
            # A message may have more forms than the header declares.
            for number in range(max(self.forms, len(entry.msgstr_plural))):
                form = forms[min(number, len(forms) - 1)]
                filled.msgstr_plural[number] = entry.msgstr_plural.get(number) or form
        # polib wraps and escapes the lines. It writes whole entries, so this one has nothing else.
        lines = str(filled).removeprefix('msgid ""\n').removesuffix("\n")
        return lines.replace(ESCAPED, "\\")

    def notice_with(self, refused: int, readings: int, is_new: bool) -> str:
        """The notice about a catalog, whose header changes if it `is_new`."""
        messages = [string.message for string in self.strings() if string.message]
        counts = notice_of(
            (REFUSED, refused),
            *self.left.items(),
            (READINGS_LEFT_OUT, readings),
            lacking(messages, self.target),
        )
        notices = [counts, self.advice()]
        if is_new:
            notices.append(self.relabeled)
        return "; ".join(filter(None, notices))

    def advice(self) -> str:
        """Advice to get plural messages translated, if they were left out."""
        if not self.left[WITHOUT_FORMS] or not self.target:
            return ""
        line = plural_header(self.target)
        return f"to translate them, add this line to the header: {line}" if line else ""


def check_header(metadata: dict[str, str], target: str) -> None:
    """Raise NMTError if the header is that of a template, or declares an encoding besides UTF-8."""
    # Without a header, a catalog is in UTF-8.
    content_type = metadata.get("Content-Type", "charset=UTF-8")
    charset = content_type.partition("charset=")[2].lower()
    if charset == "charset" or "INTEGER" in metadata.get(PLURAL_FORMS, ""):
        command = f"msginit -l {target or 'CODE'}"
        raise NMTError(f"this is a template: first create a catalog with `{command}`")
    if charset not in CHARSETS:
        raise NMTError(f"declares the charset {charset}: {CONVERT}")


def read_escape(escape: re.Match[str]) -> str:
    """An escape for polib: another character stands for a backslash that polib would change."""
    return ESCAPED if escape[0] == "\\" else escape[0]


def translation_of(entry: polib.POEntry, string: String, left: Iterator[Translated]) -> str:
    """The next translation, that of a string of a message; empty if it does not fit the message."""
    translated = list(islice(left, len(string.lines)))
    text = string.render(translated)
    if string.message and not string.keeps(translated, text):
        return ""
    return text if fits(entry, text) else ""
