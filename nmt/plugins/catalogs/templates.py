"""Strings with placeholders in the notation of a format."""

import re
from collections.abc import Sequence

from nmt.items import COPY
from nmt.plugins.documents import (
    Inset,
    Kind,
    MarkupToken,
    Part,
    Reader,
    String,
    has_items,
)
from nmt.text import BLOCKS, INLINE, SEPARATORS
from nmt.translation import Translated

STRING = Kind()
ANGLES = re.compile(r"<([A-Za-z][\w-]{0,60})>")
CLOSED = re.compile(r"</([A-Za-z][\w-]{0,60})")
ELEMENTS = INLINE | BLOCKS | SEPARATORS
"""Elements of HTML. Another name in angle brackets is a placeholder if it is never closed."""


class Template(String):
    """A string whose placeholders are those of a pattern; they are copied."""

    def __init__(self, text: str, placeholder: re.Pattern[str], kind: Kind = STRING) -> None:
        self.placeholder = placeholder
        self.kind = kind
        super().__init__(text)

    def find_parts(self, text: str) -> list[Part]:
        matches = [*self.placeholder.finditer(text), *placeholders_in_angles(text)]
        insets = list[Inset]()
        for match in sorted(matches, key=lambda match: match.start()):
            token = MarkupToken("copy", match[0], match[0])
            insets.append(Inset(*match.span(), token))
        if not insets and self.kind is STRING:
            return super().find_parts(text)
        return Reader(text, 0, self.kind, insets).parts

    def keeps(self, translations: Sequence[Translated], text: str) -> bool:
        if self.message:
            return super().keeps(translations, text)
        # A translation may have text that looks like a placeholder of the format.
        if self.placeholders(self.text) != self.placeholders(text):
            return False
        for line, translation in zip(self.lines, translations, strict=True):
            # The copies are in the text, even if the model lost them.
            if not has_items(COPY.sub(" ", line), COPY.sub(" ", translation.text)):
                return False
        return True

    def placeholders(self, text: str) -> list[str]:
        # Sorted, which is faster than counting: most texts have none.
        return sorted(placeholder[0] for placeholder in self.placeholder.finditer(text))


def placeholders_in_angles(text: str) -> list[re.Match[str]]:
    """Placeholders such as <file>, which are no elements of HTML or XML."""
    closed = {*CLOSED.findall(text)}
    matches = ANGLES.finditer(text)
    return [match for match in matches if not {match[1].lower(), match[1]} & (ELEMENTS | closed)]


def line_number(text: str, offset: int) -> int:
    """The number of the line, counted from 1, at an offset of a text."""
    return text.count("\n", 0, offset) + 1
