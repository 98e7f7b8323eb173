"""The text of a file of Office Open XML (ECMA-376): of DOCX, PPTX and XLSX documents."""

import re
from collections.abc import Iterator, Sequence

from nmt.plugins.documents.directions import Turn, turn_of
from nmt.plugins.documents.document import MarkedUp, Part, Spliced
from nmt.plugins.documents.elements import Element, escaped, parse_xml
from nmt.plugins.documents.languages import Change, change_of, declared
from nmt.plugins.documents.markup import Sentence
from nmt.plugins.documents.nodes import MarkupToken
from nmt.plugins.documents.office_runs import RunReader
from nmt.plugins.documents.xml_tokens import attribute_escaped, attribute_token, text_token
from nmt.translation import Translated

READ = {
    "docPr": ("title", "descr"),
    "cNvPr": ("title", "descr"),
    "tblCaption": ("val",),
    "tblDescription": ("val",),
    "hyperlink": ("tooltip",),
    "hlinkClick": ("tooltip",),
    "textpath": ("string",),
    "shape": ("alt",),
    "rect": ("alt",),
    "roundrect": ("alt",),
    "oval": ("alt",),
    "line": ("alt",),
    "polyline": ("alt",),
    "arc": ("alt",),
    "curve": ("alt",),
    "image": ("alt",),
    "group": ("alt",),
}
"""Attributes that people read, by the names of elements.

These are alternative texts, watermarks (`textpath`), and the tooltips of links.
"""
LINE_BREAKS = re.compile(r"((?:&#(?:[xX]0*[aAdD]|0*1[03]);)+)")
CACHES = frozenset(["strCache", "strLit", "multiLvlStrCache", "strDim"])
"""Texts in a chart: names of series, and categories, as the chart shows them."""


class Runs(MarkedUp):
    """A part of a DOCX, PPTX or XLSX file."""

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.change = change_of(source, target)
        self.turn = turn_of(source, target)
        super().__init__(content, source, target)

    def parts(self, text: str, target: str) -> list[Part]:
        return [Story(text, self.change, self.turn)]


class Story(Part):
    """The text of a part: first its attributes that people read, then its sentences."""

    def __init__(self, text: str, change: Change | None, turn: Turn | None) -> None:
        elements = parse_xml(text)
        # Changes of declarations have no lines, so only the texts of attributes do.
        changes = [*declared(elements, change, turn)]
        for element in elements:
            changes += attribute_parts(element)
        self.attributes = Spliced(text, changes)
        self.content = Spliced(text, sentences_of(text, elements))
        lines = self.attributes.lines + self.content.lines
        super().__init__(0, len(text), lines)

    def render(self, translations: Sequence[Translated]) -> str:
        left = iter(translations)
        # The attributes come first, as in `lines`.
        text = self.attributes.render(left)
        content = self.content
        if text != content.text:
            # Attributes may be inside of sentences, so the sentences need the changed ones. The
            # sentences are the same, at other offsets.
            content = Spliced(text, sentences_of(text, parse_xml(text)))
        return content.render(left)


def sentences_of(text: str, elements: Sequence[Element]) -> list[Part]:
    """The sentences in a part: those of paragraphs first, then the texts of charts."""
    sentences = RunReader(text, elements).sentences
    for element in elements:
        # Unlike paragraphs, the names of series and categories have no runs.
        for value in texts_of_chart(element):
            raw = value.file[value.inside : value.outside]
            sentences.append(Sentence(value.inside, [text_token(raw)], escaped))
    return sentences


def attribute_parts(element: Element) -> Iterator[Part]:
    """The alternative texts and similar attributes of an element."""
    if element.name not in READ:
        return
    spans = element.spans
    for name in READ[element.name]:
        if name in spans:
            begin, end = spans[name]
            yield Sentence(begin, attribute_tokens(element.file[begin:end]), attribute_escaped)


def attribute_tokens(raw: str) -> list[MarkupToken]:
    """The text of an attribute, in which references stand for line breaks."""
    tokens = list[MarkupToken]()
    for number, piece in enumerate(LINE_BREAKS.split(raw)):
        is_break = number % 2 == 1  # texts and what separates them alternate
        tokens.append(
            MarkupToken("point", piece, breaks=True) if is_break else attribute_token(piece)
        )
    return tokens


def texts_of_chart(element: Element) -> Iterator[Element]:
    """The elements with the texts that a series or an axis of a chart shows."""
    if element.name in ("tx", "txData"):
        yield from (child for child in element.children if child.name == "v")
    elif element.name in CACHES:
        yield from leaves_of(element)


def leaves_of(element: Element) -> Iterator[Element]:
    """The elements with the values of a cache."""
    for child in element.children:
        if child.name in ("pt", "v") and not child.children:
            yield child
        else:
            yield from leaves_of(child)
