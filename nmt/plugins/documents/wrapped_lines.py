"""The lines of a text with hard line breaks, and which of them form a paragraph."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from nmt.plugins.documents.subtitle_layout import column_width
from nmt.plugins.documents.wrapped_code import code_lines

LINE = re.compile(r"([^\r\n]*)(\r\n?|\n|\Z)")
SMALL = "a-z\u00df-\u00ff\u03ac-\u03ce\u0430-\u045f"
"""Letters that are not capitals."""
QUOTATION = re.compile(r"(?:[ \t]?>)*+")
NUMBER = r"\d{1,3}(?:\.\d{1,3}){0,5}"
"""The number of an item or section, such as 2 or 2.1.3."""
ITEM = re.compile(
    rf"(?:[-*+•o\u2013]|\(?(?:{NUMBER}|[a-zA-Z]|[ivx]{{1,4}})[.)]|\[\d{{1,4}}\])[ \t]+(?=\S)"
    # Without another sign, it may also be a quantity: 2.1 million.
    rf"|\d{{1,3}}(?:\.\d{{1,3}}){{1,5}}[ \t]+(?=[^\W\d_])(?![{SMALL}])"
)
"""The mark of an item of a list, or of a section."""
NUMBERED = re.compile(r"[(\[]?\w+[.)\]]")
HEADER = re.compile(
    r"(?:From|To|Cc|Bcc|Date|Subject|Sender|Reply-To|Message-ID|In-Reply-To|References|Received"
    r"|Return-Path|Delivered-To|Organization|Newsgroups|User-Agent|MIME-Version|Content-[\w-]+"
    r"|List-[\w-]+|X-[\w-]+):(?=[ \t]|$)|From \S",
    re.IGNORECASE,
)
"""A header of an e-mail, or the line between two e-mails of a mailbox."""
SIGNATURE = re.compile(r"--[ \t]?")
COLUMNS = re.compile(r"\S(?:[ ]{4,}|[ ]*\t[ \t]*)\S|[.\u2026]{5}|(?: \.){4}")
"""Cells of a table, or the dots before the number of a page."""
GAP = re.compile(r"[^\s.:?!]['\")]? {2,}\S")
SYMBOL = re.compile(r"[^\w\s.,;:!?'\"()\u2010-\u201f\u2026\u00ab\u00bb-]")
BORDER = re.compile(r"[-=_*+|#~]{3,}|[|+] *$|^ *[|+]")
BEGINS_UPPER = re.compile(r"\W*[A-Z\u00c0-\u00de\u0391-\u03a9\u0410-\u042f]")
ENDS_SENTENCE = re.compile(r"[.:;!?,]['\")]?$")
SYMBOLS = 0.12
"""The share of symbols from which a line is no running text."""
NARROW = 0.65
"""Blocks whose lines are shorter than this share of the text's width are verses or addresses."""
USUAL_WIDTH = 72
LEAST_WIDTH = 40
WIDE = 60
"""Verses are seldom as wide."""

Kind = Literal["paragraph", "line", "subject", "fixed"]


@dataclass
class Line:
    """A line of a file: its quotation marks, its indentation and its text, from `begin`."""

    begin: int
    quotation: str
    indent: str
    text: str
    end_of_line: str
    number: int
    """The number of the line in its file, from 1."""
    is_code: bool = False

    @property
    def level(self) -> int:
        """How many quotation marks the line has."""
        return self.quotation.count(">")

    @property
    def margin(self) -> str:
        return self.quotation + self.indent

    @property
    def start(self) -> int:
        """The offset of the text."""
        return self.begin + len(self.margin)

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def left(self) -> int:
        """The column at which the text begins."""
        return column_width(self.margin.expandtabs())

    @property
    def right(self) -> int:
        return self.left + column_width(self.text.expandtabs())


@dataclass
class Unit:
    """Lines that are translated together, or that stay."""

    kind: Kind
    lines: list[Line]
    width: int = 0
    """The columns of the paragraph."""


def lines_of(text: str) -> list[Line]:
    lines = list[Line]()
    for match in LINE.finditer(text):
        if match.end() == match.start():
            continue
        content = match[1]
        quotation = QUOTATION.match(content)
        marks = quotation[0] if quotation else ""
        rest = content[len(marks) :]
        body = rest.strip()
        indent = rest[: len(rest) - len(rest.lstrip())] if body else ""
        number = len(lines) + 1
        lines.append(Line(match.start(), marks, indent, body, match[2], number))
    return lines


def width_of(blocks: Sequence[Sequence[Line]]) -> int:
    """The columns to which most paragraphs of a text are wrapped."""
    columns = list[int]()
    for block in blocks:
        # The last line of a paragraph is shorter.
        columns += [line.right for line in block[:-1] if line.right >= LEAST_WIDTH]
    if not columns:
        # A text with narrow paragraphs.
        narrow = [line.right for block in blocks if len(block) > 3 for line in block]
        return max(narrow, default=USUAL_WIDTH)
    columns.sort()
    return columns[len(columns) * 9 // 10]


def blocks_of(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """The lines between empty lines, or between changes of the quotation marks."""
    block = list[Line]()
    for line in lines:
        ends = not line.text or (block and line.level != block[-1].level)
        if block and (ends or is_signature(line)):
            yield block
            block = []
        if line.text:
            block.append(line)
    if block:
        yield block


def is_signature(line: Line) -> bool:
    return not line.indent and SIGNATURE.fullmatch(line.text) is not None


def units_of(lines: Sequence[Line]) -> Iterator[Unit]:
    """The paragraphs, single lines and fixed lines of a text, in order."""
    blocks = [*blocks_of(lines)]
    width = width_of(blocks)
    signed: int | None = None  # the level of the quotation with the current signature
    for block in blocks:
        is_header = HEADER.match(block[0].text) is not None and not block[0].indent
        if is_header or (signed is not None and block[0].level != signed):
            signed = None
        if is_signature(block[0]):
            signed = block[0].level
        if signed is not None:
            yield Unit("fixed", block)
        elif is_header:
            yield from headers(block)
        else:
            yield from split(block, width)


def headers(block: Sequence[Line]) -> Iterator[Unit]:
    for line in block:
        is_subject = line.text.lower().startswith("subject:")
        yield Unit("subject" if is_subject else "fixed", [line])


def split(block: list[Line], width: int) -> Iterator[Unit]:
    """The units of a block in a text of this width."""
    mark_code(block)
    if is_table(block):
        yield Unit("fixed", block)
    elif is_verse(block, width):
        for line in block:
            yield Unit("fixed" if is_fixed(line) else "line", [line])
    else:
        longest = max(line.right for line in block)
        for lines in paragraphs(block, longest):
            kind: Kind = "fixed" if is_fixed(lines[0]) else "paragraph"
            own = max(line.right for line in lines)
            yield Unit(kind, lines, own if len(lines) > 1 else max(own, width))


def mark_code(block: Sequence[Line]) -> None:
    """Mark the lines of a block that are source code."""
    are_code = code_lines([line.text for line in block], [line.left for line in block])
    for line, is_code in zip(block, are_code, strict=True):
        line.is_code = is_code


def is_table(block: Sequence[Line]) -> bool:
    """Whether most lines of a block have cells, or the block is a picture of signs."""
    columns = sum(COLUMNS.search(line.text) is not None for line in block)
    drawn = sum(BORDER.search(line.text) is not None for line in block)
    if 2 * columns > len(block) or (drawn > 1 and 2 * drawn > len(block)):
        return True
    # Programs that justify text add blanks, too, but then all lines have the same width.
    is_justified = len({line.right for line in block[:-1]}) == 1
    gaps = sum(GAP.search(line.text) is not None for line in block)
    return len(block) > 1 and gaps == len(block) and not is_justified


def is_verse(block: Sequence[Line], width: int) -> bool:
    """Whether the lines of a block break where the author wanted, as in a poem."""
    if len(block) < 2:
        return False
    if any(ITEM.match(line.text) for line in block):
        return False
    longest = max(line.right for line in block)
    if longest < NARROW * width:
        return True
    upper = sum(BEGINS_UPPER.match(line.text) is not None for line in block)
    is_short = longest < 0.9 * width or width < WIDE
    return len(block) > 2 and is_short and upper > 0.9 * len(block)


def is_fixed(line: Line) -> bool:
    """Whether a line is not running text."""
    text = line.text
    if not any(map(str.isalpha, text)):
        return True
    if COLUMNS.search(text) or line.is_code:
        return True
    symbols = len(SYMBOL.findall(text))
    # Emphasis and a few signs are usual in text.
    return symbols > 3 and symbols > SYMBOLS * len(text)


def paragraphs(block: Sequence[Line], width: int) -> Iterator[list[Line]]:
    """Split a block at indented lines, items of lists, and lines that end early."""
    lines = list[Line]()
    for line in block:
        if lines and begins_paragraph(lines, line, width):
            yield lines
            lines = []
        lines.append(line)
    if lines:
        yield lines


def begins_paragraph(lines: Sequence[Line], line: Line, width: int) -> bool:
    """Whether a line does not continue the paragraph with the lines before it."""
    first = lines[0]
    before = lines[-1]
    if is_fixed(line) or is_fixed(before):
        return True
    is_early = ends_early(before, line, width)
    in_list = ITEM.match(first.text) is not None
    if ITEM.match(line.text):
        is_next = in_list and line.left <= first.left + 4
        if is_next or is_early or ENDS_SENTENCE.search(before.text):
            return True
    if is_early:
        return True
    if len(lines) > 1:
        return line.left != lines[1].left
    # The first line of a paragraph may be indented, even with a number, or all lines but the first.
    return in_list and line.left < first.left and not NUMBERED.match(first.text)


def ends_early(line: Line, following: Line, width: int) -> bool:
    """Whether a line has room for the next word, and so ends where the author wanted."""
    word = following.text.split(maxsplit=1)[0]
    room = width - line.right - 1 - column_width(word)
    return room >= max(8, 0.15 * width)
