"""Sentences in the strings of programs and in subtitles, where markup is mixed with text."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nmt.plugins.documents import icu
from nmt.plugins.documents.document import Part, Spliced, Translated
from nmt.plugins.documents.html import COPIED, copied
from nmt.plugins.documents.markup import Token, find_pairs
from nmt.plugins.documents.neighbors import keep_apart
from nmt.plugins.documents.nested import MARK, Paragraph, marked, paragraph_parts
from nmt.plugins.documents.scripts import NAMES as NAMES_OF_SCRIPTS, join_scripts
from nmt.plugins.protection.items import USUAL, Finder, Items
from nmt.text import AMBIGUOUS, BLOCKS, SEPARATORS

ESCAPED = "\ue000"  # stands for the backslash of C escapes in catalogs
# HTML elements may have any attributes. Attributes of other names need a value, because
# "a <b and c> d" is text.
HTML = "|".join(sorted(SEPARATORS | BLOCKS, key=len, reverse=True))
ATTRIBUTES = r"""(?>(?:[^<>"']++|"[^"<]{0,2000}+"|'[^'<]{0,2000}+'|["'])*)"""
TAG = (
    rf"</?(?P<html>(?i:{HTML}))(?:\s{ATTRIBUTES}|/)?>"
    r"|</?(?P<name>(?!PRI[diouxX])[a-zA-Z][\w:-]*)(?:\s+[\w:-]+\s*=[^<>]*|\s*/)?>"
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
LINE = r"(?P<line>\r\n?|\n)(?P<paragraph>(?=[ \t\r\n]|[-*•\u2013]|\d+[.)]))?"
DASH = r"(?:\A|(?<=[\n\r]))[ \t]*[-*•\u2013]\s+"
COMMENT = r"<!--(?:[^<>-]|-(?!->)){0,2000}-->"
STRING_MARKUP = re.compile(
    rf"(?P<path>{PATH})|{LINE}|{DASH}|{TAB}|(?P<literal>{LITERAL}|{LATER})|{TAG}|{COMMENT}"
    rf"|\{{\\[^{{}}]*\}}|{ESCAPE}|{CODE.pattern}|{MNEMONIC}"
)
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
    drops_lines: bool = False
    """Whether a line break is left out where it would create an empty line."""


STRING = Kind()
MESSAGE = Kind(read=icu.read_text, write=icu.write_text)
PLURAL_BRANCH = Kind(read=icu.read_text, write=icu.write_plural)


def join_copied(tokens: Sequence[Token]) -> list[Token]:
    """The tokens with one for each element whose content is copied, such as <code> and <kbd>."""
    if not any(token.name in COPIED for token in tokens):
        return [*tokens]
    partners = find_pairs(tokens)
    result = list[Token]()
    at = 0
    while at < len(tokens):
        token = tokens[at]
        last = partners.get(at, at)
        inside = tokens[at + 1 : last]
        has_notes = any(MARK in part.raw for part in inside)
        if token.kind == "open" and token.name in COPIED and last > at and not has_notes:
            raw = "".join(part.raw for part in tokens[at : last + 1])
            result.append(copied(token.name, raw))
            at = last
        else:
            result.append(token)
        at += 1
    return result


class Reader:
    """Splits a string, which starts at offset `begin` of the file, into the parts to translate."""

    def __init__(
        self,
        text: str,
        begin: int = 0,
        kind: Kind = STRING,
        arguments: Sequence[tuple[int, int, Token, Spliced | None]] = (),
    ) -> None:
        """`arguments` are spans that are not text, in order.

        Each has its two offsets, a token, and the sentences inside it, if any.
        """
        self.text, self.begin, self.kind = text, begin, kind
        self.closed = {name.lower() for name in CLOSED.findall(text)}
        self.parts = list[Part]()
        self.first = 0  # where the next sentence begins
        self.tokens, self.notes = list[Token](), list[Spliced]()  # of that sentence
        self.is_after_tab = False
        at = 0
        for start, end, token, note in arguments:
            self.read(at, start)
            self.tokens.append(token)
            self.notes += [note] if note else []
            at = end
        self.read(at, len(text))
        self.end_sentence(len(text), len(text))

    def read(self, at: int, end: int) -> None:
        """Read a span without arguments."""
        for markup in self.kind.markup.finditer(self.text, at, end):
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
        raw = markup[0]
        name = (groups.get("html") or groups.get("name") or "").lower()
        is_single = not name or raw.endswith("/>") or name in EMPTY
        if groups.get("tab") or groups.get("speaker") or groups.get("paragraph") is not None:
            self.end_sentence(*markup.span(), is_tab=bool(groups.get("tab")))
        elif self.ends_sentence(name):
            self.end_sentence(*markup.span())
        elif groups.get("line"):
            self.tokens.append(Token("point", raw, breaks=True, optional=self.kind.drops_lines))
        elif is_single:
            breaks = bool(groups.get("literal")) or name in SEPARATORS
            self.tokens.append(Token("point", raw, breaks=breaks))
        else:
            # A token without `raw` is for the model only.
            space = [Token("text", "", " ")] if name in SEPARATORS else []
            closes = raw[1] == "/"
            is_script = name in NAMES_OF_SCRIPTS and not closes
            tag = Token("close" if closes else "open", raw, name=name, is_script=is_script)
            self.tokens += [*space, tag, *space]

    def ends_sentence(self, name: str) -> bool:
        """True for an element such as a paragraph.

        A name that is a word may be a placeholder if it is never closed.
        """
        return name in BLOCKS and (name not in AMBIGUOUS or name in self.closed)

    def end_sentence(self, end: int, following: int, is_tab: bool = False) -> None:
        """End a sentence at one offset, and begin the next one at another."""
        if not (self.is_after_tab and self.is_shortcut(self.first, end)):
            tokens = keep_apart(join_scripts(join_copied(self.tokens)))
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
    arguments = list[tuple[int, int, Token, Spliced | None]]()
    for argument in message.arguments:
        raw = text[argument.begin : argument.end]
        inner = PLURAL_BRANCH if argument.kind in icu.PLURAL else kind
        parts = list[Part]()
        for branch in argument.branches.values():
            parts += message_parts(text, branch, inner)
        note = Spliced(raw, parts, argument.begin) if parts else None
        token = Token("copy", marked(note) if note else raw, argument.shown)
        begin, end = argument.begin - message.begin, argument.end - message.begin
        arguments.append((begin, end, token, note))
    return Reader(text[message.begin : message.end], message.begin, kind, arguments).parts


class String(Spliced):
    """A string of a program; `is_readable` is False for a message that breaks the rules of ICU."""

    def __init__(self, text: str) -> None:
        self.message: icu.Message | None = None
        self.is_readable = True
        parts = list[Part]()
        if icu.is_message(text):
            try:
                self.message = icu.parse_message(text)
                parts = message_parts(text, self.message, MESSAGE)
            except icu.UnknownSyntax:
                self.is_readable = False
        else:
            parts = Reader(text).parts
        super().__init__(text, parts)

    def keeps(self, translations: Sequence[Translated], text: str) -> bool:
        """True if `text`, made from these translations, has the placeholders of the string."""
        if self.message is None:
            return has_items(self.text, text)
        try:
            message = icu.parse_message(text)
        except icu.UnknownSyntax:
            return False
        if icu.skeleton(message) != icu.skeleton(self.message):
            return False
        pairs = zip(self.lines, translations, strict=True)
        return all(has_items(line, translation.text) for line, translation in pairs)


def has_items(source: str, translation: str) -> bool:
    """True if a translation has the placeholders and other protected items of its source."""
    items = Finder([USUAL]).stretches(source)
    return not items or Items(source, items).arrive(translation)
