"""Which elements of XML belong to the sentence around them, and their tokens."""

from html import escape, unescape

from nmt.plugins.documents.elements import INVALID, text_of
from nmt.plugins.documents.nodes import Kind, MarkupToken

AROUND = frozenset(
    [
        # XLIFF
        "g",
        "mrk",
        # TMX
        "hi",
        # OpenDocument, where `a` is a link and `meta` a field with text
        "span",
        "a",
        "meta",
        "content-control",
        # the table of contents of EPUB 2
        "text",
        # Word, where `ins` and `moveTo` are recorded changes
        "hyperlink",
        "ins",
        "moveTo",
        "smartTag",
    ]
)
"""Elements whose text belongs to the sentence around them."""
BREAKS = frozenset(
    [
        # OpenDocument, where `s` stands for blanks and `frame` has a picture
        "s",
        "tab",
        "line-break",
        "frame",
        # Word
        "br",
        "cr",
        "ptab",
        "drawing",
        "pict",
        "object",
        "oMath",
        "oMathPara",
    ]
)
"""Elements that separate words."""
CODES: dict[str, Kind] = {
    "bpt": "open",
    "bx": "open",
    "ept": "close",
    "ex": "close",
    "ph": "point",
    "it": "point",
    "ut": "point",
}
"""Elements of XLIFF and TMX with code of the original file; two codes of a pair share an id."""
CODED = frozenset(["mrk", "hi", "g", "x", *CODES])
"""Elements of XLIFF and TMX that stand for code of the original file."""


def text_token(raw: str) -> MarkupToken:
    return MarkupToken("text", raw, text_of(raw))


def attribute_token(raw: str) -> MarkupToken:
    """The text in an attribute, where only references are markup."""
    return MarkupToken("text", raw, unescape(raw))


def attribute_escaped(text: str) -> str:
    """Text as it is written in an attribute."""
    return escape(INVALID.sub("", text))
