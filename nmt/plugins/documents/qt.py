"""Qt Linguist's catalogs, .ts (https://doc.qt.io/qt-6/linguist-ts-file-format.html)."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from nmt.config import NMTError
from nmt.plugins.documents.declared_languages import LanguageAttributes
from nmt.plugins.documents.document import MarkedUp, Part, notice_of
from nmt.plugins.documents.elements import INVALID, Element, parse_xml, text_of
from nmt.plugins.documents.message_units import UNREADABLE
from nmt.plugins.documents.plural_forms import lacking
from nmt.plugins.documents.qt_plurals import number_of_forms
from nmt.plugins.documents.string_markup import CODE, FIRST_CODE
from nmt.plugins.documents.strings import String
from nmt.translation import Translated

LANGUAGES = LanguageAttributes("sourcelanguage", "language", separator="_")
ROOT = "TS"
UNFINISHED = "unfinished"
ESCAPES = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    "'": "&apos;",
}
"""The characters that Qt's tools escape."""
ESCAPED = re.compile(r"""[&<>"'\r]|[^\S \t\n]""")
MNEMONIC = re.compile(r"(?<![^\s(\"])([^\W\d_]{1,30})&([a-z][^\W\d_]{0,30})(?![\w&=;])")
"""A word with a mnemonic inside, such as E&xit, but not R&D."""
REFUSED = "messages left untranslated because the translation lost their placeholders"
UNPARSED = "messages left untranslated because nmt cannot parse them"
WITHOUT_WORDS = "messages without words left untranslated"
FINISHED = "messages left untranslated because they are finished without a translation"
VARIANTS = "messages left untranslated because they have variants of several lengths"


class Linguist(MarkedUp):
    """A catalog; its unfinished messages without a translation are translated."""

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.source = source
        self.target = target
        self.left = Counter[str]()  # what stays untranslated, by the reason
        self.messages = list[Message]()
        super().__init__(content, source, target)

    def parts(self, text: str, target: str) -> Sequence[Part]:
        elements = parse_xml(text)
        roots = [element for element in elements if element.tag == ROOT]
        if not roots:
            raise NMTError("not a Qt catalog: it has no <TS>; for lines of text, pass format=text")
        parts = LANGUAGES.settled(roots[:1], self.source, target)
        for element in elements:
            if element.tag == "message":
                self.add(element)
        return [*parts, *self.messages]

    def add(self, element: Element) -> None:
        """Add a message, or count it if it stays untranslated although it has no translation."""
        children = {child.tag: child for child in element.children}
        source = children.get("source")
        translation = children.get("translation")
        if source is None or translation is None:
            return
        is_unfinished = translation.attributes.get("type") == UNFINISHED
        is_plural = element.attributes.get("numerus") == "yes"
        forms = number_of_forms(self.target) if is_plural else 0
        # In a finished plural, forms may be missing on purpose.
        if is_translated(translation, forms if is_unfinished else 0):
            return
        text, codes = text_and_codes(source)
        string = String(text)
        reason = reason_to_leave(translation, string)
        if reason:
            # A message without any text needs no translation.
            self.left[reason] += bool(text.strip())
        elif is_unfinished:
            self.messages.append(message_of(source, translation, string, codes, forms))

    def join(self, translations: Sequence[Translated]) -> bytes:
        # Only written texts show whether their placeholders are there.
        content = super().join(translations)
        refused = sum(message.is_refused for message in self.messages)
        icu_messages = [message.string.message for message in self.messages]
        self.notice = notice_of(
            (REFUSED, refused),
            *self.left.items(),
            lacking([message for message in icu_messages if message], self.target),
        )
        return content


@dataclass
class Message(Part):
    """The translation of a message."""

    element: Element = field(kw_only=True)
    """The element <translation>."""
    source: Element = field(kw_only=True)
    string: String = field(kw_only=True)
    codes: dict[str, str] = field(kw_only=True)
    """Private characters in `string` -> the elements that they stand for."""
    forms: int = field(kw_only=True)
    """The number of plural forms; 0 for a message without them."""
    is_refused: bool = False

    @property
    def newline(self) -> str:
        """The line end of the file."""
        return "\r\n" if "\r\n" in self.element.file else "\n"

    def render(self, translations: Sequence[Translated]) -> str:
        text = self.string.render(translations)
        self.is_refused = not self.string.keeps(translations, text)
        if self.is_refused:
            return self.element.raw
        # Text that does not change keeps its bytes.
        written = self.source.raw_inside
        if text != self.string.text:
            written = CODE.sub(lambda code: self.codes.get(code[0], code[0]), escaped(text))
            written = written.replace("\n", self.newline)
        tag = self.element.file[self.element.begin : self.element.inside]
        opening = tag.removesuffix("/>").removesuffix(">").rstrip()
        inside = self.plural_forms(written) if self.forms else written
        return f"{opening}>{inside}</translation>"

    def plural_forms(self, written: str) -> str:
        """The forms of a plural, each on a line; Qt has a single source text for all of them."""
        file = self.element.file
        line_begin = file.rfind("\n", 0, self.element.begin) + 1
        space = file[line_begin : self.element.begin]
        indentation = space if not space.strip() else ""
        forms = [form.raw for form in forms_of(self.element)]
        for index, form in enumerate(forms_of(self.element)):
            if not form.text.strip():
                forms[index] = ""
        forms += [""] * (self.forms - len(forms))
        new_form = f"<numerusform>{written}</numerusform>"
        line_end = f"{self.newline}{indentation}"
        lines = [f"{line_end}    {form or new_form}" for form in forms]
        return "".join(lines) + line_end


def message_of(
    source: Element,
    translation: Element,
    string: String,
    codes: dict[str, str],
    forms: int,
) -> Message:
    return Message(
        translation.begin,
        translation.end,
        string.lines,
        element=translation,
        source=source,
        string=string,
        codes=codes,
        forms=forms,
    )


def text_and_codes(source: Element) -> tuple[str, dict[str, str]]:
    """The text of a source, in which private characters stand for <byte> elements."""
    codes = dict[str, str]()
    pieces = list[str]()
    at = source.inside
    for child in source.children:
        pieces.append(text_between(source.file, at, child.begin))
        code = chr(ord(FIRST_CODE) + len(codes))
        codes[code] = child.raw
        pieces.append(code)
        at = child.end
    pieces.append(text_between(source.file, at, source.outside))
    text = "".join(pieces)
    # The characters could also be icons of the program, and their number is limited.
    if len(CODE.findall(text)) != len(codes):
        return UNREADABLE, {}
    # The mnemonic moves to the beginning of its word, where it stays with the translated word.
    if text.count("&") == 1:
        text = MNEMONIC.sub(r"&\1\2", text)
    return text, codes


def text_between(file: str, begin: int, end: int) -> str:
    """The text between two offsets of a file, with the line ends that XML parsers return."""
    return text_of(file[begin:end].replace("\r\n", "\n").replace("\r", "\n"))


def forms_of(translation: Element) -> list[Element]:
    return [child for child in translation.children if child.tag == "numerusform"]


def is_translated(translation: Element, forms: int) -> bool:
    """Whether a translation has a text or, if it has plural forms, this number of texts."""
    if not forms:
        return bool(translation.text.strip() or "<byte" in translation.raw_inside)
    texts = [form.text.strip() for form in forms_of(translation)]
    return len(texts) >= forms and all(texts)


def reason_to_leave(translation: Element, string: String) -> str:
    """Why a message without a translation stays untranslated; empty if it is translated.

    Also empty for obsolete and vanished messages, which are no longer in the program.
    """
    state = translation.attributes.get("type", "")
    if state not in ("", UNFINISHED):
        return ""
    if state == "":
        return FINISHED if string.lines else ""
    if has_variants(translation):
        return VARIANTS
    if not string.is_readable:
        return UNPARSED
    return "" if string.lines else WITHOUT_WORDS


def has_variants(translation: Element) -> bool:
    """Whether a translation has texts of several lengths, from which programs choose."""
    if "variants" in translation.spans:
        return True
    return any("variants" in child.spans for child in translation.children)


def escaped(text: str) -> str:
    """Text as Qt's tools write it, with white space other than blanks as references."""
    return ESCAPED.sub(
        lambda match: ESCAPES.get(match[0]) or f"&#x{ord(match[0]):x};",
        INVALID.sub("", text),
    )
