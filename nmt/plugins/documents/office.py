"""Office Open XML (ECMA-376): paragraphs and cells are sentences; runs with unusual formatting are elements."""

import re
from collections import Counter
from collections.abc import Iterable
from copy import deepcopy
from itertools import groupby

from lxml import etree

from nmt.plugins.documents.markup import Token
from nmt.plugins.documents.xml import Element, Tree, Unit, XmlDocument, name_of, text_token

UNSEEN = frozenset(("lang", "altLang", "noProof", "dirty", "err", "smtClean"))  # formatting without a visible effect
AROUND = frozenset(("hyperlink", "ins", "moveTo", "smartTag"))
DROPPED = frozenset(("rPr", "proofErr", "lastRenderedPageBreak", "softHyphen", "rPh"))  # also the reading of a cell
BREAKS = frozenset(("br", "cr", "tab", "ptab", "drawing", "pict", "object", "oMath", "oMathPara"))
SPACE = re.compile(r"((?:_x000[9AaDd]_|[\t\r\n])+)")  # breaks lines in cells, and aligns words on slides
Place = tuple[list[Element], Element]  # the elements that a sentence spans, and the formatting of most of its text


class Runs(XmlDocument):
    """A part of a DOCX, PPTX or XLSX file."""

    def units(self, tree: Tree) -> list[tuple[Unit, Place]]:
        self.ended, self.properties = list[tuple[Unit, Place]](), dict[str, Element]()
        self.pieces = list[tuple[str | None, Token]]()  # formatting and token; outside runs, the formatting is None
        self.unit, self.covered = Unit(), list[Element]()
        for paragraph in tree.iter("{*}p", "{*}si", "{*}is"):
            self.w = f"{{{etree.QName(paragraph).namespace}}}"  # several are possible, even in one file
            self.read(paragraph)
            self.end()
        return self.ended

    def end(self) -> None:
        """End a sentence, and begin the next one."""
        sizes = Counter(look for look, token in self.pieces if look is not None for _ in token.text)
        usual = max(sizes, key=sizes.__getitem__, default="")
        for look, group in groupby(self.pieces, lambda piece: piece[0]):
            tokens = [token for _, token in group]
            if look not in (None, usual):
                properties = self.properties[look]
                is_link = properties.find("{*}hlinkClick") is not None
                tokens = self.unit.around(properties, tokens, name="r", optional=not is_link)
            self.unit.tokens += tokens
        if usual in self.properties:
            self.ended.append((self.unit, (self.covered, self.properties[usual])))
        self.unit, self.pieces, self.covered = Unit(), [], list[Element]()

    def joins(self, element: Element) -> bool:
        """True if an element belongs inside a sentence: a run, a link or similar, or anything without text."""
        if name_of(element) in AROUND:
            return all(map(self.joins, element))
        if name_of(element) in ("t", "fld"):  # the text of a cell without runs, or a field of a slide
            return True
        names = ("p", "fldChar") if name_of(element) == "r" else ("p", "fldChar", "t")
        return next(element.iter(*(f"{self.w}{name}" for name in names)), None) is None

    def read(self, elements: Iterable[Element]) -> None:
        """Read the content of a paragraph or of an element that wraps runs. Field characters end a sentence."""
        for element in elements:
            name = name_of(element)
            if name in DROPPED or name.endswith("Pr"):
                continue
            if not self.joins(element):
                self.end()
                if name not in ("r", "p"):
                    self.read(element)
                    self.end()
            elif name in ("r", "t"):
                self.read_run(element, [element] if name == "t" else element)
            elif name in AROUND:
                opening, closing = self.unit.around(element, [], name=name)
                self.note(opening, element)
                self.read(element)
                self.note(closing)
            else:
                self.note(Token("point", self.unit.alone(element), breaks=name in BREAKS), element)

    def note(self, token: Token, *elements: Element, look: str | None = None) -> None:
        self.pieces.append((look, token))
        self.covered += elements

    def read_run(self, run: Element, content: Iterable[Element]) -> None:
        properties = run.find(f"{self.w}rPr")
        properties = etree.Element(f"{self.w}rPr") if properties is None else properties
        shown = (part for part in properties.iter() if name_of(part) not in UNSEEN)
        look = str([(part.tag, sorted(i for i in part.attrib.items() if i[0] not in UNSEEN)) for part in shown])
        self.properties.setdefault(look, properties)
        for part in content:
            name = name_of(part)
            for number, text in enumerate(SPACE.split(part.text or "") if name == "t" else ()):
                blank = text_in_run(self.w, text) if number % 2 else None
                token = text_token(text) if blank is None else Token("point", self.unit.alone(blank), breaks=True)
                self.note(token, run, look=look)
            if name not in DROPPED | {"t"}:
                self.note(Token("point", self.unit.alone(part), breaks=name in BREAKS), run, look=look)

    def write(self, unit: Unit, references: Element, place: Place) -> None:
        covered, properties = place
        first = covered[0]
        parent, new = first.getparent(), etree.Element(first.getparent().tag)
        places = [parent.index(element) for element in covered if element.getparent() is parent]
        write_text(unit, new, references, properties)
        if name_of(first) == "t" and all(len(run) == 1 for run in new):  # a cell without formatting
            new[:] = [text_in_run(properties.tag.removesuffix("rPr"), "".join(new.itertext()))]
        parent[places[0] : places[-1] + 1] = list(new)
        for reading in parent.findall("{*}rPh"):  # it refers to places in the source
            parent.remove(reading)


def text_in_run(w: str, text: str) -> Element:
    """A new text element in a new run."""
    space = {} if "/drawingml/" in w else {"{http://www.w3.org/XML/1998/namespace}space": "preserve"}
    content = etree.SubElement(etree.Element(f"{w}r"), f"{w}t", space)
    content.text = text
    return content


def write_text(unit: Unit, parent: Element, references: Element, properties: Element) -> None:
    """Add the referenced elements to `parent`, and add the text between them as runs with `properties`."""
    w = properties.tag.removesuffix("rPr")

    def add_run(content: Element) -> None:
        is_plain = not (len(properties) or properties.attrib)
        etree.SubElement(parent, f"{w}r").extend([deepcopy(properties), content][is_plain:])

    def add_text(text: str | None) -> None:
        if text:
            add_run(text_in_run(w, text))

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
