"""Sentences in XML: XLIFF 1.2, OpenDocument, Office Open XML (ECMA-376), and the titles and contents of EPUB."""

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape, unescape
from itertools import chain, groupby
from typing import Any
from xml.parsers import expat

from nmt.config import NMTError, require
from nmt.plugins.documents.document import MarkedUp, Part, Spliced, Translated
from nmt.plugins.documents.html import ATTRIBUTE
from nmt.plugins.documents.markup import Kind, Sentence, Token
from nmt.plugins.documents.scripts import join_scripts

DEEPEST = 256  # levels of elements
INVALID = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
CDATA = "<![CDATA["
QUOTED = r"""[^"'<>]++|"[^"]*+"|'[^']*+'"""
UNPARSED = r"<!--.*?-->|<\?.*?\?>"
# The markup of a well-formed file; unlike in HTML, names may begin with any letter, and declarations contain others.
MARKUP = re.compile(
    rf"{UNPARSED}|<!\[CDATA\[.*?]]>|<!(?>(?:{UNPARSED}|<!(?>(?:{QUOTED})*)>|{QUOTED})*)>"
    rf"|<(?P<end>/?)(?P<name>[^\s/>]++)(?>(?:{QUOTED})*)>",
    re.DOTALL,
)
PARAGRAPHS = frozenset(("p", "h", "navLabel", "docTitle", "dc:title"))
# AROUND: elements whose text belongs to the sentence around them. BREAKS: elements that separate words.
AROUND = frozenset("g mrk span a meta content-control text hyperlink ins moveTo smartTag".split())  # noqa: SIM905
STATE = re.compile(r"""(?<!\s)(?:\s++state\s*=\s*("[^"]*"|'[^']*')|\s*+/?>$)""")
STRING = re.compile(r'string-value="([^"]*)"')
OPEN = ("new", "needs-translation")  # states of targets that nmt replaces
BREAKS = frozenset("s tab line-break frame br cr ptab drawing pict object oMath oMathPara".split())  # noqa: SIM905
UNREAD = frozenset(("annotation", "tracked-changes"))
VALUE = re.compile(r':formula=|office:value-type="(?!string")')  # marks a cell that has no text to translate
CODES: dict[str, Kind] = {"bpt": "open", "bx": "open", "ept": "close", "ex": "close", "ph": "point", "it": "point"}
# Office Open XML
UNSEEN = re.compile(r'<(?:\w+:)?(?:lang|noProof)\b[^>]*>|\s(?:lang|altLang|noProof|dirty|err|smtClean)="[^"]*"')
EMPTY = re.compile(r"<[^\s<>]*/>|<([^\s<>]*)></\1>")
SCRIPT = re.compile(r'vertAlign\b[^<>]*"(?:superscript|(?P<sub>subscript))"|\bbaseline="(?!-?0+%?")(?P<minus>-)?')
DROPPED = frozenset(("rPr", "proofErr", "lastRenderedPageBreak", "softHyphen", "rubyPr", "rt", "rPh"))  # also readings
SPACE = re.compile(r"((?:_x000[9AaDd]_|[\t\r\n])+)")  # line breaks in cells; tabs that align words on slides
MARK = "\0"  # encloses markup in a sentence
INSIDE, FORMAT = "\1", "\2"  # INSIDE: markup inside a run. FORMAT: formatting of the following text.
NOTE = re.compile(f"{MARK}(\\d+){INSIDE}*")  # a note's offset in the file, padded to the length of the note


@dataclass(slots=True)
class Element:
    """An element or, without a tag, a comment or processing instruction; the offsets are those of its two tags."""

    file: str
    tag: str
    name: str  # without the prefix of its tag
    begin: int
    inside: int
    outside: int
    end: int
    children: list["Element"] = field(default_factory=list)

    @property
    def raw(self) -> str:
        return self.file[self.begin : self.end]

    @property
    def text(self) -> str:
        return "-" if self.name == "noBreakHyphen" else text_of(self.file[self.inside : self.outside])

    @property
    def attributes(self) -> dict[str, str]:
        matches = ATTRIBUTE.finditer(self.file, self.begin + 1 + len(self.tag), self.inside)
        return {match["name"].rpartition(":")[2]: unescape(match["value"][1:-1]) for match in matches if match["value"]}


def parse_xml(text: str) -> list[Element]:
    """The document and all its elements, in order; NMTError if it is malformed or declares entities, which can grow."""
    parser = expat.ParserCreate("utf-8")  # regardless of what the file declares
    parser.EntityDeclHandler = refuse_entity
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        raise NMTError(f"line {error.lineno}: not well-formed XML ({expat.ErrorString(error.code)})") from error
    elements = [Element(text, "", "", 0, 0, len(text), len(text))]
    opened = elements[:]
    for markup in MARKUP.finditer(text):
        begin, end = markup.span()
        if markup["end"]:
            element = opened.pop()
            element.outside, element.end = begin, end
        elif not text.startswith(CDATA, begin):
            tag = markup["name"] or ""
            element = Element(text, tag, tag.rpartition(":")[2], begin, end, end, end)
            opened[-1].children.append(element)
            elements.append(element)
            if tag and text[end - 2] != "/":
                opened.append(element)
                require(len(opened) <= DEEPEST, f"elements are nested more than {DEEPEST} levels deep")
    return elements


def refuse_entity(name: str, *_: object) -> None:
    raise NMTError(f"declares the entity {name[:40]!r}: replace the entity with its text")


def text_of(raw: str) -> str:
    return unescape(MARKUP.sub(lambda tag: escape(tag[0][9:-3]) if tag[0].startswith(CDATA) else "", raw))


def escaped(text: str) -> str:
    return escape(INVALID.sub("", text), quote=False)


def text_token(raw: str) -> Token:
    return Token("text", raw, text_of(raw))


class Paragraph(Sentence):
    """A sentence that may contain elements with other sentences, such as footnotes."""

    def __init__(self, begin: int, tokens: Sequence[Token], notes: Sequence[Spliced]) -> None:
        super().__init__(begin, join_scripts(tokens), escaped)
        self.notes = {note.begin: note for note in notes if self.lines and self.begin <= note.begin < self.end}
        self.lines += (line for note in self.notes.values() for line in note.lines)

    def render(self, translations: Sequence[Translated]) -> str:
        left = iter(translations[1:])
        notes = {begin: note.render(left) for begin, note in self.notes.items()}
        return NOTE.sub(lambda mark: notes[int(mark[1])], super().render(translations[:1]))


def styles_of_scripts(elements: Iterable[Element]) -> Iterator[tuple[str, str]]:
    """The names of the styles of OpenDocument that raise or lower text, and "sup" or "sub" for each."""
    for style in elements:
        if style.tag != "style:style":
            continue
        for properties in style.children:
            position = properties.attributes.get("text-position", "").split()
            if position and re.fullmatch(r"super|sub|-?\d+(\.\d+)?%", position[0]) and position[0] not in ("0%", "-0%"):
                yield style.attributes.get("name", ""), "sub" if position[0].startswith(("sub", "-")) else "sup"


class Flow(MarkedUp):
    """A part of an OpenDocument file, or an EPUB's package or table of contents; formatting is inside of paragraphs."""

    def parts(self, text: str, target: str) -> Sequence[Part]:
        self.target = target.replace("_", "-")
        elements = parse_xml(text)
        self.scripts = dict(styles_of_scripts(elements))
        return self.sentences(elements[0])

    def sentences(self, element: Element) -> list[Part]:
        if not {element.name, element.tag}.isdisjoint(PARAGRAPHS):
            notes = list[Spliced]()
            sentence = Paragraph(element.inside, self.tokens_of(element, notes), notes)
            outside = [part for note in notes if note.begin not in sentence.notes for part in note.parts]
            return [sentence, *outside] if sentence.lines else outside
        if element.tag == "dc:language" and self.target:
            return [Part(element.inside, element.outside, otherwise=self.target)]
        parts, opening = list[Part](), (element.file, element.begin, element.inside)
        if element.name in UNREAD or (element.name == "table-cell" and VALUE.search(*opening)):
            return parts
        if element.name == "table-cell" and (value := STRING.search(*opening)):
            parts.append(Sentence(value.start(1), [text_token(value[1])], escape))  # overrides the cell's text
        return [*parts, *chain.from_iterable(map(self.sentences, element.children))]

    def tokens_of(self, element: Element, notes: list[Spliced] | None = None) -> list[Token]:
        """The tokens of a sentence; with `notes`, marks elements that contain other sentences and adds them to it."""
        tokens, at = list[Token](), element.inside
        for child in element.children:
            tokens.append(text_token(element.file[at : child.begin]))
            at, name = child.end, child.name
            attributes = child.attributes if name == "mrk" or name in CODES else {}
            if attributes.get("translate") == "no" or attributes.get("mtype") == "protected":
                tokens.append(Token("copy" if child.text else "point", child.raw, child.text))
            elif name in AROUND and child.inside < child.outside:
                opening, closing = element.file[child.begin : child.inside], element.file[child.outside : at]
                is_span = name == "span"
                script = self.scripts.get(child.attributes.get("style-name", "")) if is_span and self.scripts else None
                name = script or name
                tokens.append(Token("open", opening, name=name, optional=is_span, is_script=script is not None))
                tokens += [*self.tokens_of(child, notes), Token("close", closing, name=name)]
            elif name in CODES:  # code from the original file; opening and closing codes share an id
                tokens.append(Token(CODES[name], child.raw, name=attributes.get("rid") or attributes.get("id", "")))
            elif not child.children and child.text:  # a field, such as a page number
                tokens.append(Token("copy", child.raw, child.text))
            else:
                raw, parts = child.raw, [] if notes is None else self.sentences(child)
                if notes is not None and parts:
                    notes.append(Spliced(raw, parts, child.begin))
                    raw = f"{MARK}{child.begin}".ljust(len(raw), INSIDE)
                tokens.append(Token("point", raw, breaks=name in BREAKS))
        return [*tokens, text_token(element.file[at : element.outside])]


class Xliff(Flow):
    """XLIFF 1.2 (https://docs.oasis-open.org/xliff): only units without a translation are changed."""

    def sentences(self, element: Element, translate: str = "") -> list[Part]:
        attributes, parts = element.attributes, {child.name: child for child in element.children}
        is_new = element.name == "xliff" and attributes.get("version", "").startswith("2")
        require(not is_new, "cannot read XLIFF 2: convert it to XLIFF 1.2")
        translate, target = attributes.get("translate", translate), parts.get("target")
        if element.name != "trans-unit":
            return list(chain.from_iterable(self.sentences(child, translate) for child in element.children))
        state = target.attributes.get("state") if target else "new"
        if translate == "no" or "source" not in parts or (state not in OPEN and target and target.text.strip()):
            return []
        tokens = self.tokens_of(parts["source"])
        sentence, raw = Sentence(0, tokens, escaped), "".join(token.raw for token in tokens)
        last = target or parts.get("seg-source", parts["source"])
        tag, end = last.tag.removesuffix(last.name) + "target", last.end
        opening = STATE.sub("", last.file[target.begin : target.inside]) if target else f"<{tag}"
        opening += f' state="needs-review-translation">{raw[: sentence.begin]}'
        closing = f"{raw[sentence.end :]}</{tag}>"
        before, after = Part(target.begin if target else end, end, otherwise=opening), Part(end, end, otherwise=closing)
        sentence.begin = sentence.end = end
        return [before, sentence, after] if sentence.lines else []


def markup(kind: Kind, raw: str, **facts: Any) -> Token:
    return Token(kind, f"{MARK}{raw}{MARK}", **facts)


class InRuns(Part):
    """A sentence in runs, or in a cell without formatting, which has only text; `usual` are the properties of a run."""

    def __init__(self, covered: Sequence[Element], tokens: Sequence[Token], prefix: str, text: str, usual: str) -> None:
        self.content = Spliced("".join(token.raw for token in tokens), [Sentence(0, join_scripts(tokens), escaped)])
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
        self.places, self.joining = defaultdict[str, list[int]](list), dict[tuple[str, int], bool]()
        self.slides = re.findall(r'\sxmlns:?(\w*)="[^"]*/drawingml/', text)
        for element in (elements := parse_xml(text)):
            self.places[element.name if element.name in ("p", "fldChar") else element.tag].append(element.begin)
        for paragraph in elements:
            if paragraph.name in ("p", "si", "is"):
                self.prefix = paragraph.tag.removesuffix(paragraph.name)  # a file may use several
                self.read(paragraph.children)
                self.end()
        return self.sentences

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
                    facts["name"] = "sub" if script["sub"] or script["minus"] else "sup"
                opening = markup("open", FORMAT + self.properties[look], is_script=script is not None, **facts)
                inside.insert(0, opening)
                inside.append(markup("close", FORMAT + self.properties.get(usual, ""), **facts))
            tokens += inside
        if sizes:
            text = f"{self.prefix}t" if self.prefix[:-1] in self.slides else f'{self.prefix}t xml:space="preserve"'
            self.sentences.append(InRuns(self.covered, tokens, self.prefix, text, self.properties[usual]))
        self.pieces, self.covered = [], []

    def joins(self, element: Element) -> bool:
        """True if an element belongs inside a sentence: a run, a link or similar, or anything without text."""
        if element.name in ("t", "fld"):  # the text of a cell without runs, or a field of a slide
            return True
        if element.name not in AROUND:
            places = map(self.places.__getitem__, ["p", "fldChar", f"{self.prefix}t"][: 3 - (element.name == "r")])
            return all(bisect_left(begins, element.begin) == bisect_left(begins, element.end) for begins in places)
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
                properties = "".join(child.raw for child in element.children if child.name.endswith("Pr"))
                self.note(markup("open", element.file[element.begin : element.inside] + properties, name=name), element)
                self.read(element.children)
                self.note(markup("close", f"</{element.tag}>", name=name))
            else:
                self.note(markup("point", element.raw, breaks=name in BREAKS), element)

    def note(self, token: Token, *elements: Element, look: str | None = None) -> None:
        self.pieces.append((look, token))
        self.covered += elements

    def read_run(self, run: Element, content: Iterable[Element], outer: Element | None = None) -> None:
        properties = "".join(child.raw for child in run.children if child.name == "rPr")
        look = UNSEEN.sub("", properties)
        look = "" if EMPTY.fullmatch(look) else look
        self.properties.setdefault(look, properties)
        for part in content:
            for number, text in enumerate(SPACE.split(part.text) if part.name in ("t", "noBreakHyphen") else ()):
                is_space = number % 2 > 0
                token = Token("point" if is_space else "text", escaped(text), "" if is_space else text, breaks=is_space)
                self.note(token, outer or run, look=look)
            if part.name in ("ruby", "rubyBase", "r"):
                self.read_run(part, part.children, outer or run)
            elif part.name not in DROPPED | {"t", "noBreakHyphen"}:
                self.note(markup("point", INSIDE + part.raw, breaks=part.name in BREAKS), outer or run, look=look)
