"""Sentences in XML, and XLIFF 1.2 (https://docs.oasis-open.org/xliff): only untranslated units are changed.

A sentence's tokens refer to elements: `<e0>` and `</e0>` around text, `<p1/>` for a standalone element.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from html import escape
from typing import Any

from lxml import etree

from nmt.config import NMTError, require
from nmt.plugins.documents.document import Document, Spliced, Translated
from nmt.plugins.documents.markup import Kind, Sentence, Token

Element = Any  # lxml's classes are private and untyped
Tree = Any
INVALID = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
UNTRANSLATED = ("new", "needs-translation")  # target states


def parse_xml(content: bytes) -> Tree:
    """Parse a file; raise NMTError if it is not well-formed or declares entities, which can expand to gigabytes."""
    try:
        content.decode()
        encoding = "utf-8"  # regardless of any declaration, because the server's clients may have re-encoded the file
    except UnicodeDecodeError:
        encoding = None
    parser = etree.XMLParser(encoding=encoding, resolve_entities=False, strip_cdata=False)
    try:
        tree = etree.fromstring(content, parser).getroottree()
    except etree.XMLSyntaxError as error:
        raise NMTError(f"line {error.lineno}: not well-formed XML ({error.msg})") from error
    for entity in tree.docinfo.internalDTD.iterentities() if tree.docinfo.internalDTD is not None else ():
        raise NMTError(f"declares the entity {entity.name[:40]!r}: replace the entity with its text")
    return tree


def serialized(tree: Tree, content: bytes) -> bytes:
    """Serialize a tree in the encoding of its original file."""
    info, declared = tree.docinfo, b"<?xml" in content[:10].replace(b"\0", b"")
    options = {"xml_declaration": declared, "standalone": info.standalone or None}
    return bytes(etree.tostring(tree, encoding=info.encoding, **options))


def name_of(element: Element) -> str:
    """An element's local name; empty for a comment or processing instruction."""
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def escaped(text: str) -> str:
    return escape(INVALID.sub("", text), quote=False)


def text_token(text: str) -> Token:
    return Token("text", escaped(text), text)


class Unit:
    """A sentence with references to elements."""

    def __init__(self) -> None:
        self.tokens, self.elements = list[Token](), list[Element]()

    def alone(self, element: Element) -> str:
        self.elements.append(element)
        return f"<p{len(self.elements) - 1}/>"

    def around(self, element: Element, tokens: Iterable[Token], **facts: Any) -> list[Token]:
        number = len(self.elements)
        self.elements.append(element)
        return [Token("open", f"<e{number}>", **facts), *tokens, Token("close", f"</e{number}>", **facts)]

    def element_of(self, reference: Element) -> Element:
        return self.elements[int(reference.tag[1:])]

    def content(self) -> Spliced:
        return Spliced("".join(token.raw for token in self.tokens), [Sentence(0, self.tokens, escaped)])

    def render(self, translation: Translated) -> tuple[Element, bool]:
        """Return the translation as an XML element with references, and whether it differs from the source."""
        content = self.content()
        markup = content.render([translation])
        try:
            return etree.fromstring(f"<x>{markup}</x>"), markup != content.text
        except etree.XMLSyntaxError:  # elements nested too deeply
            return etree.fromstring(f"<x>{content.text}</x>"), True


def tokens_of(unit: Unit, element: Element) -> Iterator[Token]:
    """The tokens of a <source>; all elements except <g> and <mrk> contain code from the original file, not text."""
    yield text_token(element.text or "")
    for inside in element:
        name, text = name_of(inside), inside.xpath("string()")
        if name == "mrk" and (inside.get("translate") == "no" or inside.get("mtype") == "protected"):
            yield Token("copy" if text else "point", unit.alone(inside), text)
        elif name in ("g", "mrk") and (len(inside) or inside.text):
            yield from unit.around(inside, tokens_of(unit, inside), name=name)
        else:  # opening and closing codes share an id
            reference = inside.get("rid") or inside.get("id") or "" if name else ""
            kinds: dict[str, Kind] = {"bpt": "open", "bx": "open", "ept": "close", "ex": "close"}
            yield Token(kinds.get(name, "point"), unit.alone(inside), name=reference)
        yield text_token(inside.tail or "")


def fill(unit: Unit, element: Element, references: Element) -> None:
    """Replace an element's content with that of `references`, resolving each reference to its element."""
    element.text, element[:] = references.text, []
    for reference in references:
        new = deepcopy(unit.element_of(reference))
        if reference.tag.startswith("e"):
            fill(unit, new, reference)
        new.tail = reference.tail
        element.append(new)


class Xliff(Document):
    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.content, tree = content, parse_xml(content)
        require(not tree.getroot().get("version", "").startswith("2"), "cannot read XLIFF 2: convert it to XLIFF 1.2")
        self.lines = [line for unit, _ in self.units(tree) for line in unit.content().lines]

    def units(self, tree: Tree) -> Iterator[tuple[Unit, Element]]:
        """The untranslated sentences, each with its <trans-unit>."""
        for element in tree.iter("{*}trans-unit"):
            source, target = element.find("{*}source"), element.find("{*}target")
            says = (around.get("translate") for around in (element, *element.iterancestors()))
            if source is None or next(filter(None, says), "") == "no":
                continue
            if target is None or target.get("state") in UNTRANSLATED or not target.xpath("string()").strip():
                unit = Unit()
                unit.tokens += tokens_of(unit, source)
                if unit.content().lines:
                    yield unit, element

    def join(self, translations: Sequence[Translated]) -> bytes:
        if not translations:
            return self.content
        tree = parse_xml(self.content)
        for (unit, element), translation in zip(list(self.units(tree)), translations, strict=True):
            target = element.find("{*}target")
            if target is None:
                before = [*element.findall("{*}source"), *element.findall("{*}seg-source")][-1]
                target = etree.Element(etree.QName(etree.QName(before).namespace, "target"))
                before.addnext(target)
            target.set("state", "needs-review-translation")
            fill(unit, target, unit.render(translation)[0])
        return serialized(tree, self.content)
