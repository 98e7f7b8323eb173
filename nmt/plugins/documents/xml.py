"""Sentences in XML: OpenDocument, Office Open XML (ECMA-376), and the titles and contents of EPUB."""

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from html import escape, unescape
from itertools import chain, groupby
from typing import Any

from nmt.plugins.documents.directions import Turn, turn_of
from nmt.plugins.documents.document import MarkedUp, Part, Spliced, Translated
from nmt.plugins.documents.elements import INVALID, Element, escaped, parse_xml, text_of
from nmt.plugins.documents.languages import Change, change_of, declared
from nmt.plugins.documents.markup import Kind, Sentence, Token
from nmt.plugins.documents.nested import INSIDE, MARK, Paragraph, marked, paragraph_parts
from nmt.plugins.documents.scripts import join_scripts
from nmt.text import separates_words

# AROUND: elements whose text belongs to the sentence around them. BREAKS: elements that separate words.
AROUND = frozenset("g mrk span a meta content-control text hyperlink ins moveTo smartTag".split())  # noqa: SIM905
RUBY = frozenset(("ruby", "ruby-base"))  # of OpenDocument
STRING = re.compile(r"""string-value=(?:"([^"]*)"|'([^']*)')""")
BREAKS = frozenset("s tab line-break frame br cr ptab drawing pict object oMath oMathPara".split())  # noqa: SIM905
UNREAD = frozenset(("annotation", "tracked-changes"))
# Marks a cell that has no text to translate.
VALUE = re.compile(r""":formula=|office:value-type=["'](?!string["'])""")
CODED = frozenset("mrk g x bpt bx ept ex ph it".split())  # noqa: SIM905
CODES: dict[str, Kind] = {
    "bpt": "open",
    "bx": "open",
    "ept": "close",
    "ex": "close",
    "ph": "point",
    "it": "point",
}
# Office Open XML
UNSEEN = re.compile(
    r"<(?:\w+:)?(?:lang|noProof)\b[^>]*>"
    r"""|\s(?:lang|altLang|noProof|dirty|err|smtClean)=(?:"[^"]*"|'[^']*')"""
)
EMPTY = re.compile(r"<[^\s<>]*/>|<([^\s<>]*)></\1>")
# The name of a style may tell, too.
SCRIPT = re.compile(
    r"""vertAlign\b[^<>]*["'](?:superscript|(?P<sub>subscript))["']"""
    r"""|\bbaseline=["'](?!-?0+%?["'])(?P<minus>-)?"""
    r"""|rStyle\b[^<>]*["'][^<>"']*(?i:superscript|(?P<lowers>subscript))"""
)
# Texts in a chart: names of series, and categories, as the chart shows them.
CACHES = frozenset(("strCache", "strLit", "multiLvlStrCache", "strDim"))
DROPPED = frozenset(
    ("rPr", "proofErr", "lastRenderedPageBreak", "softHyphen", "rubyPr", "rt", "rPh")
)  # also readings
SPACE = re.compile(
    r"((?:_x000[9AaDd]_|[\t\r\n])+)"
)  # line breaks in cells; tabs that align words on slides
SHAPES = "shape rect roundrect oval line polyline arc curve image group".split()  # noqa: SIM905
# Attributes that people read: alternative texts, watermarks, and what a pointer over a link shows.
READ = {
    "docPr": ("title", "descr"),
    "cNvPr": ("title", "descr"),
    "tblCaption": ("val",),
    "tblDescription": ("val",),
    "hyperlink": ("tooltip",),
    "hlinkClick": ("tooltip",),
    "textpath": ("string",),  # of a watermark
    **dict.fromkeys(SHAPES, ("alt",)),
}
LINE_BREAKS = re.compile(r"((?:&#(?:[xX]0*[aAdD]|0*1[03]);)+)")
FORMAT = "\2"  # formatting of the following text


def text_token(raw: str) -> Token:
    return Token("text", raw, text_of(raw))


def styles_of_scripts(elements: Iterable[Element]) -> Iterator[tuple[str, str]]:
    """The names of the styles of OpenDocument that raise or lower text, and "sup" or "sub" for each."""
    for style in elements:
        if style.tag != "style:style":
            continue
        for properties in style.children:
            position = properties.attributes.get("text-position", "").split()
            if (
                position
                and re.fullmatch(r"super|sub|-?\d+(\.\d+)?%", position[0])
                and position[0] not in ("0%", "-0%")
            ):
                yield (
                    style.attributes.get("name", ""),
                    "sub" if position[0].startswith(("sub", "-")) else "sup",
                )


class Flow(MarkedUp):
    """A part of an OpenDocument file, or an EPUB's table of contents; formatting is inside of paragraphs."""

    paragraphs = frozenset(
        """p h navLabel docTitle svg:title svg:desc
        presentation:header-decl presentation:footer-decl""".split()  # noqa: SIM905
    )

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.change = change_of(source, target)
        self.turn = turn_of(source, target)
        self.scripts = dict[str, str]()  # style -> "sup" or "sub"
        super().__init__(content, source, target)

    def parts(self, text: str, target: str) -> Sequence[Part]:
        elements = parse_xml(text)
        self.scripts = dict(styles_of_scripts(elements))
        return [*self.declarations(elements), *self.sentences(elements[0])]

    def declarations(self, elements: Sequence[Element]) -> list[Part]:
        """What changes in the languages and directions that the file declares."""
        return declared(elements, self.change, self.turn)

    def script_of(self, span: Element) -> str | None:
        """Whether a span raises ("sup") or lowers ("sub") its text."""
        return self.scripts.get(span.attributes.get("style-name", "")) if self.scripts else None

    def sentences(self, element: Element) -> list[Part]:
        if not {element.name, element.tag}.isdisjoint(self.paragraphs):
            notes = list[Spliced]()
            tokens = self.tokens_of(element, notes)
            return paragraph_parts(
                Paragraph(element.inside, join_scripts(tokens), notes, escaped), notes
            )
        parts, opening = list[Part](), (element.file, element.begin, element.inside)
        if element.name in UNREAD or (element.name == "table-cell" and VALUE.search(*opening)):
            return parts
        if element.name == "table-cell" and (value := STRING.search(*opening)):
            number = value.lastindex or 1
            parts.append(
                Sentence(value.start(number), [text_token(value[number])], escape)
            )  # overrides the cell's text
        return [*parts, *chain.from_iterable(map(self.sentences, element.children))]

    def text_tokens(self, raw: str) -> list[Token]:
        return [text_token(raw)]

    def tokens_of(self, element: Element, notes: list[Spliced] | None = None) -> list[Token]:
        """The tokens of a sentence; with `notes`, marks elements with other sentences and adds them to it."""
        tokens, at = list[Token](), element.inside
        for child in element.children:
            tokens += self.text_tokens(element.file[at : child.begin])
            at, name = child.end, child.name
            attributes = child.attributes if name in CODED else {}
            separates = name in CODED and separates_words(
                code_of(child), attributes.get("ctype", "")
            )
            if attributes.get("translate") == "no" or attributes.get("mtype") == "protected":
                tokens.append(Token("copy" if child.text else "point", child.raw, child.text))
            elif name in AROUND | RUBY and child.inside < child.outside:
                opening = element.file[child.begin : child.inside]
                is_span = name == "span"
                script = self.script_of(child) if is_span else None
                name = script or name
                tag = Token(
                    "open",
                    opening,
                    name=name,
                    optional=is_span,
                    is_script=script is not None,
                    is_dropped=name in RUBY,
                )
                tokens += spaced(tag, separates)
                tokens += self.tokens_of(child, notes)
                raw = element.file[child.outside : at]
                closing = Token("close", raw, name=name, is_dropped=name in RUBY)
                tokens += spaced(closing, separates)
            elif (
                name in CODES
            ):  # code from the original file; opening and closing codes share an id
                shared = attributes.get("rid") or attributes.get("id", "")
                tokens += spaced(Token(CODES[name], child.raw, name=shared), separates)
            elif name == "ruby-text":  # a reading, in letters that people pronounce
                tokens.append(Token("point", child.raw, is_dropped=True))
            elif not child.children and child.text:  # a field, such as a page number
                tokens.append(Token("copy", child.raw, child.text))
            else:
                raw, parts = child.raw, [] if notes is None else self.sentences(child)
                if notes is not None and parts:
                    notes.append(Spliced(raw, parts, child.begin))
                    raw = marked(notes[-1])
                tokens.append(Token("point", raw, breaks=separates or name in BREAKS))
        return [*tokens, *self.text_tokens(element.file[at : element.outside])]


def code_of(element: Element) -> str:
    """What a code of XLIFF stands for in the original file."""
    return element.attributes.get("equiv-text") or (element.text if element.name in CODES else "")


def spaced(token: Token, separates: bool) -> list[Token]:
    """A tag that perhaps separates words, for the model only: tokens without `raw` are not written."""
    if not separates:
        return [token]
    if token.kind == "point":
        return [replace(token, breaks=True)]
    space = Token("text", "", " ")
    return [space, token, space]


def markup(kind: Kind, raw: str, **facts: Any) -> Token:
    return Token(kind, f"{MARK}{raw}{MARK}", **facts)


class InRuns(Part):
    """A sentence in runs, or in a cell without formatting, which has only text; `usual` are the properties of a run."""

    def __init__(
        self,
        covered: Sequence[Element],
        tokens: Sequence[Token],
        prefix: str,
        text: str,
        usual: str,
    ) -> None:
        self.content = Spliced(
            "".join(token.raw for token in tokens), [Sentence(0, join_scripts(tokens), escaped)]
        )
        super().__init__(
            covered[0].begin, max(element.end for element in covered), self.content.lines
        )
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
        declarations = declared(elements, change, turn)
        attributes = chain.from_iterable(map(attribute_parts, elements))
        self.attributes = Spliced(text, [*declarations, *attributes])
        self.content = Spliced(text, SentencesInRuns(text, elements).sentences)
        super().__init__(0, len(text), self.attributes.lines + self.content.lines)

    def render(self, translations: Sequence[Translated]) -> str:
        left = iter(translations)
        text = self.attributes.render(left)
        if text == self.content.text:
            return self.content.render(left)
        # Attributes may be inside of sentences.
        return Spliced(text, SentencesInRuns(text, parse_xml(text)).sentences).render(left)


def attribute_parts(element: Element) -> Iterator[Part]:
    """The alternative texts and similar attributes of an element."""
    if element.name in READ:
        spans = element.spans
        for name in READ[element.name]:
            if name in spans:
                begin, end = spans[name]
                yield Sentence(begin, attribute_tokens(element.file[begin:end]), attribute_escaped)


def attribute_tokens(raw: str) -> list[Token]:
    """The text of an attribute, in which references stand for line breaks."""
    pieces = enumerate(LINE_BREAKS.split(raw))
    return [
        Token("point", piece, breaks=True) if number % 2 else Token("text", piece, unescape(piece))
        for number, piece in pieces
    ]


def attribute_escaped(text: str) -> str:
    return escape(INVALID.sub("", text))


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


class SentencesInRuns:
    """Finds the `sentences` of a part."""

    def __init__(self, text: str, elements: Sequence[Element]) -> None:
        self.sentences, self.properties = list[Part](), dict[str, str]()
        self.pieces, self.covered = list[tuple[str | None, Token]](), list[Element]()
        self.places, self.joining = defaultdict[str, list[int]](list), dict[tuple[str, int], bool]()
        self.slides = re.findall(r'\sxmlns:?(\w*)="[^"]*/drawingml/', text)
        for element in elements:
            self.places[element.name if element.name in ("p", "fldChar") else element.tag].append(
                element.begin
            )
        for paragraph in elements:
            if paragraph.name in ("p", "si", "is"):
                self.prefix = paragraph.tag.removesuffix(paragraph.name)  # a file may use several
                self.read(paragraph.children)
                self.end()
        for value in chain.from_iterable(map(texts_of_chart, elements)):
            raw = value.file[value.inside : value.outside]
            self.sentences.append(Sentence(value.inside, [text_token(raw)], escaped))

    def end(self) -> None:
        """End a sentence, and begin the next one."""
        sizes = Counter(look for look, token in self.pieces if look is not None for _ in token.text)
        usual, tokens = max(sizes, key=sizes.__getitem__, default=""), list[Token]()
        for look, group in groupby(self.pieces, lambda piece: piece[0]):
            inside = [token for _, token in group]
            if look is not None and look != usual:
                facts: dict[str, Any] = {"name": "r", "optional": "hlinkClick" not in look}
                script = SCRIPT.search(look)
                if script:
                    lowers = script["sub"] or script["minus"] or script["lowers"]
                    facts["name"] = "sub" if lowers else "sup"
                opening = markup(
                    "open", FORMAT + self.properties[look], is_script=script is not None, **facts
                )
                inside.insert(0, opening)
                inside.append(markup("close", FORMAT + self.properties.get(usual, ""), **facts))
            tokens += inside
        if sizes:
            text = (
                f"{self.prefix}t"
                if self.prefix[:-1] in self.slides
                else f'{self.prefix}t xml:space="preserve"'
            )
            self.sentences.append(
                InRuns(self.covered, tokens, self.prefix, text, self.properties[usual])
            )
        self.pieces, self.covered = [], []

    def joins(self, element: Element) -> bool:
        """True if an element belongs inside a sentence: a run, a link or similar, or anything without text."""
        if element.name in ("t", "fld"):  # the text of a cell without runs, or a field of a slide
            return True
        if element.name not in AROUND:
            places = map(
                self.places.__getitem__,
                ["p", "fldChar", f"{self.prefix}t"][: 3 - (element.name == "r")],
            )
            return all(
                bisect_left(begins, element.begin) == bisect_left(begins, element.end)
                for begins in places
            )
        key = self.prefix, element.begin
        if key not in self.joining:  # nested elements are asked again and again
            self.joining[key] = all(map(self.joins, element.children))
        return self.joining[key]

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
            elif name in AROUND and element.inside < element.end:
                properties = "".join(
                    child.raw for child in element.children if child.name.endswith("Pr")
                )
                self.note(
                    markup(
                        "open", element.file[element.begin : element.inside] + properties, name=name
                    ),
                    element,
                )
                self.read(element.children)
                self.note(markup("close", f"</{element.tag}>", name=name))
            else:
                self.note(markup("point", element.raw, breaks=name in BREAKS), element)

    def note(self, token: Token, *elements: Element, look: str | None = None) -> None:
        self.pieces.append((look, token))
        self.covered += elements

    def read_run(
        self, run: Element, content: Iterable[Element], outer: Element | None = None
    ) -> None:
        properties = "".join(child.raw for child in run.children if child.name == "rPr")
        look = UNSEEN.sub("", properties)
        look = "" if EMPTY.fullmatch(look) else look
        self.properties.setdefault(look, properties)
        for part in content:
            for number, text in enumerate(
                SPACE.split(part.text) if part.name in ("t", "noBreakHyphen") else ()
            ):
                is_space = number % 2 > 0
                token = Token(
                    "point" if is_space else "text",
                    escaped(text),
                    "" if is_space else text,
                    breaks=is_space,
                )
                self.note(token, outer or run, look=look)
            if part.name in ("ruby", "rubyBase", "r"):
                self.read_run(part, part.children, outer or run)
            elif part.name not in DROPPED | {"t", "noBreakHyphen"}:
                self.note(
                    markup("point", INSIDE + part.raw, breaks=part.name in BREAKS),
                    outer or run,
                    look=look,
                )
