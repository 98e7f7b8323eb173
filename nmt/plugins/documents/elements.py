"""XML, parsed with the offsets of all elements.

The offsets allow changes in some places, while the rest of the file keeps its bytes.
"""

import re
from dataclasses import dataclass, field
from html import escape, unescape
from xml.parsers import expat

from nmt.config import NMTError
from nmt.plugins.documents.entities import without_entities
from nmt.plugins.documents.tags import ATTRIBUTE

DEEPEST = 256
"""Maximum levels of elements, because functions recurse into each. Long books have a dozen."""
INVALID = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML does not allow, not even as references."""
CDATA = "<![CDATA["
CDATA_END = "]]>"
QUOTED = r"""[^"'<>]++|"[^"]*+"|'[^']*+'"""
UNPARSED = r"<!--.*?-->|<\?.*?\?>"
MARKUP = re.compile(
    rf"{UNPARSED}|<!\[CDATA\[.*?]]>|<!(?>(?:{UNPARSED}|<!(?>(?:{QUOTED})*)>|{QUOTED})*)>"
    rf"|<(?P<end>/?)(?P<name>[^\s/>]++)(?>(?:{QUOTED})*)>",
    re.DOTALL,
)
"""The markup of a well-formed file.

Unlike in HTML, names may begin with any letter, and declarations contain others.
"""


@dataclass(slots=True)
class Element:
    """An element, or a comment or processing instruction, which has no tag.

    The offsets are those of its two tags: `begin` and `inside` are the ends of the opening tag,
    `outside` and `end` those of the closing tag.
    """

    file: str
    tag: str

    name: str
    """The tag without its prefix."""

    begin: int
    inside: int
    outside: int
    end: int
    children: list["Element"] = field(default_factory=list)

    @property
    def raw(self) -> str:
        return self.file[self.begin : self.end]

    @property
    def raw_inside(self) -> str:
        return self.file[self.inside : self.outside]

    @property
    def text(self) -> str:
        if self.name == "noBreakHyphen":  # of Word
            return "-"
        return text_of(self.raw_inside)

    @property
    def spans(self) -> dict[str, tuple[int, int]]:
        """The spans of the values of attributes, by their names without prefixes."""
        spans = self.full_spans
        short = {name.rpartition(":")[2]: span for name, span in spans.items()}
        # Of `version` and `m:version`, the first is the one of the format itself.
        return short | {name: span for name, span in spans.items() if ":" not in name}

    @property
    def full_spans(self) -> dict[str, tuple[int, int]]:
        """The spans of the values of attributes, by their names with prefixes."""
        spans = dict[str, tuple[int, int]]()
        behind_name = self.begin + 1 + len(self.tag)
        # The file is well-formed, so each value has quotes.
        for match in ATTRIBUTE.finditer(self.file, behind_name, self.inside):
            if match["value"]:
                begin, end = match.span("value")
                spans[match["name"]] = (begin + 1, end - 1)  # without the quotes
        return spans

    @property
    def attributes(self) -> dict[str, str]:
        return {name: unescape(self.file[begin:end]) for name, (begin, end) in self.spans.items()}


def parse_xml(text: str, has_entities: bool = False) -> list[Element]:
    """The document and all its elements, in order.

    Raise NMTError if it is malformed or nested too deeply, or declares entities, which can grow. A
    file that `has_entities` may declare them; its references to them are text.
    """
    checked = without_entities(text) if has_entities else text
    # First, because the pattern below relies on what expat has checked.
    check_well_formed(checked)
    document = Element(text, "", "", 0, 0, len(text), len(text))
    elements = [document]
    opened = [document]
    for markup in MARKUP.finditer(checked):
        begin, end = markup.span()
        if markup["end"]:
            element = opened.pop()
            element.outside = begin
            element.end = end
        # CDATA is text, which `text_of` reads.
        elif not text.startswith(CDATA, begin):
            tag = markup["name"] or ""
            name = tag.rpartition(":")[2]
            element = Element(text, tag, name, begin, end, end, end)
            opened[-1].children.append(element)
            elements.append(element)
            # Comments and instructions have no tag, and <a/> is a whole element.
            if tag and text[end - 2] != "/":
                opened.append(element)
                if len(opened) > DEEPEST:
                    raise NMTError(f"elements are nested more than {DEEPEST} levels deep")
    return elements


def check_well_formed(text: str) -> None:
    """Parse a file with expat, so that a simple pattern suffices to find its elements."""
    parser = expat.ParserCreate("utf-8")  # regardless of what the file declares
    # A few entities that contain each other could expand to gigabytes.
    parser.EntityDeclHandler = refuse_entity
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        problem = expat.ErrorString(error.code)
        raise NMTError(f"line {error.lineno}: not well-formed XML ({problem})") from error


def refuse_entity(name: str, *_: object) -> None:
    raise NMTError(f"declares the entity {name[:40]!r}: replace the entity with its text")


def check_root(document: Element, name: str) -> None:
    """Raise NMTError if the root of a document has another name."""
    root = next(child for child in document.children if child.tag)
    if root.name != name:
        raise NMTError(f"its root is <{root.tag}>, not <{name}>; pass another format")


def text_of(raw: str) -> str:
    """The text of some XML without its markup."""

    def text_in(markup: re.Match[str]) -> str:
        if not markup[0].startswith(CDATA):
            return ""
        # Escaped, because `unescape` follows.
        return escape(markup[0].removeprefix(CDATA).removesuffix(CDATA_END))

    return unescape(MARKUP.sub(text_in, raw))


def escaped(text: str) -> str:
    """Text as it is written in XML, outside of attributes."""
    # A translator may return characters that would make the file malformed.
    return escape(INVALID.sub("", text), quote=False)
