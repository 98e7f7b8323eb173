"""What documents say about themselves: titles, descriptions and languages."""

import re
from collections.abc import Sequence
from html import escape

from nmt.plugins.documents.document import Part, Translated
from nmt.plugins.documents.elements import Element, parse_xml
from nmt.plugins.documents.html import Page
from nmt.plugins.documents.xml import Flow

HTML = re.compile(r"</?[a-zA-Z][^<>]*>|&#?\w{1,32};")


class Properties(Flow):
    """The properties of an office document."""

    paragraphs = frozenset(["dc:title", "dc:subject", "dc:description"])

    def sentences(self, element: Element) -> list[Part]:
        if element.tag == "dc:language":
            if self.change and self.change.source.is_named(element.text.strip()):
                return [Part(element.inside, element.outside, otherwise=self.change.target.tag)]
            return []
        return super().sentences(element)


class Package(Flow):
    """The package of an EPUB, with its metadata."""

    paragraphs = frozenset(["dc:title", "dc:description"])

    def parts(self, text: str, target: str) -> Sequence[Part]:
        self.target = target.replace("_", "-")
        return super().parts(text, target)

    def sentences(self, element: Element) -> list[Part]:
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
        return self.raw if text == self.page.text else escape(text, quote=False)


class Languages(Flow):
    """A part in which only the languages change, such as the styles of a DOCX file."""

    def parts(self, text: str, target: str) -> Sequence[Part]:
        return list(self.change.parts(parse_xml(text))) if self.change else []
