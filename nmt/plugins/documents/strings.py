"""A string of a program: its sentences, and the placeholders that its translation must keep."""

import re
from collections.abc import Sequence

from nmt.items import USUAL, Finder, Items
from nmt.plugins.documents import icu
from nmt.plugins.documents.document import Part, Spliced
from nmt.plugins.documents.nested import marked
from nmt.plugins.documents.nodes import MarkupToken
from nmt.plugins.documents.readings import RUBY_MARKUP
from nmt.plugins.documents.string_reader import Inset, Kind, Reader
from nmt.plugins.documents.surrogates import SURROGATE
from nmt.plugins.documents.tags import is_fixed, readable_attributes, tags_of
from nmt.translation import Translated

END_OF_LINE = r"[ \t]*(?:\r?\n|\Z)"
LINE_OF_YAML = (
    r"(?:[\w\"'][\w \"'.-]{0,60}:(?=\s)"  # a key
    r"|[ \t]|-[ \t]|#"  # what belongs to a key, an item of a list, or a comment
    r")[^\r\n]*"
    r"|[ \t]*"
)
CLOSING_LINE = rf"(?:---|\.\.\.){END_OF_LINE}"
FRONT_MATTER = re.compile(
    r"\s*---[ \t]*\r?\n(?=[\w\"#])"
    rf"(?>(?:(?!{CLOSING_LINE})(?:{LINE_OF_YAML})\r?\n)+)"
    rf"{CLOSING_LINE}"
)
"""Lines of YAML between two lines of dashes, at the beginning of a string."""
FRONT_MATTER_LEFT = "strings whose front matter is left untranslated"
MESSAGE = Kind(read=icu.read_text, write=icu.write_text)
PLURAL_BRANCH = Kind(read=icu.read_text, write=icu.write_plural)


class String(Spliced):
    """A string of a program."""

    def __init__(self, text: str) -> None:
        self.message: icu.Message | None = None
        self.is_readable = True
        """False for a message that breaks the rules of ICU."""
        self.has_front_matter = False
        super().__init__(text, self.find_parts(text))
        self.has_surrogates = any(map(SURROGATE.search, self.lines))
        if self.has_surrogates:
            # The string stays, because no encoding of a translation has these.
            self.parts = []
            self.lines = []

    def find_parts(self, text: str) -> list[Part]:
        if not icu.is_message(text):
            front = FRONT_MATTER.match(text)
            self.has_front_matter = front is not None
            begin = front.end() if front else 0
            return Reader(text[begin:], begin).parts
        try:
            self.message = icu.parse_message(text)
        except icu.UnknownSyntax:
            self.is_readable = False
            return []
        return message_parts(text, self.message, MESSAGE)

    def keeps(self, translations: Sequence[Translated], text: str) -> bool:
        """True if `text`, made from these translations, has the placeholders of the string."""
        if self.message is not None:
            if not has_arguments(text, self.message):
                return False
        else:
            # A translation has no readings, so the items in them are not expected.
            source = RUBY_MARKUP.sub("", self.text)
            # Attributes are translated as lines of their own, which are compared below.
            source_without_attributes = without_attributes(source)
            if not has_items(source_without_attributes, without_attributes(text)):
                return False
            # Without attributes, the whole text has been compared.
            if source_without_attributes == source:
                return True
        for line, translation in zip(self.lines, translations, strict=True):
            if not has_items(line, translation.text):
                return False
        return True


def message_parts(text: str, message: icu.Message, kind: Kind) -> list[Part]:
    """The parts of an ICU message, which may be a branch of another."""
    insets = [inset_of(text, message, argument, kind) for argument in message.arguments]
    return Reader(text[message.begin : message.end], message.begin, kind, insets).parts


def inset_of(text: str, message: icu.Message, argument: icu.Argument, kind: Kind) -> Inset:
    """An argument in its message of this kind; the arguments of its branches have their own."""
    raw = text[argument.begin : argument.end]
    # In the branches of a plural, at any depth, a number sign stands for the number.
    kind_of_branches = PLURAL_BRANCH if argument.kind in icu.PLURAL else kind
    parts = list[Part]()
    for branch in argument.branches.values():
        parts += message_parts(text, branch, kind_of_branches)
    note = Spliced(raw, parts, argument.begin) if parts else None
    token = MarkupToken("copy", marked(note) if note else raw, argument.shown)
    begin = argument.begin - message.begin
    end = argument.end - message.begin
    return Inset(begin, end, token, note)


def has_arguments(text: str, source: icu.Message) -> bool:
    """True if a translation has the arguments of a message."""
    # A translation may break the syntax of the message.
    try:
        message = icu.parse_message(text)
    except icu.UnknownSyntax:
        return False
    return icu.skeleton(message) == icu.skeleton(source)


def without_attributes(text: str) -> str:
    """The text without the values of attributes that people read."""
    if "<" not in text:
        return text
    values = list[Part]()
    for tag in tags_of(text):
        if not is_fixed(tag, text):
            # The attributes of an element that stays are compared as they are.
            for name in readable_attributes(tag, text):
                values.append(Part(*tag.attributes[name], otherwise='""'))
    return Spliced(text, values).render(())


def has_items(source: str, translation: str) -> bool:
    """True if a translation has the placeholders and other protected items of its source."""
    items = Finder([USUAL]).stretches(source)
    return not items or Items(source, items).arrive(translation)
