"""Properties of components in MDX that readers see, such as title="Warning"."""

import re
from collections.abc import Iterator
from html import unescape

from nmt.plugins.documents.jsx import Jsx, JsxTag
from nmt.plugins.documents.markup import Sentence
from nmt.plugins.documents.nodes import MarkupToken
from nmt.plugins.documents.tags import READ

READABLE = frozenset(READ) | {
    "caption",
    "description",
    "heading",
    "label",
    "subtitle",
    "summary",
    "tagline",
    "text",
    "tooltip",
}
"""Names of properties whose values nmt translates."""
STRING_IN_BRACES = re.compile(
    rf"(?<![\w-])(?:{'|'.join(READABLE)})\s*=\s*\{{\s*(?P<quote>[\"'`])(?P<value>.*?)(?P=quote)",
    re.DOTALL,
)


def properties_of(text: str, begin: int, end: int) -> list[Sentence]:
    """The properties to translate in lines of tags and expressions between two offsets."""
    return [
        sentence
        for tag in tags_in_lines(text, begin, end)
        for name in sorted(tag.attributes, key=lambda name: tag.attributes[name])
        if name.lower() in READABLE and (sentence := property_of(text, tag, name)).lines
    ]


def tags_in_lines(text: str, begin: int, end: int) -> Iterator[JsxTag]:
    jsx = Jsx(text)
    at = begin
    while at < end:
        tag = jsx.read(at) if text[at] in "<{" else None
        if tag:
            yield tag
        at = tag.end if tag else at + 1


def count_in_expressions(text: str) -> int:
    """The number of properties to read that are strings in braces, such as title={"Warning"}."""
    values = [value["value"] for value in STRING_IN_BRACES.finditer(text)]
    return sum(any(map(str.isalpha, value)) for value in values)


def property_of(text: str, tag: JsxTag, name: str) -> Sentence:
    begin, end = tag.attributes[name]
    quote = text[begin]
    raw = text[begin + 1 : end - 1]
    token = MarkupToken("text", raw, unescape(raw))

    def write(value: str) -> str:
        # As in HTML, a property has references, but no escapes with a backslash.
        value = value.replace("&", "&amp;")
        return value.replace(quote, "&quot;" if quote == '"' else "&#39;")

    return Sentence(begin + 1, [token], write)
