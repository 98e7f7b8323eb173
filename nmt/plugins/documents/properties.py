"""The properties of office documents and books: titles, descriptions and languages."""

import re
from collections.abc import Iterator, Sequence
from html import escape

from nmt.plugins.documents.declarations import Declarations
from nmt.plugins.documents.document import Part
from nmt.plugins.documents.edits import with_attribute
from nmt.plugins.documents.elements import Element, parse_xml
from nmt.plugins.documents.html import Page
from nmt.plugins.documents.xml import Flow
from nmt.text import language_tag
from nmt.translation import Translated

# A description that has a tag or a reference is HTML.
HTML = re.compile(r"</?[a-zA-Z][^<>]*>|&#?\w{1,32};")


class Properties(Flow):
    """The properties of an office document."""

    paragraphs = frozenset(["dc:title", "dc:subject", "dc:description"])

    def sentences(self, element: Element) -> list[Part]:
        if element.tag != "dc:language":
            return super().sentences(element)
        # A third language stays, as it does in the text.
        if not self.change or not self.change.source.is_named(element.text.strip()):
            return []
        return [Part(element.inside, element.outside, otherwise=self.change.target.tag)]


class Contents(Flow):
    """A part of an EPUB besides its chapters, such as a table of contents."""

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.target = language_tag(target) or target.replace("_", "-")
        self.book = Declarations(source, target) if target else None
        super().__init__(content, source, target)

    def declarations(self, elements: Sequence[Element]) -> list[Part]:
        parts = list[Part]()
        if self.book:
            for element in elements:
                parts += declared(element, self.book)
        return parts


def declared(element: Element, book: Declarations) -> Iterator[Part]:
    """The changes of an element's language and direction, and of the order of pages."""
    attributes = element.attributes
    spans = element.spans
    if book.is_source(attributes.get("lang", "")):
        yield Part(*spans["lang"], otherwise=book.tag)
    if not book.turns:
        return
    if attributes.get("dir") == book.before:
        yield Part(*spans["dir"], otherwise=book.after)
    if element.name == "spine":
        yield with_attribute(element, "page-progression-direction", book.after)


class Package(Contents):
    """The package of an EPUB, with its metadata."""

    paragraphs = frozenset(["dc:title", "dc:description"])

    def sentences(self, element: Element) -> list[Part]:
        # The book is in the target language, whatever its package declared.
        if element.tag == "dc:language" and self.target:
            return [Part(element.inside, element.outside, otherwise=self.target)]
        if element.tag == "dc:description" and HTML.search(element.text):
            return [Description(element)]
        return super().sentences(element)


class Description(Part):
    """A description in HTML, which is escaped in the package."""

    def __init__(self, element: Element) -> None:
        self.raw = element.file[element.inside : element.outside]
        self.page = Page(element.text)
        super().__init__(element.inside, element.outside, self.page.lines)

    def render(self, translations: Sequence[Translated]) -> str:
        text = self.page.render(translations)
        # The package has the HTML as text.
        return self.raw if text == self.page.text else escape(text, quote=False)


class Languages(Flow):
    """A part in which only declarations change, such as the styles of a DOCX file."""

    def parts(self, text: str, target: str) -> Sequence[Part]:
        # Without a change, the file is not even parsed.
        return self.declarations(parse_xml(text)) if self.change or self.turn else []
