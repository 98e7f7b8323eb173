"""Splits a string of a program, or a subtitle, into sentences."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape, unescape
from typing import Literal

from nmt.plugins.documents.document import Part, Spliced
from nmt.plugins.documents.neighbors import keep_apart
from nmt.plugins.documents.nested import Paragraph, marked, paragraph_parts
from nmt.plugins.documents.nodes import MarkupToken
from nmt.plugins.documents.readings import READING, READINGS, RUBY
from nmt.plugins.documents.scripts import NAMES as NAMES_OF_SCRIPTS, join_scripts
from nmt.plugins.documents.shortcuts import is_shortcut
from nmt.plugins.documents.string_markup import MASK, STRING_MARKUP
from nmt.plugins.documents.tags import (
    COPIED,
    RAW,
    UNSEEN,
    Tag,
    copied,
    is_fixed,
    readable_attributes,
    tags_of,
)
from nmt.text import AMBIGUOUS, BLOCKS, SEPARATORS

EMPTY = frozenset(["area", "br", "embed", "img", "input"])
"""Elements that separate words and have no content."""
UNCHANGED = UNSEEN | RAW
OUTSIDE = BLOCKS | RAW
"""Elements that never belong to the sentence around them."""
CLOSED = re.compile(r"</([a-zA-Z]\w*)")

Groups = dict[str, str | None]
"""Named group of a kind's `markup` -> matched text. No kind has all groups."""


@dataclass(frozen=True)
class Kind:
    """The notation of a kind of string."""

    markup: re.Pattern[str] = STRING_MARKUP
    read: Callable[[str], str] = str
    """Turns the notation of the string into text as a reader sees it."""
    write: Callable[[str], str] = str
    """The opposite of `read`: turns text that a reader sees into the notation of the string."""
    is_html: bool = True
    """Whether elements and attributes have the meaning that they have in HTML."""
    drops_lines: bool = False
    """Whether a line break is left out where it would create an empty line."""


STRING = Kind()


@dataclass(frozen=True)
class Inset:
    """A span of a string that is not text, such as an argument of a message."""

    begin: int
    end: int
    token: MarkupToken
    note: Spliced | None = None
    """The sentences inside."""
    is_element: bool = False


def masked(text: str, arguments: Sequence[Inset]) -> str:
    """The text with other characters in place of its arguments, which may be inside of a tag."""
    pieces = list[str]()
    at = 0
    for argument in arguments:
        size = argument.end - argument.begin
        pieces.append(text[at : argument.begin])
        # As many characters, so that offsets in both texts are the same.
        pieces.append(size * MASK)
        at = argument.end
    pieces.append(text[at:])
    return "".join(pieces)


class Reader:
    """Splits a string with markup into the parts to translate, such as sentences: `parts`.

    The constructor reads the whole string. `begin` is the offset in the file at which it starts.
    """

    def __init__(
        self,
        text: str,
        begin: int = 0,
        kind: Kind = STRING,
        arguments: Sequence[Inset] = (),
    ) -> None:
        """`arguments` are ordered by their positions in the text, and do not overlap."""
        self.text = text
        self.begin = begin
        self.kind = kind
        self.parts = list[Part]()
        # The sentence that is being read: where it begins, its tokens, and what they contain.
        self.first = 0
        self.tokens = list[MarkupToken]()
        self.notes = list[Spliced]()
        self.is_after_tab = False
        self.begins_line = True
        """Whether only tags precede on the same line."""
        # A string without markup is one sentence. Most strings of a catalog are, and are short, so
        # the search for elements would take most of the time. An element that stays unchanged may
        # have tags that are not `markup`.
        if not arguments and "<" not in text and not kind.markup.search(text):
            self.add_text(0, len(text))
            self.end_sentence(len(text), len(text))
            return
        self.scanned = masked(text, arguments)
        # The names that are closed somewhere, and so are not placeholders.
        self.closed = {name.lower() for name in CLOSED.findall(text)}
        # Tags are searched in the masked text: an argument in a tag could contain quotes or
        # brackets.
        self.tags = self.find_tags()
        self.tag_at = {tag.begin: tag for tag in self.tags if kind.is_html}
        # Arguments that belong to the token of their tag, or to one of its attributes.
        self.arguments_in_tags = self.find_arguments_in_tags(arguments)
        self.read_all(arguments)

    def find_tags(self) -> list[Tag]:
        """The tags of HTML; in other markup, only readings are known as elements of HTML."""
        # Other markup, such as that of WebVTT, rarely has readings.
        if not self.kind.is_html and not READING.search(self.text):
            return []
        return tags_of(self.scanned) if "<" in self.scanned else []

    def find_arguments_in_tags(self, arguments: Sequence[Inset]) -> dict[int, Inset]:
        """The arguments inside of tags and comments, by their offsets."""
        if not arguments or "<" not in self.text:
            return {}
        inside = set[int]()  # all offsets inside of markup
        for markup in self.kind.markup.finditer(self.scanned):
            if MASK in markup[0] and markup[0].startswith("<"):
                inside.update(range(*markup.span()))
        return {argument.begin: argument for argument in arguments if argument.begin in inside}

    def read_all(self, arguments: Sequence[Inset]) -> None:
        insets = [*self.fixed_elements(arguments), *arguments]
        # The sort is stable, so an element comes before an argument at its beginning.
        insets.sort(key=lambda inset: inset.begin)
        at = 0
        for inset in insets:
            # The token of a tag, or of an element, contains the arguments inside of it.
            if inset.begin < at or inset.begin in self.arguments_in_tags:
                continue
            self.read(at, inset.begin)
            # A fixed block, such as <pre>, has no place in a sentence.
            if inset.is_element and inset.token.name in OUTSIDE:
                self.end_sentence(inset.begin, inset.end)
            else:
                self.add_token(inset.token, inset.note)
            at = inset.end
        self.read(at, len(self.text))
        self.end_sentence(len(self.text), len(self.text))

    def fixed_elements(self, arguments: Sequence[Inset]) -> list[Inset]:
        """The elements that stay unchanged, such as <style> and <code>, as in HTML."""
        elements = list[Inset]()
        at = 0
        # An outer element comes first, and all inside it stays with it.
        for tag in self.tags:
            if tag.begin < at or not tag.partner:
                continue  # inside of another fixed element, or never closed
            end = self.tags[tag.partner].end
            if not self.is_unchanged(tag, end, arguments):
                continue
            raw = self.text[tag.begin : end]
            token = MarkupToken("point", raw) if tag.name in UNSEEN else copied(tag.name, raw)
            token = replace(token, name=tag.name)
            elements.append(Inset(tag.begin, end, token, is_element=True))
            at = end
        return elements

    def is_unchanged(self, tag: Tag, end: int, arguments: Sequence[Inset]) -> bool:
        """Whether an element, from an opening tag to the offset `end`, stays as it is."""
        # In WebVTT, names of elements have other meanings, except those of readings.
        if not self.kind.is_html and tag.name not in READINGS:
            return False
        if tag.name in UNCHANGED or is_fixed(tag, self.scanned):
            return True
        if tag.name not in COPIED:
            return False
        for argument in arguments:
            if argument.note and tag.begin < argument.begin < end:
                return False  # the sentences of the argument are translated
        return True

    def read(self, at: int, end: int) -> None:
        """Read a span without arguments, apart from those inside of tags."""
        for markup in self.kind.markup.finditer(self.scanned, at, end):
            groups = markup.groupdict()
            # A path is text. It is matched only because its backslashes look like escapes.
            if groups.get("path"):
                continue
            # So is a dash behind words, such as a dash that only a tag separates from the words.
            self.add_text(at, markup.start())
            at = markup.start()
            if groups.get("mark") and not self.begins_line:
                continue
            self.add_markup(markup, groups)
            at = markup.end()
        self.add_text(at, end)

    def add_text(self, begin: int, end: int) -> None:
        if begin < end:
            raw = self.text[begin:end]
            self.tokens.append(MarkupToken("text", raw, self.kind.read(raw)))
            if not raw.isspace():
                self.begins_line = False

    def add_token(self, token: MarkupToken, note: Spliced | None) -> None:
        self.tokens.append(token)
        if token.kind == "copy":
            self.begins_line = False
        if note:
            self.notes.append(note)

    def add_markup(self, markup: re.Match[str], groups: Groups) -> None:
        """Add markup to the sentence, or end the sentence."""
        begin, end = markup.span()
        name = name_of(groups)
        if groups.get("tab"):
            self.end_sentence(begin, end, is_tab=True)
        # Another person speaks, or the next paragraph or item of a list begins.
        elif groups.get("speaker") or groups.get("paragraph") is not None:
            self.end_sentence(begin, end)
        elif groups.get("line"):
            raw = self.text[begin:end]
            is_optional = self.kind.drops_lines
            self.tokens.append(MarkupToken("point", raw, breaks=True, optional=is_optional))
            self.begins_line = True
        # Comments, escapes, mnemonics and the like are written as they are.
        elif not name:
            raw = self.text[begin:end]
            is_space = bool(groups.get("literal") or groups.get("hard_space"))
            self.tokens.append(MarkupToken("point", raw, breaks=is_space))
        else:
            self.add_tag(begin, end, name)

    def add_tag(self, begin: int, end: int, name: str) -> None:
        """Add the tag at this span to the sentence, or end the sentence."""
        raw = self.text[begin:end]
        # Before the tag is used: attributes are translated even if the tag ends a sentence.
        note = self.attributes_of(begin, end)
        if self.ends_sentence(name):
            self.end_sentence(begin, end)
            if note:
                self.parts += note.parts
            return
        written = marked(note) if note else raw
        separates = name in SEPARATORS
        is_dropped = name in RUBY
        # Without content, it is not an element around words.
        if raw.endswith("/>") or name in EMPTY:
            token = MarkupToken("point", written, breaks=separates, is_dropped=is_dropped)
            self.add_token(token, note)
            return
        closes = raw.startswith("</")
        kind: Literal["open", "close"] = "close" if closes else "open"
        is_script = name in NAMES_OF_SCRIPTS and not closes
        token = MarkupToken(kind, written, name=name, is_script=is_script, is_dropped=is_dropped)
        # A token without `raw` is for the model only.
        space = [MarkupToken("text", "", " ")] if separates else []
        self.tokens += space
        self.add_token(token, note)
        self.tokens += space

    def ends_sentence(self, name: str) -> bool:
        """True for an element such as a paragraph.

        A name that is a word may be a placeholder if it is never closed.
        """
        return name in BLOCKS and (name not in AMBIGUOUS or name in self.closed)

    def attributes_of(self, begin: int, end: int) -> Spliced | None:
        """The attributes that people read, such as alternative texts, of the tag at this span."""
        tag = self.tag_at.get(begin)
        # What the pattern matches may end elsewhere than a tag of HTML does.
        if not tag or tag.end != end or is_fixed(tag, self.scanned):
            return None
        names = readable_attributes(tag, self.scanned)
        parts = list[Part]()
        for span in sorted(tag.attributes[name] for name in names):
            parts += self.attribute_parts(*span)
        return Spliced(self.text[begin:end], parts, self.begin + begin) if parts else None

    def attribute_parts(self, begin: int, end: int) -> list[Part]:
        """The parts of an attribute, whose value is at this span, perhaps in quotes."""
        quote = ""
        if self.text[begin] in "\"'":
            quote = self.text[begin]
            begin += 1
            end -= 1
        tokens = list[MarkupToken]()
        notes = list[Spliced]()
        at = begin
        # Text and arguments alternate, as in a sentence; the arguments are in order.
        for argument in self.arguments_in_tags.values():
            if begin <= argument.begin < end:
                tokens.append(self.attribute_text(at, argument.begin))
                tokens.append(argument.token)
                if argument.note:
                    notes.append(argument.note)
                at = argument.end
        tokens.append(self.attribute_text(at, end))
        write = partial(self.write_attribute, quote=quote)
        sentence = Paragraph(self.begin + begin, tokens, notes, write)
        return paragraph_parts(sentence, notes)

    def attribute_text(self, begin: int, end: int) -> MarkupToken:
        raw = self.text[begin:end]
        return MarkupToken("text", raw, unescape(self.kind.read(raw)))

    def write_attribute(self, text: str, quote: str) -> str:
        """The value of an attribute between these quotes; a value without quotes gets them."""
        # First as HTML, then as the string around it, which may be an ICU message.
        text = escape(text, quote=False)
        if quote == "'":
            return self.kind.write(text.replace("'", "&#39;"))
        text = text.replace('"', "&quot;")
        return self.kind.write(text if quote else f'"{text}"')

    def end_sentence(self, end: int, following: int, is_tab: bool = False) -> None:
        """End a sentence at one offset, and begin the next one at another."""
        # A shortcut after a tab is not translated.
        if not self.is_after_tab or not is_shortcut(self.text, self.first, end):
            tokens = keep_apart(join_scripts(self.tokens))
            sentence = Paragraph(self.begin + self.first, tokens, self.notes, self.kind.write)
            self.parts += paragraph_parts(sentence, self.notes)
        self.first = following
        self.tokens = []
        self.notes = []
        self.begins_line = True
        # What follows may be a shortcut; see `is_shortcut`.
        self.is_after_tab = is_tab


def name_of(groups: Groups) -> str:
    """The name of an element in lower case; empty for other markup."""
    name = groups.get("html") or groups.get("name") or ""
    return name.lower()
