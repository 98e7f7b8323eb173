"""The inline elements of XLIFF 2 (section 4.2.3 of the specification of XLIFF 2.1)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nmt.plugins.documents.elements import Element
from nmt.plugins.documents.nodes import MarkupToken
from nmt.plugins.documents.placeholder_codes import is_placeholder
from nmt.plugins.documents.xml import spaced
from nmt.text import separates_words

if TYPE_CHECKING:
    from nmt.plugins.documents.bilingual import Bilingual

AROUND = {"pc": "Start", "mrk": ""}
"""Elements with text -> the suffix of the attributes of their opening tags."""
OPENS = frozenset(["sc", "sm"])
CLOSES = frozenset(["ec", "em"])
FIXED = ("no", "firstNo")


class Codes:
    """The inline elements of a unit."""

    def __init__(self, file: "Bilingual", unit: Element) -> None:
        self.file = file
        self.original = dict[str, str]()
        """The code in the original file, by its id."""
        for child in unit.children:
            if child.name == "originalData":
                for data in child.children:
                    self.original[data.attributes.get("id", "")] = data.text

    def tokens_of(self, element: Element) -> list[MarkupToken]:
        tokens = list[MarkupToken]()
        at = element.inside
        for child in element.children:
            tokens += self.file.text_tokens(element.file[at : child.begin])
            tokens += self.tokens_of_child(child)
            at = child.end
        tokens += self.file.text_tokens(element.file[at : element.outside])
        return without_protected(tokens)

    def tokens_of_child(self, child: Element) -> list[MarkupToken]:
        attributes = child.attributes
        has_content = child.inside < child.outside
        if child.name == "mrk" and attributes.get("translate") == "no" and has_content:
            return [MarkupToken("copy", child.raw, child.text)]
        # Without content, it is a tag between words, like any other.
        if child.name in AROUND and has_content:
            return self.tokens_around(child)
        if child.name in OPENS or child.name in CLOSES:
            return spaced(self.half_of_pair(child), self.separates(child))
        separates = self.separates(child)
        code = self.code_of(child)
        names = (code, attributes.get("equiv", ""))
        if child.name == "ph" and not separates and any(map(is_placeholder, names)):
            return [MarkupToken("copy", child.raw, code)]
        return [MarkupToken("point", child.raw, breaks=separates)]

    def tokens_around(self, element: Element) -> list[MarkupToken]:
        separates = self.separates(element, AROUND[element.name])
        opening = element.file[element.begin : element.inside]
        closing = element.file[element.outside : element.end]
        return [
            *spaced(MarkupToken("open", opening, name=element.name), separates),
            *self.tokens_of(element),
            *spaced(MarkupToken("close", closing, name=element.name), separates),
        ]

    def half_of_pair(self, element: Element) -> MarkupToken:
        """The token of an element that opens or closes a span of text."""
        attributes = element.attributes
        # Markers of annotations and of codes may have the same ids as elements elsewhere.
        kind = "annotation" if element.name in ("sm", "em") else "code"
        opened = attributes.get("id" if element.name in OPENS else "startRef", "")
        name = f"{kind} {opened or attributes.get('id', '')}"
        if element.name in CLOSES:
            return MarkupToken("close", element.raw, name=name)
        is_protected = element.name == "sm" and attributes.get("translate") == "no"
        # `without_protected` copies such a span.
        return MarkupToken("open", element.raw, PROTECTED if is_protected else "", name=name)

    def code_of(self, element: Element, suffix: str = "") -> str:
        """The code that an element stands for; `suffix` names one of two codes ("Start")."""
        attributes = element.attributes
        data = self.original.get(attributes.get(f"dataRef{suffix}", ""), "")
        for code in (data, attributes.get(f"disp{suffix}"), attributes.get(f"equiv{suffix}")):
            if code:
                return code
        return ""

    def separates(self, element: Element, suffix: str = "") -> bool:
        """Whether the code that an element stands for separates words, as line breaks do."""
        kind = element.attributes.get("subType", "").rpartition(":")[2]
        return separates_words(self.code_of(element, suffix), kind)

    def in_fixed_order(self, element: Element) -> list[str]:
        """The tags in a source text, as written, that must keep their order (`canReorder`)."""
        tags = list[str]()
        for child in element.children:
            if child.attributes.get("canReorder") in FIXED:
                tags.append(child.file[child.begin : child.inside])
            tags += self.in_fixed_order(child)
        return tags


PROTECTED = "translate=no"


def without_protected(tokens: Sequence[MarkupToken]) -> list[MarkupToken]:
    """The tokens in which a span that must not be translated, <sm translate="no"/>, is a code."""
    result = list[MarkupToken]()
    span = list[MarkupToken]()  # that is protected, up to now
    for token in tokens:
        if not span and not (token.kind == "open" and token.text == PROTECTED):
            result.append(token)
            continue
        span.append(token)
        if token.kind == "close" and token.name == span[0].name:
            result.append(copied_span(span))
            span = []
    # A span that ends in another segment protects the rest of this one.
    if span:
        result.append(copied_span(span))
    return result


def copied_span(tokens: Sequence[MarkupToken]) -> MarkupToken:
    raw = "".join(token.raw for token in tokens)
    text = "".join(token.text for token in tokens if token.kind in ("text", "copy"))
    return replace(tokens[0], kind="copy", raw=raw, text=text, name="")
