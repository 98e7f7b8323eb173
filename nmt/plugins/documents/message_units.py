"""Units of XLIFF that contain an ICU message."""

from collections.abc import Sequence

from nmt.plugins.documents import icu
from nmt.plugins.documents.document import Part
from nmt.plugins.documents.elements import Element, escaped
from nmt.plugins.documents.nodes import MarkupToken
from nmt.plugins.documents.string_markup import CODE, FIRST_CODE
from nmt.plugins.documents.strings import String
from nmt.translation import Translated

UNREADABLE = "{n, plural, {"
"""Stands for a message that cannot be translated."""


class MessageUnit(Part):
    """An ICU message in which single characters stand for codes."""

    def __init__(self, element: Element, string: String, codes: dict[str, str]) -> None:
        """`codes` maps these characters to the codes."""
        super().__init__(element.inside, element.outside, string.lines)
        self.string = string
        self.codes = codes
        self.raw = element.file[self.begin : self.end]
        self.is_refused = False

    def render(self, translations: Sequence[Translated]) -> str:
        text = self.string.render(translations)
        self.is_refused = not self.string.keeps(translations, text)
        if self.is_refused or text == self.string.text:
            return self.raw
        # Escaped first, because the codes are XML already.
        return CODE.sub(lambda code: self.codes[code[0]], escaped(text))


def message_unit(element: Element, tokens: Sequence[MarkupToken]) -> MessageUnit | None:
    """The ICU message that the tokens of an element form; None if they form none."""
    # Codes may split the syntax of a message, so look at all tokens together. A code may itself
    # stand for another message.
    if not icu.is_message("".join(token.text for token in tokens if token.kind == "text")):
        return None
    text = ""
    codes = dict[str, str]()
    for token in tokens:
        code = chr(ord(FIRST_CODE) + len(codes))
        if token.kind == "text" and not CODE.search(token.text):
            text += token.text
        # The number of private characters is limited: a unit with more tags is unreadable.
        elif token.kind in ("point", "copy") and CODE.fullmatch(code):
            codes[code] = token.raw
            text += code
        else:
            # The translation could tear a pair of tags apart, or the characters are in use.
            text = UNREADABLE
            break
    return MessageUnit(element, String(text), codes)
