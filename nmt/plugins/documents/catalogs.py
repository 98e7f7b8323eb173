"""GNU gettext message catalogs (https://www.gnu.org/software/gettext/manual, section PO Files)."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice

import polib

from nmt.config import NMTError, require
from nmt.items import is_counted
from nmt.plugins.documents import icu
from nmt.plugins.documents.catalog_lines import CatalogLines, damaged_line
from nmt.plugins.documents.document import Document, Translated, notice_of
from nmt.plugins.documents.encodings import decode_file
from nmt.plugins.documents.headers import LANGUAGE, new_language, plural_header
from nmt.plugins.documents.html import READINGS_LEFT_OUT, lost_readings
from nmt.plugins.documents.strings import ESCAPED, FRONT_MATTER_LEFT, String

# Of the first kind, polib would lose the backslash.
CONVERT = "convert it with `msgconv -t UTF-8`"
WITHOUT_FORMS = "plural messages left untranslated because the header has no valid Plural-Forms"
ESCAPE = re.compile(r"\\(?:(?=[abfvx0-7])|.)", re.DOTALL)
FORMAT = re.compile(r"(?!no-|possible-|impossible-)([a-z][a-z+-]*)-format")
FORMS = re.compile(r"nplurals[ \t]*=[ \t]*([1-9])(?!\d)")
PRINTF = (
    r"%(?:%|\{\w{1,60}+\}|(?>\d{1,3}+\$|\([^()%]{1,60}+\)|<(?!PRI)\w{1,60}+>|)[-+#0' ,I]{0,5}+"
    r"(?>\d{1,9}+|\*(?>\d{1,3}+\$|)|)(?>\.(?>\d{1,9}+|\*(?>\d{1,3}+\$|)|)|)(?:hh|ll|[hlLqjzZt])?"
    r"(?:[A-Za-z@]|<PRI\w{1,20}+>))"
)
# Formats in which a translation may move directives, but not add their characters elsewhere.
BRACES = r"\{\{|\}\}|\{(?>(?:[^{}]|\{[^{}]{0,60}+\}){0,100})\}"
DIRECTIVE = re.compile(rf"{BRACES}|{PRINTF}|%L?+(?:\d{{1,2}}+|n)")
MOVABLE = frozenset(
    """c objc c++ python python-brace php awk lua javascript java-printf csharp qt qt-plural
    kde""".split()  # noqa: SIM905
)
# In all other formats, words with these characters must stay unchanged and in the same order.
OTHER = re.compile(r"(?<!\S)\S*?[%~{}<>&$'|@](?:\S+|\s*\S*)")


def same_directives(format: str, source: str, translation: str) -> bool:
    """True if a translation takes the arguments of the source, as `msgfmt --check` requires."""
    if format not in MOVABLE:
        return OTHER.findall(source) == OTHER.findall(translation)
    one, other = directives(source), directives(translation)
    in_order = list(filter(is_counted, one)) == list(filter(is_counted, other))
    before, after = (DIRECTIVE.sub("", text) for text in (source, translation))
    adds_none = all(after.count(sign) <= before.count(sign) for sign in "%{}")
    return in_order and Counter(one) == Counter(other) and adds_none


def directives(text: str) -> list[str]:
    """The directives of a text that take an argument."""
    return [word for word in DIRECTIVE.findall(text) if word not in ("%%", "{{", "}}", "%m")]


def fits(entry: polib.POEntry, text: str) -> bool:
    """True if a translation has the line breaks at its ends and the arguments of its message."""
    source = entry.msgid_plural or entry.msgid
    formats = [kind[1] for flag in entry.flags if (kind := FORMAT.fullmatch(flag))]
    ends = [(side.startswith("\n"), side.endswith("\n")) for side in (source, text)]
    return ends[0] == ends[1] and all(same_directives(format, source, text) for format in formats)


def is_translated(entry: polib.POEntry) -> bool:
    return all(entry.msgstr_plural.values()) if entry.msgid_plural else bool(entry.msgstr)


class Catalog(Document):
    """A catalog; its messages without a translation are translated, unless they are obsolete."""

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.text, self.mark, self.encoding = decode_file(content, convert=CONVERT)
        self.content, self.target = content, target
        catalog = self.read()
        content_type = catalog.metadata.get("Content-Type", "charset=UTF-8")
        charset = content_type.partition("charset=")[2].lower()
        is_template = charset == "charset" or "INTEGER" in catalog.metadata.get("Plural-Forms", "")
        command = f"msginit -l {target or 'CODE'}"
        require(not is_template, f"this is a template: first create a catalog with `{command}`")
        is_usual = charset in ("", "utf-8", "utf8", "us-ascii", "ascii")
        require(is_usual, f"declares the charset {charset}: {CONVERT}")
        nplurals = FORMS.search(catalog.metadata.get("Plural-Forms", ""))
        self.forms = int(nplurals[1]) if nplurals else 0
        declared = catalog.metadata.get(LANGUAGE)
        self.language: str | None = None  # what the header of the translation declares
        self.relabeled = ""
        if declared is not None:
            self.language, self.relabeled = new_language(declared.strip(), source, target)
        self.left = Counter[str]()  # what stays untranslated, by the reason
        # The index of each entry to translate, its text, and perhaps its plural.
        self.messages = list[tuple[int, list[String]]]()
        for index, entry in enumerate(catalog):
            if not entry.obsolete and not is_translated(entry):
                self.add(index, entry)
        strings = [string for _, row in self.messages for string in row]
        self.lines = [line for string in strings for line in string.lines]
        self.lacking = icu.lacking([string.message for string in strings if string.message], target)

    def read(self) -> polib.POFile:
        text = ESCAPE.sub(lambda escape: escape[0] if escape[0] != "\\" else ESCAPED, self.text)
        try:  # the newline tells polib that this is not a file name; flags need a space before them
            catalog = polib.pofile(re.sub(r"^#,(?=\S)", "#, ", text, flags=re.MULTILINE) + "\n")
        except (OSError, ValueError, IndexError) as error:
            raise NMTError(f"not a message catalog, or it is damaged: {error}") from error
        number = damaged_line(text)
        problem = (
            f"it is damaged: line {number} is a comment within a message, or msgstr is missing"
        )
        require(not number, f"not a message catalog, or {problem}")
        return catalog

    def add(self, index: int, entry: polib.POEntry) -> None:
        """Add a message, or count it if it cannot be translated."""
        strings = [String(text) for text in (entry.msgid, entry.msgid_plural) if text]
        if entry.msgid_plural and not self.forms:
            self.left[WITHOUT_FORMS] += 1
        elif not all(string.is_readable for string in strings):
            self.left["messages left untranslated because nmt cannot parse their ICU syntax"] += 1
        else:
            self.left[FRONT_MATTER_LEFT] += any(string.has_front_matter for string in strings)
            if any(string.lines for string in strings):
                self.messages.append((index, strings))
            elif not any(string.has_front_matter for string in strings):
                self.left["messages without words left untranslated"] += 1

    def join(self, translations: Sequence[Translated]) -> bytes:
        catalog, left = self.read(), iter(translations)
        lines = CatalogLines(self.text, catalog)
        refused = readings = 0
        for index, strings in self.messages:
            entry, texts = catalog[index], list[str]()
            for string in strings:
                translated = list(islice(left, len(string.lines)))
                text = string.render(translated)
                keeps = string.message is None or string.keeps(translated, text)
                texts.append(text if keeps and fits(entry, text) else "")
            if texts[-1]:
                lines.replace(entry, self.fill(entry, texts[0], texts[-1]))
                readings += lost_readings(strings[-1].text, texts[-1])
            else:
                refused += 1
        counts = notice_of(
            ("messages left untranslated because the model lost their format directives", refused),
            *self.left.items(),
            (READINGS_LEFT_OUT, readings),
            self.lacking,
        )
        relabeled = self.relabeled if translations else ""
        self.notice = "; ".join(filter(None, (counts, self.advice(), relabeled)))
        if not translations:
            return self.content
        return self.mark + lines.text(self.language).encode(self.encoding)

    def advice(self) -> str:
        """How to get plural messages translated, if they were left out."""
        if not self.left[WITHOUT_FORMS] or not self.target:
            return ""
        line = plural_header(self.target)
        return f"to translate them, add this line to the header: {line}" if line else ""

    def fill(self, entry: polib.POEntry, first: str, last: str) -> str:
        """The `msgstr` lines with a translation, and that of the plural, in the forms that are empty."""
        filled = polib.POEntry(msgstr=last)
        if entry.msgid_plural:
            # A language without plurals has one form for all numbers.
            forms = [last] if self.forms == 1 else [first or last, last]
            for number in range(max(self.forms, len(entry.msgstr_plural))):
                form = forms[min(number, len(forms) - 1)]
                filled.msgstr_plural[number] = entry.msgstr_plural.get(number) or form
        lines = str(filled).removeprefix('msgid ""\n').removesuffix("\n")
        return lines.replace(ESCAPED, "\\")
