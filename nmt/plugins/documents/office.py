"""Office Open XML (ECMA-376): paragraphs and cells are sentences; runs with unusual formatting are elements."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from nmt.plugins.documents.document import MarkedUp, Part, Spliced, Translated
from nmt.plugins.documents.markup import Kind, Sentence, Token
from nmt.plugins.documents.xml import Element, escaped, in_order, parse_xml

# Formatting without a visible effect, and no formatting.
UNSEEN = re.compile(r'<(?:\w+:)?(?:lang|noProof)\b[^>]*>|\s(?:lang|altLang|noProof|dirty|err|smtClean)="[^"]*"')
EMPTY = re.compile(r"<[^\s<>]*/>|<([^\s<>]*)></\1>")
AROUND = frozenset(("hyperlink", "ins", "moveTo", "smartTag"))
DROPPED = frozenset(("rPr", "proofErr", "lastRenderedPageBreak", "softHyphen", "rPh"))  # also the reading of a cell
BREAKS = frozenset(("br", "cr", "tab", "ptab", "drawing", "pict", "object", "oMath", "oMathPara"))
SPACE = re.compile(r"((?:_x000[9AaDd]_|[\t\r\n])+)")  # breaks lines in cells, and aligns words on slides
MARK = "\0"  # stands before and after markup in a sentence
INSIDE, FORMAT = "\1", "\2"  # markup inside a run; the formatting of the text that follows


def markup(kind: Kind, raw: str, **facts: Any) -> Token:
    return Token(kind, f"{MARK}{raw}{MARK}", **facts)


class InRuns(Part):
    """A sentence in runs, or in a cell without formatting, which has only text; `usual` are the properties of a run."""

    def __init__(self, covered: Sequence[Element], tokens: Sequence[Token], prefix: str, text: str, usual: str) -> None:
        self.content = Spliced("".join(token.raw for token in tokens), [Sentence(0, tokens, escaped)])
        super().__init__(covered[0].begin, max(element.end for element in covered), self.content.lines)
        self.source, self.text, self.usual = covered[0].file[self.begin : self.end], text, usual
        self.run = "" if covered[0].name == "t" else f"{prefix}r"

    def render(self, translations: Sequence[Translated]) -> str:
        content = self.content.render(translations)
        if content == self.content.text:
            return self.source
        properties, result = self.usual, ""
        for number, piece in enumerate(content.split(MARK)):
            if number % 2 and piece.startswith(FORMAT):
                properties = piece[1:]
            elif number % 2 and not piece.startswith(INSIDE):
                result += piece
            elif piece:
                text = piece[1:] if number % 2 else f"<{self.text}>{piece}</{self.text.split()[0]}>"
                result += f"<{self.run}>{properties}{text}</{self.run}>" if self.run else text
        return result


class Runs(MarkedUp):
    """A part of a DOCX, PPTX or XLSX file."""

    def parts(self, text: str, target: str) -> list[Part]:
        self.sentences, self.properties = list[Part](), dict[str, str]()
        self.pieces, self.covered = list[tuple[str | None, Token]](), list[Element]()
        self.slides = re.findall(r'\sxmlns:?(\w*)="[^"]*/drawingml/', text)
        for paragraph in parse_xml(text).iter():
            if paragraph.name in ("p", "si", "is"):
                self.prefix = paragraph.tag.removesuffix(paragraph.name)  # several are possible in one file
                self.read(paragraph.children)
                self.end()
        return in_order(self.sentences)

    def end(self) -> None:
        """End a sentence, and begin the next one."""
        sizes = Counter(look for look, token in self.pieces if look is not None for _ in token.text)
        usual, tokens = max(sizes, key=sizes.__getitem__, default=""), list[Token]()
        for look, group in groupby(self.pieces, lambda piece: piece[0]):
            inside = [token for _, token in group]
            if look is not None and look != usual:
                facts: dict[str, Any] = {"name": "r", "optional": "hlinkClick" not in look}
                inside.insert(0, markup("open", FORMAT + self.properties[look], **facts))
                inside.append(markup("close", FORMAT + self.properties.get(usual, ""), **facts))
            tokens += inside
        if sizes:
            text = f"{self.prefix}t" if self.prefix[:-1] in self.slides else f'{self.prefix}t xml:space="preserve"'
            sentence = InRuns(self.covered, tokens, self.prefix, text, self.properties[usual])
            self.sentences.append(sentence)
        self.pieces, self.covered = [], []

    def joins(self, element: Element) -> bool:
        """True if an element belongs inside a sentence: a run, a link or similar, or anything without text."""
        if element.name in AROUND:
            return all(map(self.joins, element.children))
        if element.name in ("t", "fld"):  # the text of a cell without runs, or a field of a slide
            return True
        text = "" if element.name == "r" else f"{self.prefix}t"
        return not any(inside.name in ("p", "fldChar") or inside.tag == text for inside in element.iter() if inside.tag)

    def read(self, elements: Iterable[Element]) -> None:
        """Read the content of a paragraph or of an element that wraps runs. Field characters end a sentence."""
        for element in elements:
            name = element.name
            if name in DROPPED or name.endswith("Pr"):
                self.covered += [element] if name == "rPh" and self.covered else []
            elif not self.joins(element):
                self.end()
                if name not in ("r", "p"):
                    self.read(element.children)
                    self.end()
            elif name in ("r", "t"):
                self.read_run(element, [element] if name == "t" else element.children)
            elif name in AROUND:
                properties = "".join(child.raw for child in element.children if child.name.endswith("Pr"))
                self.note(markup("open", element.file[element.begin : element.inside] + properties, name=name), element)
                self.read(element.children)
                self.note(markup("close", f"</{element.tag}>", name=name))
            else:
                self.note(markup("point", element.raw, breaks=name in BREAKS), element)

    def note(self, token: Token, *elements: Element, look: str | None = None) -> None:
        self.pieces.append((look, token))
        self.covered += elements

    def read_run(self, run: Element, content: Iterable[Element]) -> None:
        properties = "".join(child.raw for child in run.children if child.name == "rPr")
        look = UNSEEN.sub("", properties)
        look = "" if EMPTY.fullmatch(look) else look
        self.properties.setdefault(look, properties)
        for part in content:
            for number, text in enumerate(SPACE.split(part.text) if part.name == "t" else ()):
                is_space = number % 2 > 0
                token = Token("point" if is_space else "text", escaped(text), "" if is_space else text, breaks=is_space)
                self.note(token, run, look=look)
            if part.name not in DROPPED | {"t"}:
                self.note(markup("point", INSIDE + part.raw, breaks=part.name in BREAKS), run, look=look)
