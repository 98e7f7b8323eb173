"""XML, parsed with the offsets of all elements, so that a file can be changed in some places only."""

import re
from dataclasses import dataclass, field
from html import escape, unescape
from xml.parsers import expat

from nmt.config import NMTError, require
from nmt.plugins.documents.html import ATTRIBUTE

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
        return (
            "-" if self.name == "noBreakHyphen" else text_of(self.file[self.inside : self.outside])
        )

    @property
    def spans(self) -> dict[str, tuple[int, int]]:
        """The spans of the values of attributes, by their names without prefixes."""
        matches = ATTRIBUTE.finditer(self.file, self.begin + 1 + len(self.tag), self.inside)
        return {
            match["name"].rpartition(":")[2]: (match.start("value") + 1, match.end("value") - 1)
            for match in matches
            if match["value"]
        }

    @property
    def attributes(self) -> dict[str, str]:
        return {name: unescape(self.file[begin:end]) for name, (begin, end) in self.spans.items()}


def parse_xml(text: str) -> list[Element]:
    """The document and all its elements, in order; NMTError if it is malformed or declares entities, which can grow."""
    parser = expat.ParserCreate("utf-8")  # regardless of what the file declares
    parser.EntityDeclHandler = refuse_entity
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        raise NMTError(
            f"line {error.lineno}: not well-formed XML ({expat.ErrorString(error.code)})"
        ) from error
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
                require(
                    len(opened) <= DEEPEST, f"elements are nested more than {DEEPEST} levels deep"
                )
    return elements


def refuse_entity(name: str, *_: object) -> None:
    raise NMTError(f"declares the entity {name[:40]!r}: replace the entity with its text")


def text_of(raw: str) -> str:
    return unescape(
        MARKUP.sub(lambda tag: escape(tag[0][9:-3]) if tag[0].startswith(CDATA) else "", raw)
    )


def escaped(text: str) -> str:
    return escape(INVALID.sub("", text), quote=False)
