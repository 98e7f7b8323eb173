"""Sentences in the strings of programs and in subtitles, where markup is mixed with text."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from html import escape, unescape
from typing import Literal

from nmt.plugins.documents import icu
from nmt.plugins.documents.document import Part, Spliced, Translated
from nmt.plugins.documents.html import (
    COPIED,
    RAW,
    READING,
    READINGS,
    RUBY,
    RUBY_MARKUP,
    UNSEEN,
    copied,
    is_fixed,
    readable_attributes,
    tags_of,
)
from nmt.plugins.documents.markup import Token
from nmt.plugins.documents.neighbors import keep_apart
from nmt.plugins.documents.nested import Paragraph, marked, paragraph_parts
from nmt.plugins.documents.scripts import NAMES as NAMES_OF_SCRIPTS, join_scripts
from nmt.plugins.protection.finder import USUAL, Finder
from nmt.plugins.protection.items import Items
from nmt.text import AMBIGUOUS, BLOCKS, SEPARATORS

ESCAPED = "\ue000"  # stands for the backslash of C escapes in catalogs
MASK = "\ue001"  # stands for arguments while markup is found
# HTML elements may have any attributes. Attributes of other names need a value, because
# "a <b and c> d" is text.
HTML = "|".join(sorted(SEPARATORS | BLOCKS, key=len, reverse=True))
ATTRIBUTES = (
    r"""(?>(?:=\s{0,9}(?:"[^"]{0,2000}+"|'[^']{0,2000}+')"""
    r"""|[^<>"'=]++|=|"[^"<]{0,2000}+"|'[^'<]{0,2000}+'|["'])*)"""
)
TAG = (
    rf"</?(?P<html>(?i:{HTML}))(?:\s{ATTRIBUTES}|/)?>"
    r"|</?(?P<name>(?!PRI[diouxX])[a-zA-Z][\w:-]*)"
    rf"(?:\s+[\w:-]+\s*(?==){ATTRIBUTES}|(?:\s+[\w:-]+){{1,9}}\s*(?==\s*[\"']){ATTRIBUTES}|\s*/)?>"
)
# A letter after \n may belong to a command, as in \nu, unless the escape directly follows a word.
LITERAL = r"\\(?:r\\n|[nNr])(?:(?![a-z])|(?<=[^\s\\$({]\\[nNr])|(?<=[^\s\\$({]\\r\\n))"
# Tags that a program writes out later.
LATER = rf"&lt;/?(?i:{HTML})(?:\s[^<>&]{{0,200}})?/?&gt;|\[br ?/?\]"
TAB = r"(?P<tab>\t+|\\t(?![a-z])|(?<=[^\s\\$({])\\t)"
# The mark of a mnemonic, which a program shows as an underline: &Open, Save _as; but not &nbsp;
# or _x_.
MNEMONIC = r"(?:\A|(?<=[\s>]))(?:&(?!\w{1,30};)|_(?!\w{0,60}_))(?=[^\W\d_])"
PATH = r"(?<![\w/.])[A-Za-z]:\\[^\s\"<>|*?]{1,400}+|\\\\\w[\w.-]*\\[^\s\"<>|*?]{1,400}+"
FIRST_CODE = "\ue100"
# Private characters: icons, or what stands for codes in XLIFF.
CODE = re.compile(f"[{FIRST_CODE}-\uf8ff]")
ESCAPE = rf"{ESCAPED}(?:(?:x[\da-fA-F]+|[0-7]{{1,3}})(?:\[[\d;]*[a-zA-Z])?|.)"
# Marks of a dialog or list that need no blank after them. Repeated, they are a pause.
UNSPACED = "".join(rf"|{mark}(?![{mark}\d])" for mark in "\uff0d\u2010\u2014\u2015・")
TAGS = r"(?:<[a-zA-Z][^<>]{0,99}>|\{\\[^{}]{0,99}\})*"
BEGINS_PARAGRAPH = rf"[ \t\r\n]|{TAGS}(?:[-*•\u2013♪♫♬]{UNSPACED})"
LINE = rf"(?P<line>\r\n?|\n)(?P<paragraph>(?={BEGINS_PARAGRAPH}|\d+[.)]))?"
DASH = rf"(?:\A|(?<=[\n\r]))[ \t]*(?:[-*•\u2013]\s+|(?:{UNSPACED[1:]})[ \t\u3000]*)"
COMMENT = r"<!--(?:[^<>-]|-(?!->)){0,2000}-->"
STRING_MARKUP = re.compile(
    rf"(?P<path>{PATH})|{LINE}|{DASH}|{TAB}|(?P<literal>{LITERAL}|{LATER})|{TAG}|{COMMENT}"
    rf"|\{{\\[^{{}}]*\}}|{ESCAPE}|{CODE.pattern}|{MNEMONIC}"
)
# Lines with keys of YAML between two lines of dashes.
END_OF_LINE = r"[ \t]*(?:\r?\n|\Z)"
YAML = r"(?:[\w\"'][\w \"'.-]{0,60}:(?=\s)|[ \t]|-[ \t]|#)[^\r\n]*|[ \t]*"
FRONT_MATTER = re.compile(
    rf"\s*---[ \t]*\r?\n(?=[\w\"#])(?>(?:(?!(?:---|\.\.\.){END_OF_LINE})(?:{YAML})\r?\n)+)"
    rf"(?:---|\.\.\.){END_OF_LINE}"
)
FRONT_MATTER_LEFT = "strings whose front matter is left untranslated"
EMPTY = frozenset(["area", "br", "embed", "img", "input"])  # separators without content
CLOSED = re.compile(r"</([a-zA-Z]\w*)")
MODIFIER = r"(?:Ctrl|Control|Strg|Shift|Alt|AltGr|Option|Opt|Cmd|Command|Meta|Super|Win|[⌘⇧⌥⌃])"
KEY = r"(?:F\d{1,2}|Del|Delete|Ins|Insert|Esc|Escape|PgUp|PgDn|Page ?Up|Page ?Down|Backspace)"
NAMED_KEY = r"(?:Home|End|Space|Tab|Enter|Return|Up|Down|Left|Right)"
KEYS = rf"(?:{MODIFIER}\s?[+-]\s?|[⌘⇧⌥⌃])+\S[\w ]{{0,12}}|{KEY}"
SHORTCUT = re.compile(rf"\s*(?:{KEYS})\s*")
ANY_SHORTCUT = re.compile(rf"\s*(?:{KEYS}|{NAMED_KEY})\s*")
ACCELERATOR = re.compile(r"[&_][^\W_]")


@dataclass(frozen=True)
class Kind:
    """How a kind of string is written."""

    markup: re.Pattern[str] = STRING_MARKUP
    read: Callable[[str], str] = str
    """Turns text into what a reader sees."""
    write: Callable[[str], str] = str
    """The opposite."""
    is_html: bool = True
    """Whether elements and attributes have the meaning that they have in HTML."""
    drops_lines: bool = False
    """Whether a line break is left out where it would create an empty line."""


STRING = Kind()
MESSAGE = Kind(read=icu.read_text, write=icu.write_text)
PLURAL_BRANCH = Kind(read=icu.read_text, write=icu.write_plural)


@dataclass(frozen=True)
class Inset:
    """A span of a string that is not text, such as an argument of a message."""

    begin: int
    end: int
    token: Token
    note: Spliced | None = None  # the sentences inside
    is_element: bool = False


def masked(text: str, arguments: Sequence[Inset]) -> str:
    """The text with other characters in place of its arguments, which may be inside of a tag."""
    pieces = list[str]()
    at = 0
    for argument in arguments:
        size = argument.end - argument.begin
        pieces += [text[at : argument.begin], size * MASK]
        at = argument.end
    return "".join(pieces) + text[at:]


class Reader:
    """Splits a string, which starts at offset `begin` of the file, into the parts to translate."""

    def __init__(
        self,
        text: str,
        begin: int = 0,
        kind: Kind = STRING,
        arguments: Sequence[Inset] = (),
    ) -> None:
        """`arguments` are in order."""
        self.text, self.begin, self.kind = text, begin, kind
        self.scanned = masked(text, arguments) if arguments else text
        self.closed = {name.lower() for name in CLOSED.findall(text)}
        has_tags = "<" in text if kind.is_html else bool(READING.search(text))
        self.tags = tags_of(self.scanned) if has_tags else []
        self.tag_at = {tag.begin: tag for tag in self.tags if kind.is_html}
        self.parts = list[Part]()
        self.first = 0  # where the next sentence begins
        self.tokens, self.notes = list[Token](), list[Spliced]()  # of that sentence
        self.is_after_tab = False
        fixed = self.fixed_elements(arguments)
        self.inside = self.inside_markup(arguments)
        at = 0
        for inset in sorted([*fixed, *arguments], key=lambda inset: inset.begin):
            if inset.begin < at or inset.begin in self.inside:
                continue
            self.read(at, inset.begin)
            if inset.is_element:
                self.add_fixed(inset)
            else:
                self.add_token(inset.token, inset.note)
            at = inset.end
        self.read(at, len(text))
        self.end_sentence(len(text), len(text))

    def fixed_elements(self, arguments: Sequence[Inset]) -> list[Inset]:
        """The elements that stay unchanged, such as <style> and <code>, as in HTML."""
        result = list[Inset]()
        at = 0
        for tag in self.tags:
            if tag.begin < at or not tag.partner:
                continue
            end = self.tags[tag.partner].end
            is_copied = tag.name in COPIED and not any(
                argument.note and tag.begin < argument.begin < end for argument in arguments
            )
            is_reading = tag.name in READINGS
            if not (self.kind.is_html or is_reading):
                continue
            if is_copied or tag.name in UNSEEN | RAW or is_fixed(tag, self.scanned):
                raw = self.text[tag.begin : end]
                token = Token("point", raw) if tag.name in UNSEEN else copied(tag.name, raw)
                token = replace(token, name=tag.name)
                result.append(Inset(tag.begin, end, token, is_element=True))
                at = end
        return result

    def inside_markup(self, arguments: Sequence[Inset]) -> dict[int, Inset]:
        """The arguments inside of tags and comments, by their offsets."""
        if not (arguments and "<" in self.text):
            return {}
        inside = set[int]()
        for markup in self.kind.markup.finditer(self.scanned):
            if MASK in markup[0] and markup[0].startswith("<"):
                inside.update(range(*markup.span()))
        return {argument.begin: argument for argument in arguments if argument.begin in inside}

    def add_fixed(self, element: Inset) -> None:
        """Add an element that stays unchanged, or end the sentence at it."""
        name = element.token.name
        if name in BLOCKS | RAW:
            self.end_sentence(element.begin, element.end)
        else:
            self.tokens.append(element.token)

    def add_token(self, token: Token, note: Spliced | None) -> None:
        self.tokens.append(token)
        if note:
            self.notes.append(note)

    def read(self, at: int, end: int) -> None:
        """Read a span without arguments, apart from those inside of tags."""
        for markup in self.kind.markup.finditer(self.scanned, at, end):
            groups = markup.groupdict()
            if not groups.get("path"):
                self.add_text(at, markup.start())
                self.add(markup, groups)
                at = markup.end()
        self.add_text(at, end)

    def add_text(self, begin: int, end: int) -> None:
        if begin < end:
            raw = self.text[begin:end]
            self.tokens.append(Token("text", raw, self.kind.read(raw)))

    def add(self, markup: re.Match[str], groups: dict[str, str | None]) -> None:
        """Add markup to the sentence, or end the sentence."""
        raw = self.text[slice(*markup.span())]
        name = (groups.get("html") or groups.get("name") or "").lower()
        note = self.attributes_of(markup) if name else None
        closes = raw.startswith("</")
        is_single = not name or raw.endswith("/>") or name in EMPTY
        if groups.get("tab") or groups.get("speaker") or groups.get("paragraph") is not None:
            self.end_sentence(*markup.span(), is_tab=bool(groups.get("tab")))
            return
        if self.ends_sentence(name):
            self.end_sentence(*markup.span())
            self.parts += note.parts if note else []
            return
        written = marked(note) if note else raw
        if groups.get("line"):
            token = Token("point", raw, breaks=True, optional=self.kind.drops_lines)
            self.add_token(token, None)
        elif is_single:
            is_space = bool(groups.get("literal") or groups.get("hard_space"))
            breaks = is_space or name in SEPARATORS
            is_dropped = name in RUBY
            self.add_token(Token("point", written, breaks=breaks, is_dropped=is_dropped), note)
        else:
            # A token without `raw` is for the model only.
            space = [Token("text", "", " ")] if name in SEPARATORS else []
            is_script = name in NAMES_OF_SCRIPTS and not closes
            kind: Literal["open", "close"] = "close" if closes else "open"
            self.tokens += space
            is_dropped = name in RUBY
            token = Token(kind, written, name=name, is_script=is_script, is_dropped=is_dropped)
            self.add_token(token, note)
            self.tokens += space

    def attributes_of(self, markup: re.Match[str]) -> Spliced | None:
        """The attributes of a tag that people read, such as alternative texts."""
        tag = self.tag_at.get(markup.start())
        if not tag or tag.end != markup.end() or is_fixed(tag, self.scanned):
            return None
        names = readable_attributes(tag, self.scanned)
        spans = sorted(tag.attributes[name] for name in names)
        parts = [part for span in spans for part in self.attribute_parts(*span)]
        raw = self.text[tag.begin : tag.end]
        return Spliced(raw, parts, self.begin + tag.begin) if parts else None

    def attribute_parts(self, begin: int, end: int) -> list[Part]:
        """The parts of an attribute, whose value is at this span, perhaps in quotes."""
        quote = self.text[begin]
        is_quoted = quote in "\"'"
        if is_quoted:
            begin, end = begin + 1, end - 1

        def write(text: str) -> str:
            ending, reference = ("'", "&#39;") if quote == "'" else ('"', "&quot;")
            text = escape(text, quote=False).replace(ending, reference)
            return self.kind.write(text if is_quoted else f'"{text}"')

        tokens, notes = list[Token](), list[Spliced]()
        at = begin
        for argument in self.inside.values():
            if begin <= argument.begin < end:
                notes += [argument.note] if argument.note else []
                tokens += [self.attribute_text(at, argument.begin), argument.token]
                at = argument.end
        tokens.append(self.attribute_text(at, end))
        return paragraph_parts(Paragraph(self.begin + begin, tokens, notes, write), notes)

    def attribute_text(self, begin: int, end: int) -> Token:
        raw = self.text[begin:end]
        return Token("text", raw, unescape(self.kind.read(raw)))

    def ends_sentence(self, name: str) -> bool:
        """True for an element such as a paragraph.

        A name that is a word may be a placeholder if it is never closed.
        """
        return name in BLOCKS and (name not in AMBIGUOUS or name in self.closed)

    def end_sentence(self, end: int, following: int, is_tab: bool = False) -> None:
        """End a sentence at one offset, and begin the next one at another."""
        if not (self.is_after_tab and self.is_shortcut(self.first, end)):
            tokens = keep_apart(join_scripts(self.tokens))
            sentence = Paragraph(self.begin + self.first, tokens, self.notes, self.kind.write)
            self.parts += paragraph_parts(sentence, self.notes)
        self.first, self.is_after_tab = following, is_tab
        self.tokens, self.notes = [], []

    def is_shortcut(self, begin: int, end: int) -> bool:
        """True for the keys after the tab in "&Open\\tCtrl+O".

        Without an accelerator, a word after a tab may be another column of a table.
        """
        has_accelerator = ACCELERATOR.search(self.text, max(0, begin - 200), begin)
        pattern = ANY_SHORTCUT if has_accelerator else SHORTCUT
        return pattern.fullmatch(self.text, begin, end) is not None


def message_parts(text: str, message: icu.Message, kind: Kind) -> list[Part]:
    """The parts of an ICU message, which may be a branch of another."""
    arguments = list[Inset]()
    for argument in message.arguments:
        raw = text[argument.begin : argument.end]
        inner = PLURAL_BRANCH if argument.kind in icu.PLURAL else kind
        parts = list[Part]()
        for branch in argument.branches.values():
            parts += message_parts(text, branch, inner)
        note = Spliced(raw, parts, argument.begin) if parts else None
        token = Token("copy", marked(note) if note else raw, argument.shown)
        begin, end = argument.begin - message.begin, argument.end - message.begin
        arguments.append(Inset(begin, end, token, note))
    return Reader(text[message.begin : message.end], message.begin, kind, arguments).parts


class String(Spliced):
    """A string of a program; `is_readable` is False for a message that breaks the rules of ICU."""

    def __init__(self, text: str) -> None:
        self.message: icu.Message | None = None
        self.is_readable = True
        self.has_front_matter = False
        parts = list[Part]()
        if icu.is_message(text):
            try:
                self.message = icu.parse_message(text)
                parts = message_parts(text, self.message, MESSAGE)
            except icu.UnknownSyntax:
                self.is_readable = False
        else:
            front = FRONT_MATTER.match(text)
            begin = front.end() if front else 0
            self.has_front_matter = front is not None
            parts = Reader(text[begin:], begin).parts
        super().__init__(text, parts)

    def keeps(self, translations: Sequence[Translated], text: str) -> bool:
        """True if `text`, made from these translations, has the placeholders of the string."""
        if self.message is None:
            without_readings = RUBY_MARKUP.sub("", self.text)
            before, after = without_attributes(without_readings), without_attributes(text)
            if not has_items(before, after):
                return False
            if before == without_readings:
                return True
        elif not self.keeps_arguments(text):
            return False
        pairs = zip(self.lines, translations, strict=True)
        return all(has_items(line, translation.text) for line, translation in pairs)

    def keeps_arguments(self, text: str) -> bool:
        """True if a text has the arguments of the message."""
        if self.message is None:
            return True
        try:
            message = icu.parse_message(text)
        except icu.UnknownSyntax:
            return False
        return icu.skeleton(message) == icu.skeleton(self.message)


def without_attributes(text: str) -> str:
    """The text without the values of attributes that people read."""
    spans = [
        tag.attributes[name]
        for tag in (tags_of(text) if "<" in text else ())
        if not is_fixed(tag, text)
        for name in readable_attributes(tag, text)
    ]
    return Spliced(text, [Part(begin, end, otherwise='""') for begin, end in spans]).render(())


def has_items(source: str, translation: str) -> bool:
    """True if a translation has the placeholders and other protected items of its source."""
    items = Finder([USUAL]).stretches(source)
    return not items or Items(source, items).arrive(translation)
