"""Sentences in XML: XLIFF 1.2, OpenDocument, and the titles and contents of EPUB; everything else stays as it is."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape, unescape
from xml.parsers import expat

from nmt.config import NMTError, require
from nmt.plugins.documents.document import MarkedUp, Part, Spliced, Translated
from nmt.plugins.documents.html import ATTRIBUTE, MARKUP
from nmt.plugins.documents.markup import Kind, Sentence, Token

DEEPEST = 256  # levels of elements
INVALID = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
CDATA = "<![CDATA["
PARAGRAPHS = frozenset(("p", "h", "navLabel", "docTitle", "dc:title"))
AROUND = frozenset(("g", "mrk", "span", "a", "meta", "text"))  # elements with text of their sentence
STATE = re.compile(r"""\s+state\s*=\s*("[^"]*"|'[^']*')|\s*/?>$""")
BREAKS = frozenset(("s", "tab", "line-break", "frame"))
UNREAD = frozenset(("annotation", "tracked-changes"))
NUMBERS = frozenset(("float", "percentage", "currency", "date", "time", "boolean"))
CODES: dict[str, Kind] = {"bpt": "open", "bx": "open", "ept": "close", "ex": "close", "ph": "point", "it": "point"}


@dataclass(slots=True)
class Element:
    """An element or, without a tag, a comment or processing instruction; the offsets are those of its two tags."""

    file: str
    tag: str
    begin: int
    inside: int
    outside: int
    end: int
    children: list["Element"] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.tag.rpartition(":")[2]

    @property
    def raw(self) -> str:
        return self.file[self.begin : self.end]

    @property
    def opening(self) -> str:
        return self.file[self.begin : self.inside]

    @property
    def text(self) -> str:
        return text_of(self.file[self.inside : self.outside])

    def iter(self) -> Iterator["Element"]:
        yield self
        for child in self.children:
            yield from child.iter()

    def find(self, *names: str) -> list["Element"]:
        return [child for child in self.children if child.name in names]

    def span(self, attribute: str) -> tuple[int, int]:
        """Where the value of an attribute is, in any namespace; empty if there is none."""
        for match in ATTRIBUTE.finditer(self.file, self.begin + 1 + len(self.tag), self.inside):
            if match["name"].rpartition(":")[2] == attribute and match["value"]:
                return match.start("value") + 1, match.end("value") - 1
        return 0, 0

    def get(self, attribute: str) -> str:
        return unescape(self.file[slice(*self.span(attribute))])


def parse_xml(text: str) -> Element:
    """The document; NMTError if it is not well-formed or declares entities, which can expand to gigabytes."""
    parser = expat.ParserCreate("utf-8")  # whatever the file declares
    parser.EntityDeclHandler = refuse_entity
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        raise NMTError(f"line {error.lineno}: not well-formed XML ({expat.ErrorString(error.code)})") from error
    opened = [Element(text, "", 0, 0, len(text), len(text))]
    for markup in MARKUP.finditer(text):
        begin, end = markup.span()
        if markup["end"]:
            element = opened.pop()
            element.outside, element.end = begin, end
        elif not text.startswith(CDATA, begin):
            element = Element(text, markup["name"] or "", begin, end, end, end)
            opened[-1].children.append(element)
            if element.tag and text[end - 2] != "/":
                opened.append(element)
                require(len(opened) <= DEEPEST, f"elements are nested more than {DEEPEST} levels deep")
    return opened[0]


def refuse_entity(name: str, *_: object) -> None:
    raise NMTError(f"declares the entity {name[:40]!r}: replace the entity with its text")


def text_of(raw: str) -> str:
    return unescape(MARKUP.sub(lambda tag: escape(tag[0][9:-3]) if tag[0].startswith(CDATA) else "", raw))


def escaped(text: str) -> str:
    return escape(INVALID.sub("", text), quote=False)


def in_order(parts: Iterable[Part]) -> list[Part]:
    return sorted(parts, key=lambda part: part.begin)


def text_token(raw: str) -> Token:
    return Token("text", raw, text_of(raw))


class Paragraph(Sentence):
    """A sentence that may contain elements with other sentences, such as footnotes."""

    def __init__(self, begin: int, tokens: Sequence[Token], escape: Callable[[str], str]) -> None:
        super().__init__(begin, tokens, escape)
        self.notes = list[Spliced]()

    def add(self, note: Spliced) -> None:
        self.notes.append(note)
        self.lines += note.lines

    def render(self, translations: Sequence[Translated]) -> str:
        text, left = super().render(translations[:1]), iter(translations[1:])
        for note in self.notes:
            text = text.replace(note.text, note.render(left), 1)
        return text


class Flow(MarkedUp):
    """A part of an OpenDocument file, or an EPUB's package or table of contents; formatting is inside of paragraphs."""

    def parts(self, text: str, target: str) -> Sequence[Part]:
        self.target = target.replace("_", "-")
        return in_order(self.sentences(parse_xml(text)))

    def sentences(self, element: Element) -> Iterator[Part]:
        if not {element.name, element.tag}.isdisjoint(PARAGRAPHS):
            notes = list[Spliced]()
            sentence = Paragraph(element.inside, [*self.tokens_of(element, notes)], escaped)
            yield sentence
            for note in notes:
                if sentence.lines and sentence.begin <= note.begin < sentence.end:
                    sentence.add(note)
                else:
                    yield from note.parts
        elif element.tag == "dc:language" and self.target:
            yield Part(element.inside, element.outside, otherwise=self.target)
        elif element.name not in UNREAD and not (element.get("formula") or element.get("value-type") in NUMBERS):
            if element.name == "table-cell" and (value := element.get("string-value")):
                yield Sentence(element.span("string-value")[0], [Token("text", escape(value), value)], escape)
            for child in element.children:
                yield from self.sentences(child)

    def tokens_of(self, element: Element, notes: list[Spliced]) -> Iterator[Token]:
        """The tokens of a sentence; adds the elements that contain other sentences to `notes`."""
        at = element.inside
        for child in element.children:
            yield text_token(element.file[at : child.begin])
            at, name, text = child.end, child.name, child.text
            if name == "mrk" and "no" in (child.get("translate"), "no" * (child.get("mtype") == "protected")):
                yield Token("copy" if text else "point", child.raw, text)
            elif name in AROUND and child.inside < child.outside:
                yield Token("open", child.opening, name=name, optional=name == "span")
                yield from self.tokens_of(child, notes)
                yield Token("close", element.file[child.outside : child.end], name=name)
            elif name in CODES:  # code from the original file; opening and closing codes share an id
                yield Token(CODES[name], child.raw, name=child.get("rid") or child.get("id"))
            elif text and not child.children:  # a field, such as a page number
                yield Token("copy", child.raw, text)
            else:
                yield Token("point", child.raw, breaks=name in BREAKS)
                note = Spliced(child.raw, in_order(self.sentences(child)), child.begin)
                notes += [note] if note.parts else []
        yield text_token(element.file[at : element.outside])


class Xliff(Flow):
    """XLIFF 1.2 (https://docs.oasis-open.org/xliff): only units without a translation are changed."""

    def sentences(self, element: Element, translate: str = "") -> Iterator[Part]:
        is_new = element.name == "xliff" and element.get("version").startswith("2")
        require(not is_new, "cannot read XLIFF 2: convert it to XLIFF 1.2")
        translate = element.get("translate") or translate
        if element.name != "trans-unit":
            for child in element.children:
                yield from self.sentences(child, translate)
        elif translate != "no" and (sources := element.find("source")):
            target = next(iter(element.find("target")), None)
            if target and target.get("state") not in ("new", "needs-translation") and target.text.strip():
                return
            tokens = [*self.tokens_of(sources[0], [])]
            sentence, raw = Sentence(0, tokens, escaped), "".join(token.raw for token in tokens)
            before = target or element.find("source", "seg-source")[-1]
            tag, end = before.tag.removesuffix(before.name) + "target", before.end
            opening = STATE.sub("", target.opening) if target else f"<{tag}"
            opening += ' state="needs-review-translation">'
            if sentence.lines:
                yield Part(target.begin if target else end, end, otherwise=opening + raw[: sentence.begin])
                closing = f"{raw[sentence.end :]}</{tag}>"
                sentence.begin = sentence.end = end
                yield from (sentence, Part(end, end, otherwise=closing))
