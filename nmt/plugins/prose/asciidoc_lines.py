"""The lines of a document in AsciiDoc, and what they begin with.

Source: https://docs.asciidoctor.org/asciidoc/latest/key-concepts/
"""

import re
from dataclasses import dataclass

VERBATIM = re.compile(r"(?:-{4,}|\.{4,}|\+{4,}|/{4,}|`{3,}[\w+-]*)$")
"""The delimiter of a block without text to translate."""
COMPOUND = re.compile(r"(?:={4,}|\*{4,}|_{4,}|--|~{4,}|\"\")$")
"""The delimiter of a block of other blocks."""
TABLE = re.compile(r"(?P<sign>[|,:!])={3,}$")
COMMENT = re.compile(r"//(?!/)")
PREPROCESSOR = re.compile(r"\\?(?:include|ifn?def|ifeval|endif)::\S*?\[(?P<text>.*)\]$")
ENTRY = re.compile(r":!?(?P<name>\w[\w-]{0,80})!?:(?:[ \t]+(?P<value>\S.*)|$)")
BLOCK_ATTRIBUTES = re.compile(r"\[(?:|[\w#.,%\"'{\[].*)\]$")
BLOCK_TITLE = re.compile(r"\.(?=\.?[^ \t.])")
BLOCK_MACRO = re.compile(r"(?P<name>[\w-]{1,60})::(?P<target>\S*?)\[(?P<attributes>.*)\]$")
SECTION = re.compile(r"(?:={1,6}|#{1,6})[ \t]+(?=\S)")
UNDERLINE = re.compile(r"(?P<sign>[=\-~^+])(?P=sign)+$")
LIST_ITEM = re.compile(
    r"[ \t]*(?:\*++|-|\u2022|\.++|\d{1,9}\.|[a-zA-Z]\.|[IVXivx]{1,9}\))[ \t]+"
    r"(?:\[[ xX*]\][ \t]+)?(?=\S)"
)
CALLOUT = re.compile(r"<(?:\d{1,3}|\.)>[ \t]+(?=\S)")
TERM = re.compile(
    r"[ \t]*(?P<term>\S(?:(?!:::?:?(?:\s|$)|;;(?:\s|$)).)*?)(?P<sign>:{2,4}|;;)(?:[ \t]+|$)"
)
ADMONITION = re.compile(r"(?:NOTE|TIP|IMPORTANT|CAUTION|WARNING):[ \t]+(?=\S)")
RULE = re.compile(r"(?:'{3,}|<{3,}|-{3}|\*{3}|- - -|\* \* \*|_ _ _)$")
CONTINUATION = "+"
VERBATIM_STYLES = frozenset(
    [
        "a2s",
        "asciimath",
        "bytefield",
        "comment",
        "ditaa",
        "graphviz",
        "latexmath",
        "listing",
        "literal",
        "mermaid",
        "pass",
        "plantuml",
        "source",
        "stem",
        "svgbob",
        "synopsis",
        "vega",
    ]
)
"""Styles of blocks without text to translate."""


@dataclass(frozen=True)
class Line:
    begin: int
    end: int
    """The offset behind its last character that is not blank."""
    text: str


def lines_between(text: str, begin: int, end: int) -> list[Line]:
    """The lines of a text between two offsets."""
    lines = list[Line]()
    for line in text[begin:end].split("\n"):
        stripped = line.rstrip(" \t\r")
        lines.append(Line(begin, begin + len(stripped), stripped))
        begin += len(line) + 1
    return lines
