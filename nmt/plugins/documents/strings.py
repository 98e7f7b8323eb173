"""GNU gettext message catalogs (https://www.gnu.org/software/gettext/manual, section PO Files), JSON and subtitles."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence

import polib

from nmt.config import NMTError, require
from nmt.plugins.documents.document import Document, Part, Spliced, Text, Translated, decode_file
from nmt.plugins.documents.markup import Sentence, Token
from nmt.plugins.protection.items import USUAL, Finder, Items, is_counted

ESCAPED = "\ue000"  # stands for the backslash of C escapes, which polib would lose
ESCAPE = re.compile(r"\\(?:(?=[abfvx0-7])|.)", re.DOTALL)
# A line break, a tag, a subtitle command such as {\an8}, a leading dash, or a C escape.
MARKUP = re.compile(
    r"(?P<line>\r?\n)|</?(?P<name>(?!PRI[diouxX])[a-zA-Z][\w:-]*)(?:\s+[\w:-]+\s*=[^<>]*|\s*/)?>|\{\\[^{}]*\}"
    rf"|\A\s*[-*•\u2013]\s+|{ESCAPED}(?:(?:x[\da-fA-F]+|[0-7]{{1,3}})(?:\[[\d;]*[a-zA-Z])?|.)"
)
# A line break before an empty line, list item or indented line.
PARAGRAPH = re.compile(r"\r?\n(?=[ \t\r\n]|[-*•\u2013]|\d+[.)])")
VALUE = re.compile(r'"(?>(?:[^"\\]|\\.)*)"(?>(?P<is_name>\s*+:)|)')
TIMES = r"[ \t]*\d[\d:.,]* +--> "
CUE = re.compile(rf"^{TIMES}.*\n(?P<text>(?>(?:(?!(?:\d+[ \t\r]*\n)?{TIMES})[ \t\r]*+\S.*(?:\n|\Z))*))", re.MULTILINE)
FORMAT = re.compile(r"(?!no-|possible-|impossible-)([a-z][a-z+-]*)-format")
FORMS = re.compile(r"nplurals[ \t]*=[ \t]*([1-9])(?!\d)")
PRINTF = (
    r"%(?:%|\{\w{1,60}+\}|(?>\d{1,3}+\$|\([^()%]{1,60}+\)|<(?!PRI)\w{1,60}+>|)[-+#0' ,I]{0,5}+"
    r"(?>\d{1,9}+|\*(?>\d{1,3}+\$|)|)(?>\.(?>\d{1,9}+|\*(?>\d{1,3}+\$|)|)|)(?:hh|ll|[hlLqjzZt])?"
    r"(?:[A-Za-z@]|<PRI\w{1,20}+>))"
)
# Formats in which a translation may move directives, but not add one of their characters outside of them.
BRACES = r"\{\{|\}\}|\{(?>(?:[^{}]|\{[^{}]{0,60}+\}){0,100})\}"
DIRECTIVE = re.compile(rf"{BRACES}|{PRINTF}|%L?+(?:\d{{1,2}}+|n)")
MOVABLE = frozenset("c objc c++ python python-brace php awk lua javascript java-printf csharp qt qt-plural kde".split())  # noqa: SIM905
# In all other formats, words with these characters must stay unchanged and in the same order.
OTHER = re.compile(r"(?<!\S)\S*?[%~{}<>&$'|@](?:\S+|\s*\S*)")


def same_directives(format: str, source: str, translation: str) -> bool:
    """True if a translation takes the same arguments as the source, as `msgfmt --check` requires."""
    if format not in MOVABLE:
        return OTHER.findall(source) == OTHER.findall(translation)
    literal = ("%%", "{{", "}}", "%m")
    one, other = ([w for w in DIRECTIVE.findall(text) if w not in literal] for text in (source, translation))
    before, after = (DIRECTIVE.sub("", text) for text in (source, translation))
    in_order = list(filter(is_counted, one)) == list(filter(is_counted, other))
    return in_order and Counter(one) == Counter(other) and all(after.count(c) <= before.count(c) for c in "%{}")


def sentences_of(text: str, begin: int = 0) -> Iterator[Sentence]:
    """The sentences in `text`, which starts at offset `begin` of the file."""
    first = 0
    for end in [*(match.end() for match in PARAGRAPH.finditer(text)), len(text)]:
        paragraph, tokens, at = text[first:end], list[Token](), 0
        for markup in MARKUP.finditer(paragraph):
            raw, name, is_end = markup[0], markup["name"], bool(markup["line"])
            tokens.append(Token("text", paragraph[at : markup.start()], paragraph[at : markup.start()]))
            if not name or raw.endswith("/>"):
                tokens.append(Token("point", raw, breaks=is_end, optional=is_end))
            else:
                tokens.append(Token("close" if raw[1] == "/" else "open", raw, name=name.lower()))
            at = markup.end()
        yield Sentence(begin + first, [*tokens, Token("text", paragraph[at:], paragraph[at:])], str)
        first = end


class Subtitles(Text):
    """SubRip subtitles: the text below each line of timestamps, up to an empty line."""

    def parts(self, text: str, target: str) -> list[Part]:
        return [part for cue in CUE.finditer(text) for part in sentences_of(cue["text"], cue.start("text"))]


class Strings(Document):
    """A JSON file; names and strings that would lose a placeholder stay untranslated."""

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.text, self.mark, self.encoding = decode_file(content)
        try:
            json.loads(self.text, parse_int=str, parse_float=str)
        except ValueError as error:
            raise NMTError(f"not valid JSON: {error}") from error
        except RecursionError as error:
            raise NMTError("its arrays and objects are nested too deeply") from error
        self.values = [value for value in VALUE.finditer(self.text) if not value["is_name"]]
        texts = (json.loads(value[0]) for value in self.values)
        self.strings = [Spliced(text, [*sentences_of(text)]) for text in texts]
        self.lines = [line for string in self.strings for line in string.lines]

    def join(self, translations: Sequence[Translated]) -> bytes:
        left, parts, refused = iter(translations), list[Part](), 0
        for value, string in zip(self.values, self.strings, strict=True):
            text, items = string.render(left), Finder([USUAL]).stretches(string.text)
            if items and not Items(string.text, items).arrive(text):
                refused += 1
            elif text != string.text:
                parts.append(Part(*value.span(), otherwise=json.dumps(text, ensure_ascii="\\u" in value[0])))
        if refused:
            self.notice = f"strings left untranslated because the model lost their placeholders: {refused:,}"
        return self.mark + Spliced(self.text, parts).render(()).encode(self.encoding)


class Catalog(Document):
    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.text, self.mark, self.encoding = decode_file(content, convert="convert it with `msgconv -t UTF-8`")
        self.content, catalog = content, self.read()
        charset = catalog.metadata.get("Content-Type", "charset=UTF-8").partition("charset=")[2].lower()
        is_template = charset == "charset" or "INTEGER" in catalog.metadata.get("Plural-Forms", "")
        require(not is_template, f"this is a template: first create a catalog with `msginit -l {target or 'CODE'}`")
        is_usual = charset in ("", "utf-8", "utf8", "us-ascii", "ascii")
        require(is_usual, f"declares the charset {charset}: convert it with `msgconv -t UTF-8`")
        nplurals = FORMS.search(catalog.metadata.get("Plural-Forms", ""))
        self.forms = int(nplurals[1]) if nplurals else 0
        self.lines = [line for _, strings in self.messages(catalog) for string in strings for line in string.lines]

    def read(self) -> polib.POFile:
        text = ESCAPE.sub(lambda escape: escape[0] if escape[0] != "\\" else ESCAPED, self.text)
        try:  # the newline tells polib that this is not a file name; flags need a space before them
            return polib.pofile(re.sub(r"^#,(?=\S)", "#, ", text, flags=re.MULTILINE) + "\n")
        except (OSError, ValueError, IndexError) as error:
            raise NMTError(f"not a message catalog, or it is damaged: {error}") from error

    def messages(self, catalog: polib.POFile) -> Iterator[tuple[polib.POEntry, list[Spliced]]]:
        """The untranslated messages, except plural messages if the catalog has no Plural-Forms."""
        for entry in catalog:
            done = list(entry.msgstr_plural.values()) if entry.msgid_plural else [entry.msgstr]
            if not (entry.obsolete or all(done)) and (self.forms or not entry.msgid_plural):
                strings = [Spliced(text, [*sentences_of(text)]) for text in (entry.msgid, entry.msgid_plural) if text]
                if strings and all(string.lines for string in strings):
                    yield entry, strings

    def join(self, translations: Sequence[Translated]) -> bytes:
        if not translations:
            return self.content
        catalog, left, refused = self.read(), iter(translations), 0
        for entry, strings in self.messages(catalog):
            texts = [string.render(left) for string in strings]
            first, last = (text if fits(entry, text) else "" for text in (texts[0], texts[-1]))
            if not last:
                refused += 1
                continue
            if entry.msgid_plural:  # a language without plurals has one form for all numbers
                forms = last if self.forms == 1 else first or last, last
                count = max(self.forms, len(entry.msgstr_plural))
                entry.msgstr_plural = {n: entry.msgstr_plural.get(n) or forms[min(n, 1)] for n in range(count)}
            else:
                entry.msgstr = last
            # Gettext ignores fuzzy translations until someone has reviewed them.
            entry.flags = entry.flags if "fuzzy" in entry.flags else ["fuzzy", *entry.flags]
        if refused:
            self.notice = f"messages left untranslated because the model lost their format directives: {refused:,}"
        text = str(catalog).replace(ESCAPED, "\\")
        text = text if catalog.metadata else text.partition('msgstr ""\n\n')[2]  # polib adds a header if there was none
        return self.mark + text.replace("\n", "\r\n" if "\r\n" in self.text else "\n").encode(self.encoding)


def fits(entry: polib.POEntry, text: str) -> bool:
    """True if a translation has the line breaks at its ends and the arguments of its message."""
    source = entry.msgid_plural or entry.msgid
    formats = [kind[1] for flag in entry.flags if (kind := FORMAT.fullmatch(flag))]
    ends = [(side.startswith("\n"), side.endswith("\n")) for side in (source, text)]
    return ends[0] == ends[1] and all(same_directives(format, source, text) for format in formats)
