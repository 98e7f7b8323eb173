"""String Catalogs of Xcode, which contain the strings of an app in all languages.

https://developer.apple.com/documentation/xcode/localizing-and-varying-text-with-a-string-catalog
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from nmt.config import NMTError
from nmt.items import USUAL, Finder, hidden
from nmt.plugins.catalogs.json_tree import Member, Node, parse_json, read_string
from nmt.plugins.catalogs.plurals import sources_of_forms
from nmt.plugins.catalogs.values import checked, notice_about
from nmt.plugins.documents import (
    SURROGATES_LEFT,
    Part,
    Spliced,
    String,
    StringOfProgram,
    decode_file,
    escape_surrogates,
)
from nmt.text import language_tag
from nmt.translation import Document, Translated

NEW = "needs_review"
"""The state of a text that nobody has reviewed."""
EMPTY = "new"
"""The state of a text that nobody has translated."""
DEEPEST = 4
"""Maximum levels of variations: each level may multiply the forms of the one below it."""
LOCALIZATIONS = "localizations"
UNKNOWN = "strings left untranslated because nmt does not know the structure of their localization"
INDENT = re.compile(r"\{\r?\n([ \t]+)\"")
COLON = re.compile(r"\"([ \t]*:[ \t]*)")


@dataclass
class Unit:
    """A text in a new localization, in the object that has it at `key`."""

    string: String
    place: dict[str, Any] | list[Any]
    key: Any


@dataclass
class Localization:
    """The localization to add to a string of the catalog."""

    member: Member
    content: dict[str, Any]
    units: list[Unit]


class UnknownStructure(Exception):
    """A localization is not as Xcode writes it."""


class StringCatalog(Document):
    """A catalog, to which a localization is added for each string that has none."""

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.file, self.mark, self.encoding = decode_file(content)
        self.language = language_tag(target)
        self.left = Counter[str]()
        self.localizations = list[Localization]()
        self.style = style_of(self.file)
        root = parse_json(self.file)
        strings = root.get("strings")
        declared = root.get("sourceLanguage")
        if not strings or strings.kind != "{" or not declared or declared.kind != '"':
            raise NMTError('not a String Catalog, which has "sourceLanguage" and "strings"')
        self.declared = read_string(self.file, declared)
        check_language(self.declared, source)
        for member in strings.members:
            self.read(member)
        self.lines = list[str]()
        for unit in self.units():
            self.lines += unit.string.lines

    def units(self) -> list[Unit]:
        units = list[Unit]()
        for localization in self.localizations:
            units += localization.units
        return units

    def read(self, member: Member) -> None:
        """Prepare the localization of a string, unless the catalog has one."""
        entry = json.loads(self.file[member.value.begin : member.value.end])
        if not isinstance(entry, dict) or entry.get("shouldTranslate") is False:
            return
        existing = entry.get(LOCALIZATIONS, {})
        if not isinstance(existing, dict):
            self.left[UNKNOWN] += 1
            return
        # Xcode leaves out a localization whose text is the string's name.
        unit = {"stringUnit": {"value": member.name}}
        original = existing.get(self.declared, unit)
        if self.language in existing and not is_empty(existing[self.language]):
            return
        units = list[Unit]()
        try:
            content = Copier(self.language, units).localization(original)
        except UnknownStructure:
            self.left[UNKNOWN] += 1
            return
        if any(unit.string.has_surrogates for unit in units):
            self.left[SURROGATES_LEFT] += 1
        # Programs fall back to the source for texts without words.
        elif any(has_words(unit.string) for unit in units):
            self.localizations.append(Localization(member, content, units))

    def join(self, translations: Sequence[Translated]) -> bytes:
        left = iter(translations)
        parts = list[Part]()
        counts = self.left.copy()
        self.refused = list[Translated]()
        for localization in self.localizations:
            refusals = Counter[str]()
            of_localization = list[Translated]()
            for unit in localization.units:
                lines = list(islice(left, len(unit.string.lines)))
                of_localization += lines
                text = checked(unit.string, lines, refusals, [])
                unit.place[unit.key] = unit.string.text if text is None else text
            # Forms in two languages would be worse than none.
            if refusals.total():
                counts[next(iter(refusals))] += 1
                self.refused += of_localization
            elif self.language:
                parts.append(self.addition(localization))
        strings = [unit.string for unit in self.units()]
        self.notice = notice_about(strings, counts, self.language)
        if self.localizations and not self.language:
            self.notice = "nothing added: the language of the translation is unknown (pass target=)"
        text = Spliced(self.file, parts).render(())
        return self.mark + text.encode(self.encoding)

    def addition(self, localization: Localization) -> Part:
        """The part that inserts a localization, in the order of languages."""
        entry = localization.member.value
        added = f"{json.dumps(self.language)}{self.style.colon}"
        existing = entry.get(LOCALIZATIONS)
        if existing and existing.members:
            added += self.style.write(localization.content, 4)
            for member in existing.members:
                if member.name == self.language:  # which is empty
                    return Part(member.begin, member.value.end, otherwise=added)
            for member in existing.members:
                if member.name > self.language:
                    separator = f",{self.style.line_break(4)}"
                    return Part(member.begin, member.begin, otherwise=added + separator)
            end = existing.members[-1].value.end
            return Part(end, end, otherwise=f",{self.style.line_break(4)}{added}")
        content = {self.language: localization.content}
        if existing:
            written = self.style.write(content, 3)
            return Part(existing.begin, existing.end, otherwise=written)
        return self.first_localization(entry, content)

    def first_localization(self, entry: Node, content: dict[str, Any]) -> Part:
        """The part that inserts the first localization of a string, in the order of names."""
        added = f'"{LOCALIZATIONS}"{self.style.colon}{self.style.write(content, 3)}'
        for member in entry.members:
            if member.name > LOCALIZATIONS:
                separator = f",{self.style.line_break(3)}"
                return Part(member.begin, member.begin, otherwise=added + separator)
        if entry.members:
            end = entry.members[-1].value.end
            return Part(end, end, otherwise=f",{self.style.line_break(3)}{added}")
        inside = f"{{{self.style.line_break(3)}{added}{self.style.line_break(2)}}}"
        return Part(entry.begin, entry.end, otherwise=inside)


class Copier:
    """Copies the localization of the source for another language, and collects its texts."""

    def __init__(self, language: str, units: list[Unit]) -> None:
        self.language = language
        self.units = units

    def localization(self, original: Any, depth: int = 0) -> dict[str, Any]:
        """A copy of a localization, or of what varies by number or device."""
        if not isinstance(original, dict) or depth > DEEPEST:
            raise UnknownStructure
        copy = dict[str, Any]()
        for name, content in original.items():
            if name == "stringUnit":
                copy[name] = self.unit(content)
            elif name == "stringSet":
                copy[name] = self.string_set(content)
            elif name == "variations":
                copy[name] = self.variations(content, depth)
            elif name == "substitutions":
                copy[name] = self.named(content, depth)
            else:  # argNum, formatSpecifier
                copy[name] = content
        return copy

    def named(self, original: Any, depth: int) -> dict[str, Any]:
        """A copy of localizations by name, such as the devices that they are for."""
        if not isinstance(original, dict):
            raise UnknownStructure
        return {name: self.localization(part, depth + 1) for name, part in original.items()}

    def unit(self, original: Any) -> dict[str, Any]:
        value = original.get("value") if isinstance(original, dict) else None
        if not isinstance(value, str):
            raise UnknownStructure
        unit = {"state": NEW, "value": value}
        self.units.append(Unit(StringOfProgram(value), unit, "value"))
        return unit

    def string_set(self, original: Any) -> dict[str, Any]:
        values = original.get("values") if isinstance(original, dict) else None
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise UnknownStructure
        copy = [*values]
        for index, value in enumerate(values):
            self.units.append(Unit(StringOfProgram(value), copy, index))
        return {"state": NEW, "values": copy}

    def variations(self, original: Any, depth: int) -> dict[str, Any]:
        if not isinstance(original, dict):
            raise UnknownStructure
        copy = dict[str, Any]()
        for kind, forms in original.items():
            if kind == "plural" and isinstance(forms, dict):
                # The form `zero` is for the number 0, in all languages.
                texts = {form: text_of(part) for form, part in forms.items()}
                sources = sources_of_forms(texts, self.language, keeps_zero=True)
                forms = {form: forms[source] for form, source in sources.items()}
                # Xcode sorts its names.
                forms = dict(sorted(forms.items()))
            copy[kind] = self.named(forms, depth)
        return copy


def has_words(string: String) -> bool:
    """Whether a string has letters besides those of its placeholders."""
    for line in string.lines:
        if any(map(str.isalpha, hidden(line, Finder([USUAL]).stretches(line)))):
            return True
    return False


def is_empty(localization: Any) -> bool:
    """Whether all texts of a localization are empty and new, as editors add them."""
    waiting = [localization]
    has_units = False
    while waiting:
        part = waiting.pop()
        if not isinstance(part, dict):
            continue
        if "stringSet" in part:
            return False
        unit = part.get("stringUnit")
        if isinstance(unit, dict):
            has_units = True
            if unit.get("state") != EMPTY or unit.get("value", ""):
                return False
        waiting += [child for name, child in part.items() if name != "stringUnit"]
    return has_units


def text_of(form: Any) -> str:
    """The text of a plural form; empty if it has another structure."""
    unit = form.get("stringUnit") if isinstance(form, dict) else None
    value = unit.get("value") if isinstance(unit, dict) else None
    return value if isinstance(value, str) else ""


@dataclass(frozen=True)
class Style:
    """How a file of JSON is written."""

    indent: str
    """Empty for a file on a single line."""
    colon: str
    escapes_slashes: bool
    newline: str

    def line_break(self, level: int) -> str:
        return self.newline + self.indent * level if self.indent else ""

    def write(self, content: dict[str, Any], level: int) -> str:
        """An object that begins at this level of indentation."""
        text = json.dumps(
            content,
            ensure_ascii=False,
            indent=self.indent or None,
            separators=(",", self.colon),
        )
        # Strings contain no line breaks, only their escapes.
        text = escape_surrogates(text).replace("\n", self.line_break(level))
        return text.replace("/", "\\/") if self.escapes_slashes else text


def style_of(text: str) -> Style:
    indent = INDENT.search(text)
    colon = COLON.search(text)
    return Style(
        indent=indent[1] if indent else "",
        colon=colon[1] if colon else " : ",
        escapes_slashes="\\/" in text,
        newline="\r\n" if "\r\n" in text else "\n",
    )


def check_language(declared: str, source: str) -> None:
    """Raise NMTError if a catalog is in another language than the model translates from."""
    expected = language_tag(source).partition("-")[0]
    language = language_tag(declared).partition("-")[0]
    if expected and language and expected != language:
        raise NMTError(f"its source language is {declared}, but the model translates {source}")
