"""DOCX (ECMA-376, part 1, section 17): paragraphs are sentences, and runs that look unlike most are elements in them.

Paragraphs that are translated are written anew; all else in their parts, and all other files in the archive, stay.
"""

import io
import lzma
import re
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from functools import partial
from itertools import groupby
from zipfile import BadZipFile, ZipFile

from lxml import etree

from nmt.errors import NMTError, one_line
from nmt.files import LARGE
from nmt.plugins.documents.document import Document, Translated
from nmt.plugins.documents.markup import Token
from nmt.plugins.documents.xml import Element, Unit, name_of, parse_xml, serialized, text_token

PART = re.compile(r"word/(?:document|header|footer|footnotes|endnotes)\d*\.xml")
UNSEEN = frozenset(("lang", "noProof"))
"""Properties of a run that do not show."""
AROUND = frozenset(("hyperlink", "ins", "moveTo", "smartTag", "customXml", "sdt", "dir", "bdo"))
DROPPED = frozenset(("rPr", "proofErr", "lastRenderedPageBreak", "softHyphen"))
"""Properties, which are read apart, and notes about the old text."""
BREAKS = frozenset(("br", "cr", "tab", "ptab", "drawing", "pict", "object", "oMath", "oMathPara"))
RANGE = re.compile(r"(\w+)(Start|End)")
UNREADABLE = (BadZipFile, EOFError, LookupError, OSError, RuntimeError, ValueError, lzma.LZMAError, zlib.error)
PRESERVE = {"{http://www.w3.org/XML/1998/namespace}space": "preserve"}


class Reader:
    """Collects the sentences of a part: the runs in a row of a paragraph, with what stands between them."""

    def __init__(self, root: Element) -> None:
        self.w = f"{{{etree.QName(root).namespace}}}"
        """The namespace of WordprocessingML, which has two."""
        self.units = list[tuple[Unit, Callable[[Element], None]]]()
        self.looks, self.properties = dict[str, str](), dict[str, Element | None]()
        """The sentences and what writes them; tags of references to runs, by look; their properties, by tag."""
        self.begin()
        for paragraph in root.iter(f"{self.w}p"):
            self.read(list(paragraph))
            self.end()

    def begin(self) -> None:
        """Begin a sentence: its tokens with the look of their runs, None outside of runs; its elements."""
        self.unit, self.pieces, self.covered = Unit(), list[tuple[str | None, Token]](), list[Element]()

    def end(self) -> None:
        """Make a sentence of the tokens so far."""
        sizes = Counter[str]()
        for look, token in self.pieces:
            if look is not None:
                sizes[look] += len(token.text)
        usual = max(sizes, key=sizes.__getitem__, default="")
        for look, group in groupby(self.pieces, lambda piece: piece[0]):
            tokens, tag = [token for _, token in group], "" if look is None else self.looks[look]
            if look not in (None, usual):
                opening = Token("open", f"<{tag}>", name="r", optional=True)
                tokens = [opening, *tokens, Token("close", f"</{tag}>", name="r", optional=True)]
            self.unit.tokens += tokens
        if self.unit.content().lines:
            self.units.append((self.unit, partial(self.write, self.unit, self.covered, self.looks[usual])))
        self.begin()

    def read(self, elements: Sequence[Element]) -> None:
        """Read the elements of a paragraph, or of one around runs in it."""
        kinds = [[c.get(f"{self.w}fldCharType", "") for c in e.iter(f"{self.w}fldChar")] for e in elements]
        ends, begun, at = dict[int, int](), list[int](), 0
        for index, kind in ((index, kind) for index, inside in enumerate(kinds) for kind in inside):
            if kind == "begin":
                begun.append(index)
            elif kind == "end" and begun:
                ends[begun.pop()] = index
        while at < len(elements):
            is_run, last = name_of(elements[at]) == "r", ends.get(at, at)
            if at in ends and (is_run or last > at):
                self.read_field(elements[at : last + 1], kinds[at : last + 1])
            else:  # a field that goes on in other paragraphs is between sentences
                broken = bool(kinds[at]) if is_run else kinds[at].count("begin") != kinds[at].count("end")
                self.read_element(elements[at], broken)
            at = last + 1

    def note(self, token: Token, elements: Sequence[Element], look: str | None = None) -> None:
        self.pieces.append((look, token))
        self.covered += elements

    def read_field(self, runs: Sequence[Element], kinds: Sequence[list[str]]) -> None:
        """Read what is from the beginning of a field to its end: an element around what it shows, or a copy."""
        middle = next((index for index, inside in enumerate(kinds) if inside == ["separate"]), 0)
        if 0 < middle < len(runs) - 2 and sum(map(len, kinds)) == 3:
            self.note(Token("open", self.unit.alone(*runs[: middle + 1]), name="field"), runs[: middle + 1])
            self.read(runs[middle + 1 : -1])
            self.note(Token("close", self.unit.alone(runs[-1]), name="field"), runs[-1:])
        else:
            shown = "".join(text.text or "" for run in runs for text in run.iter(f"{self.w}t"))
            self.note(Token("copy", self.unit.alone(*runs), shown, breaks=not shown), runs)

    def read_element(self, element: Element, broken: bool) -> None:
        """Read an element of a paragraph; a broken one is between sentences, but not what is in it."""
        name, content = name_of(element), element.find(f"{self.w}sdtContent")
        inside = list(element if content is None else content)
        if broken or name == "pPr" or element.find(f".//{self.w}p") is not None:
            self.end()
            if name in AROUND:
                self.read(inside)
                self.end()
        elif name == "r":
            self.read_run(element)
        elif name in AROUND:
            opening, closing = self.unit.around(element)
            self.note(Token("open", opening, name=name), [element])
            self.read([element for element in inside if not name_of(element).endswith("Pr")])
            self.note(Token("close", closing, name=name), [])
        elif name not in DROPPED:
            token = Token("point", self.unit.alone(element), breaks=name in BREAKS)
            if ends := RANGE.fullmatch(name):  # as of a bookmark, or of a comment
                token.kind = "open" if ends[2] == "Start" else "close"
                token.name = ends[1] + element.get(f"{self.w}id", "")
            self.note(token, [element])

    def read_run(self, run: Element) -> None:
        properties = run.find(f"{self.w}rPr")
        shown = [] if properties is None else [p for p in properties if name_of(p) not in UNSEEN]
        look = str([(p.tag, sorted(p.attrib.items())) for top in shown for p in top.iter()])
        self.properties.setdefault(self.looks.setdefault(look, f"r{len(self.looks)}"), properties)
        for inside in run:
            name = name_of(inside)
            if name == "t":
                self.note(text_token(inside.text or ""), [run], look)
            elif name not in DROPPED:
                self.note(Token("point", self.unit.alone(inside), breaks=name in BREAKS), [run], look)

    def write(self, unit: Unit, covered: Sequence[Element], usual: str, references: Element) -> None:
        """Put runs with a translation in the place of those of a sentence."""
        parent = covered[0].getparent()
        places = [parent.index(element) for element in covered if element.getparent() is parent]
        new = etree.Element(parent.tag)
        self.build(unit, new, references, self.properties[usual])
        parent[places[0] : places[-1] + 1] = list(new)

    def build(self, unit: Unit, parent: Element, references: Element, properties: Element | None) -> None:
        """Add the elements that references stand for, and their text in runs with these properties."""

        def add_run(content: Element) -> None:
            run = etree.SubElement(parent, f"{self.w}r")
            run.extend([content] if properties is None else [deepcopy(properties), content])

        def add_text(text: str | None) -> None:
            if text:
                content = etree.Element(f"{self.w}t", PRESERVE)
                content.text = text
                add_run(content)

        add_text(references.text)
        for reference in references:
            if reference.tag in self.properties:
                self.build(unit, parent, reference, self.properties[reference.tag])
            elif reference.tag.startswith("p"):
                element = unit.element_of(reference)
                is_inside = name_of(element.getparent()) == "r"
                (add_run if is_inside else parent.append)(deepcopy(element))
            else:
                element = unit.element_of(reference)
                new = etree.SubElement(parent, element.tag, element.attrib)
                new.extend(deepcopy(inside) for inside in element if name_of(inside).endswith("Pr"))
                if element.find(f"{self.w}sdtContent") is not None:
                    new = etree.SubElement(new, f"{self.w}sdtContent")
                self.build(unit, new, reference, properties)
            add_text(reference.tail)


class Docx(Document):
    """An archive with parts that are translated."""

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.content = content
        try:
            with ZipFile(io.BytesIO(content)) as archive:
                self.files, self.comment = archive.infolist(), archive.comment
                if (size := sum(file.file_size for file in self.files)) > LARGE:
                    raise NMTError(f"{size:,} bytes when unpacked, of {LARGE:,} that a document may have")
                self.contents = list(map(archive.read, self.files))
        except UNREADABLE as error:  # zipfile raises all of these
            raise NMTError(f"no DOCX, or damaged or encrypted ({one_line(error)})") from error
        trees = {n: parse_xml(self.contents[n]) for n, file in enumerate(self.files) if PART.fullmatch(file.filename)}
        if not any(tree.find(".//{*}body") is not None for tree in trees.values()):
            raise NMTError("no word/document.xml with text in it: save it as DOCX")
        units = {number: Reader(tree.getroot()).units for number, tree in trees.items()}
        self.counts = {number: len(of_part) for number, of_part in units.items()}
        self.lines = [unit.content().lines[0] for of_part in units.values() for unit, _ in of_part]

    def join(self, translations: Sequence[Translated]) -> bytes:
        left, contents = iter(translations), self.contents.copy()
        for number in self.counts:
            tree = parse_xml(contents[number])
            results = [(*unit.render(next(left)), write) for unit, write in Reader(tree.getroot()).units]
            for references, is_new, write in results:
                if is_new:
                    write(references)
            if any(is_new for _, is_new, _ in results):
                contents[number] = serialized(tree, contents[number])
        if contents == self.contents:
            return self.content
        written = io.BytesIO()
        with ZipFile(written, "w") as archive:
            archive.comment = self.comment
            for file, content in zip(self.files, contents, strict=True):
                archive.writestr(copy(file), content)
        return written.getvalue()
