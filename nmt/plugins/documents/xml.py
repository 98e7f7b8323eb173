"""Sentences in XML: XLIFF 1.2, OpenDocument, and the titles and contents of EPUB; only sentences are changed.

A sentence's tokens refer to elements: `<e0>` and `</e0>` around text, `<p1/>` for a standalone element.
"""

import re
from abc import abstractmethod
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
AROUND = frozenset(("g", "mrk", "span", "a", "meta"))  # elements with text of their sentence
BREAKS = frozenset(("s", "tab", "line-break", "frame"))
OASIS, DC = "urn:oasis:names:tc:opendocument:xmlns:", "http://purl.org/dc/elements/1.1/"
NAMES = {name: f"{OASIS}{name}:1.0" for name in ("office", "table", "text")}
NAMES |= {"dc": DC, "ncx": "http://www.daisy.org/z3986/2005/ncx/"}
PARAGRAPHS = etree.XPath(
    "//*[self::text:p or self::text:h][not(ancestor::office:annotation or ancestor::text:tracked-changes or"
    " parent::table:table-cell[@table:formula or @office:value-type != 'string'])]"
    " | //dc:title | //ncx:text[not(parent::ncx:docAuthor)]",
    namespaces=NAMES,
)


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


def name_of(element: Element) -> str:
    """An element's local name; empty for a comment or processing instruction."""
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def escaped(text: str) -> str:
    return escape(INVALID.sub("", text), quote=False)


def text_token(text: str) -> Token:
    return Token("text", escaped(text), text)


class Unit:
    """A sentence with references to elements."""

    def __init__(self, element: Element = None) -> None:
        self.elements = list[Element]()
        self.tokens = [] if element is None else [*self.tokens_of(element)]

    def tokens_of(self, element: Element) -> Iterator[Token]:
        """The tokens of a sentence; in XLIFF, all elements except <g> and <mrk> contain code from the original file."""
        yield text_token(element.text or "")
        for inside in element:
            name, text = name_of(inside), inside.xpath("string()")
            if name == "mrk" and (inside.get("translate") == "no" or inside.get("mtype") == "protected"):
                yield Token("copy" if text else "point", self.alone(inside), text)
            elif name in AROUND and (len(inside) or inside.text):
                yield from self.around(inside, self.tokens_of(inside), name=name, optional=name == "span")
            elif name and OASIS in inside.tag and text and not len(inside):  # a field, such as a page number
                yield Token("copy", self.alone(inside), text)
            else:  # opening and closing codes share an id
                reference = inside.get("rid") or inside.get("id") or "" if name else ""
                kinds: dict[str, Kind] = {"bpt": "open", "bx": "open", "ept": "close", "ex": "close"}
                yield Token(kinds.get(name, "point"), self.alone(inside), name=reference, breaks=name in BREAKS)
            yield text_token(inside.tail or "")

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


def fill(unit: Unit, element: Element, references: Element) -> None:
    """Replace an element's content with that of `references`, resolving each reference to its element."""
    element.text, element[:] = references.text, []
    for reference in references:
        new = deepcopy(unit.element_of(reference))
        if reference.tag.startswith("e"):
            fill(unit, new, reference)
        new.tail = reference.tail
        element.append(new)


class XmlDocument(Document):
    """An XML file, in which sentences are replaced; without a new sentence, it stays the same byte for byte."""

    rewrites = False  # True: a translation that equals its source is written, too

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.content, self.target = content, target.replace("_", "-")
        self.lines = [line for unit, _ in self.units(parse_xml(content)) for line in unit.content().lines]

    @abstractmethod
    def units(self, tree: Tree) -> Iterable[tuple[Unit, Any]]:
        """The sentences, in the order of the file, with the place of each for `write`."""

    def write(self, unit: Unit, references: Element, place: Any) -> None:
        """Write a translation to its place."""
        fill(unit, place, references)
        for cell in place.iterancestors("{*}table-cell"):
            cell.attrib.pop(f"{{{NAMES['office']}}}string-value", None)  # it would override the text

    def join(self, translations: Sequence[Translated]) -> bytes:
        tree, changed = parse_xml(self.content), False
        units = [pair for pair in self.units(tree) if pair[0].content().lines]
        for (unit, place), translation in reversed([*zip(units, translations, strict=True)]):  # footnotes come first
            references, is_new = unit.render(translation)
            if is_new or self.rewrites:
                self.write(unit, references, place)
                changed = True
        for element in tree.iter(f"{{{DC}}}language") if self.target else ():
            element.text, changed = self.target, True
        options: dict[str, Any] = {"xml_declaration": b"<?xml" in self.content[:10].replace(b"\0", b"")}
        options |= {"encoding": tree.docinfo.encoding, "standalone": tree.docinfo.standalone or None}
        return bytes(etree.tostring(tree, **options)) if changed else self.content


class Flow(XmlDocument):
    """A part of an OpenDocument file, or an EPUB's package or table of contents; formatting is inside of paragraphs."""

    def units(self, tree: Tree) -> Iterator[tuple[Unit, Element]]:
        yield from ((Unit(element), element) for element in PARAGRAPHS(tree))


class Xliff(XmlDocument):
    """XLIFF 1.2 (https://docs.oasis-open.org/xliff): only units without a translation are changed."""

    rewrites = True

    def units(self, tree: Tree) -> Iterator[tuple[Unit, Element]]:
        is_new = tree.getroot().get("version", "").startswith("2")
        require(not is_new, "cannot read XLIFF 2: convert it to XLIFF 1.2")
        for element in tree.iter("{*}trans-unit"):
            source, target = element.find("{*}source"), element.find("{*}target")
            says = (around.get("translate") for around in (element, *element.iterancestors()))
            if source is None or next(filter(None, says), "") == "no":
                continue
            is_open = target is None or target.get("state") in ("new", "needs-translation")
            if is_open or not target.xpath("string()").strip():
                yield Unit(source), element

    def write(self, unit: Unit, references: Element, place: Element) -> None:
        target = place.find("{*}target")
        if target is None:
            before = [*place.findall("{*}source"), *place.findall("{*}seg-source")][-1]
            target = etree.Element(etree.QName(etree.QName(before).namespace, "target"))
            before.addnext(target)
        target.set("state", "needs-review-translation")
        fill(unit, target, references)
