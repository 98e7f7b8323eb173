"""DOCX (ECMA-376, part 1, section 17): paragraphs are sentences; runs with unusual formatting are elements.

Only translated paragraphs are rewritten; everything else in the archive stays unchanged.
"""

import io
import lzma
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from copy import copy, deepcopy
from itertools import groupby
from zipfile import BadZipFile, ZipFile

from lxml import etree

from nmt.errors import NMTError, one_line
from nmt.files import LARGE
from nmt.plugins.documents.document import Document, Translated
from nmt.plugins.documents.markup import Token
from nmt.plugins.documents.xml import Element, Unit, name_of, parse_xml, serialized, text_token

PART = re.compile(r"word/(?:document|header|footer|footnotes|endnotes)\d*\.xml")
UNSEEN = frozenset(("lang", "noProof"))  # run properties without a visible effect
AROUND = frozenset(("hyperlink", "ins", "moveTo", "smartTag"))
DROPPED = frozenset(("rPr", "proofErr", "lastRenderedPageBreak", "softHyphen"))  # properties and transient marks
BREAKS = frozenset(("br", "cr", "tab", "ptab", "drawing", "pict", "object", "oMath", "oMathPara"))
UNREADABLE = (BadZipFile, EOFError, LookupError, OSError, RuntimeError, ValueError, lzma.LZMAError, zlib.error)


class Reader:
    """Collects a part's sentences, each with the elements that it spans and the formatting of most of its text."""

    def __init__(self, root: Element) -> None:
        self.w = f"{{{etree.QName(root).namespace}}}"  # WordprocessingML has two possible namespaces
        self.sentences, self.properties = list[tuple[Unit, list[Element], Element]](), dict[str, Element]()
        self.begin()
        for paragraph in root.iter(f"{self.w}p"):
            self.read(list(paragraph))
            self.end()

    def begin(self) -> None:
        """Begin a sentence; `pieces` holds (formatting, token) pairs; a token outside runs has the formatting None."""
        self.unit, self.pieces, self.covered = Unit(), list[tuple[str | None, Token]](), list[Element]()

    def end(self) -> None:
        sizes = Counter(look for look, token in self.pieces if look is not None for _ in token.text)
        usual = max(sizes, key=sizes.__getitem__, default="")
        for look, group in groupby(self.pieces, lambda piece: piece[0]):
            tokens = [token for _, token in group]
            if look not in (None, usual):
                tokens = self.unit.around(self.properties[look], tokens, name="r", optional=True)
            self.unit.tokens += tokens
        if self.unit.content().lines:
            self.sentences.append((self.unit, self.covered, self.properties[usual]))
        self.begin()

    def joins(self, element: Element) -> bool:
        """True if an element belongs inside a sentence: a run, a link or similar, or anything without text."""
        if name_of(element) in AROUND:
            return all(map(self.joins, element))
        names = ("p", "fldChar") if name_of(element) == "r" else ("p", "fldChar", "t")
        return next(element.iter(*(f"{self.w}{name}" for name in names)), None) is None

    def read(self, elements: Sequence[Element]) -> None:
        """Read the content of a paragraph or of an element that wraps runs. Field characters end a sentence."""
        for element in elements:
            name = name_of(element)
            if name in DROPPED or name.endswith("Pr"):
                continue
            if not self.joins(element):
                self.end()
                if name not in ("r", "p"):
                    self.read(list(element))
                    self.end()
            elif name == "r":
                self.read_run(element)
            elif name in AROUND:
                opening, closing = self.unit.around(element, [], name=name)
                self.note(opening, element)
                self.read(list(element))
                self.note(closing)
            else:
                self.note(Token("point", self.unit.alone(element), breaks=name in BREAKS), element)

    def note(self, token: Token, *elements: Element, look: str | None = None) -> None:
        self.pieces.append((look, token))
        self.covered += elements

    def read_run(self, run: Element) -> None:
        properties = run.find(f"{self.w}rPr")
        properties = etree.Element(f"{self.w}rPr") if properties is None else properties
        shown = (part for top in properties if name_of(top) not in UNSEEN for part in top.iter())
        look = str([(part.tag, sorted(part.attrib.items())) for part in shown])
        self.properties.setdefault(look, properties)
        for inside in run:
            name = name_of(inside)
            if name == "t":
                self.note(text_token(inside.text or ""), run, look=look)
            elif name not in DROPPED:
                self.note(Token("point", self.unit.alone(inside), breaks=name in BREAKS), run, look=look)


def write_text(unit: Unit, parent: Element, references: Element, properties: Element) -> None:
    """Add the referenced elements to `parent`, and add the text between them as runs with `properties`."""
    w = properties.tag.removesuffix("rPr")

    def add_run(content: Element) -> None:
        etree.SubElement(parent, f"{w}r").extend([deepcopy(properties), content][not len(properties) :])

    def add_text(text: str | None) -> None:
        if text:
            content = etree.Element(f"{w}t", {"{http://www.w3.org/XML/1998/namespace}space": "preserve"})
            content.text = text
            add_run(content)

    add_text(references.text)
    for reference in references:
        element = unit.element_of(reference)
        if name_of(element) == "rPr":
            write_text(unit, parent, reference, element)
        elif reference.tag.startswith("p"):
            (add_run if name_of(element.getparent()) == "r" else parent.append)(deepcopy(element))
        else:
            new = etree.SubElement(parent, element.tag, element.attrib)
            new.extend(deepcopy(inside) for inside in element if name_of(inside).endswith("Pr"))
            write_text(unit, new, reference, properties)
        add_text(reference.tail)


class Docx(Document):
    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.content = content
        try:
            with ZipFile(io.BytesIO(content)) as archive:
                self.files, self.comment = archive.infolist(), archive.comment
                if (size := sum(file.file_size for file in self.files)) > LARGE:
                    raise NMTError(f"{size:,} bytes when unpacked; the limit is {LARGE:,}")
                self.contents = list(map(archive.read, self.files))
        except UNREADABLE as error:  # zipfile can raise any of these
            raise NMTError(f"not a DOCX file, or it is damaged or encrypted ({one_line(error)})") from error
        trees = {n: parse_xml(self.contents[n]) for n, file in enumerate(self.files) if PART.fullmatch(file.filename)}
        if not any(tree.find(".//{*}body") is not None for tree in trees.values()):
            raise NMTError("word/document.xml is missing or has no body: save the file as DOCX")
        self.parts = list(trees)
        units = [unit for tree in trees.values() for unit, *_ in Reader(tree.getroot()).sentences]
        self.lines = [line for unit in units for line in unit.content().lines]

    def join(self, translations: Sequence[Translated]) -> bytes:
        left, contents = iter(translations), self.contents.copy()
        for number in self.parts:
            tree, changed = parse_xml(contents[number]), False
            for unit, covered, properties in Reader(tree.getroot()).sentences:
                references, is_new = unit.render(next(left))
                if is_new:
                    parent = covered[0].getparent()
                    new = etree.Element(parent.tag)
                    places = [parent.index(element) for element in covered if element.getparent() is parent]
                    write_text(unit, new, references, properties)
                    parent[places[0] : places[-1] + 1], changed = list(new), True
            if changed:
                contents[number] = serialized(tree, contents[number])
        if contents == self.contents:
            return self.content
        written = io.BytesIO()
        with ZipFile(written, "w") as archive:
            archive.comment = self.comment
            for file, content in zip(self.files, contents, strict=True):
                archive.writestr(copy(file), content)
        return written.getvalue()
