"""Sentences in XML: an element whose content is translated, and is built again around the translation.

Among the tokens of a sentence, elements stand as references: `<e0>` and `</e0>` around text, `<p1/>` for one alone.
"""

import re
from copy import deepcopy
from dataclasses import dataclass, field
from html import escape
from typing import Any

from lxml import etree

from nmt.errors import NMTError
from nmt.plugins.documents.document import Spliced, Translated
from nmt.plugins.documents.markup import Sentence, Token

Element = Any
Tree = Any
"""The classes of lxml are private, and have no types."""
INVALID = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def parse_xml(content: bytes) -> Tree:
    """The tree of a file; NMTError if it is not well-formed, or declares entities, which can stand for billions."""
    try:
        content.decode()
        encoding = "utf-8"  # whatever is declared: a client of the server sends a text
    except UnicodeDecodeError:
        encoding = None
    parser = etree.XMLParser(
        encoding=encoding, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, strip_cdata=False
    )
    try:
        tree = etree.fromstring(content, parser).getroottree()
    except etree.XMLSyntaxError as error:
        raise NMTError(f"line {error.lineno}: not well-formed XML ({error.msg})") from error
    for entity in tree.docinfo.internalDTD.iterentities() if tree.docinfo.internalDTD is not None else ():
        raise NMTError(f"it declares the entity {entity.name[:40]!r}: write out what that stands for")
    return tree


def serialized(tree: Tree, content: bytes) -> bytes:
    """A tree in the encoding of the file that it was read from."""
    info, declared = tree.docinfo, b"<?xml" in content[:10].replace(b"\0", b"")
    alone = info.standalone or None
    return bytes(etree.tostring(tree, encoding=info.encoding, xml_declaration=declared, standalone=alone))


def name_of(element: Element) -> str:
    """The name of an element without its namespace; empty for a comment or a processing instruction."""
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def escaped(text: str) -> str:
    return escape(INVALID.sub("", text), quote=False)


def text_token(text: str) -> Token:
    return Token("text", escaped(text), text)


@dataclass
class Unit:
    """A sentence whose tokens refer to elements."""

    tokens: list[Token] = field(default_factory=list)
    elements: list[Element] = field(default_factory=list)

    def alone(self, *elements: Element) -> str:
        """References to elements that stand alone."""
        first = len(self.elements)
        self.elements += elements
        return "".join(f"<p{number}/>" for number in range(first, len(self.elements)))

    def around(self, element: Element) -> tuple[str, str]:
        """References before and after what is in an element."""
        self.elements.append(element)
        return f"<e{len(self.elements) - 1}>", f"</e{len(self.elements) - 1}>"

    def element_of(self, reference: Element) -> Element:
        return self.elements[int(reference.tag[1:])]

    def content(self) -> Spliced:
        return Spliced("".join(token.raw for token in self.tokens), [Sentence(0, self.tokens, escaped)])

    def render(self, translation: Translated) -> tuple[Element, bool]:
        """References with a translation between them, and whether it differs from the text itself."""
        content = self.content()
        markup = content.render([translation])
        try:
            return etree.fromstring(f"<x>{markup}</x>"), markup != content.text
        except etree.XMLSyntaxError:  # elements nested too deeply to be placed
            return etree.fromstring(f"<x>{content.text}</x>"), True

    def fill(self, element: Element, references: Element) -> None:
        """Give an element the text and the elements that references stand for."""
        element.text, element[:] = references.text, []
        for reference in references:
            original = self.element_of(reference)
            if reference.tag.startswith("p"):
                new = deepcopy(original)
            else:
                new = etree.Element(original.tag, original.attrib, original.nsmap)
                self.fill(new, reference)
            new.tail = reference.tail
            element.append(new)
