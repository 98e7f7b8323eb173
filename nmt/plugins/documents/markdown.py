"""Markdown as CommonMark and GitHub know it: markdown-it finds blocks and what is in them, this, where."""

import re
from itertools import accumulate, pairwise
from typing import Any

from markdown_it.token import Token as Found

from nmt.plugins.documents.document import Direction, Part, Text
from nmt.plugins.documents.html import parts_of
from nmt.plugins.documents.markdown_inline import ALERT, ATTRIBUTES, Block, Inline, parser

FRONT_MATTER = re.compile(
    r"(?:---[ \t]*\r?\n.*?\n(?:---|\.\.\.)|\+\+\+[ \t]*\r?\n.*?\n\+\+\+)[ \t]*(?:\r?\n|\Z)", re.DOTALL
)
ALONE, FOOTNOTE, TITLE = map(re.compile, (rf"\s*(?:{ALERT}|{ATTRIBUTES})\s*", r"\s*\[\^[^\]\s]+\]:", rf"\s*{ALERT}"))
"""Lines of a paragraph of CommonMark that stand for themselves, that begin another one, or end one."""


class Reader:
    """Collects the parts of a text that are to be translated."""

    def __init__(self, text: str, begin: int) -> None:
        self.text, self.parts = text, list[Part]()
        self.known: dict[str, Any] = {"ends": {}}
        """What the parser notes: where markup ends, and the addresses of references."""
        body = text[begin:]
        self.lines = re.findall(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+", body)
        self.begins = list(accumulate(map(len, self.lines), initial=begin))
        self.lines = [line.rstrip().replace("\0", "\ufffd") for line in self.lines]
        found = parser().parse(body, self.known)
        row = list[Found]()
        for number, token in enumerate(found):
            if token.type == "html_block" and token.level == 0 and token.map:
                self.add_html(*token.map)
            elif token.type == "tr_close":
                self.add_row(row)
                row = []
            elif token.type == "inline" and found[number - 1].type in ("th_open", "td_open"):
                row.append(token)
            elif token.type == "inline":
                for each in self.pieces(token):
                    self.add(each, self.places(each), found[number - 1].type == "paragraph_open")

    def pieces(self, token: Found) -> list[Found]:
        """The content of a block without lines that stand for themselves, and by footnotes."""
        lines, first = token.content.split("\n"), token.map[0] if token.map else 0
        alone = {number for number, line in enumerate(lines) if ALONE.fullmatch(line)}
        begins = {number for number, line in enumerate(lines) if FOOTNOTE.match(line)} | alone
        begins |= {number for number, line in enumerate(lines[:-1], 1) if number - 1 in alone or TITLE.match(line)}
        if not begins - {0}:
            return [token]
        found = list[Found]()
        for begin, end in pairwise(sorted({0, len(lines)} | begins)):
            if begin not in alone:
                [piece] = parser().parseInline("\n".join(lines[begin:end]).strip(), self.known)
                piece.map = [first + begin, first + end]
                found.append(piece)
        return found

    def places(self, token: Found) -> list[int]:
        """Where each line of the content stands in the text; none where one of them is not found."""
        found, first = list[int](), token.map[0] if token.map else 0
        for number, line in enumerate(token.content.split("\n"), first):
            at = self.lines[number].rfind(line.rstrip()) if number < len(self.lines) else -1
            if at < 0 or self.lines[number][at + len(line.rstrip()) :].strip(" \t#"):
                return []
            found.append(self.begins[number] + at)
        return found

    def add(self, token: Found, places: list[int], in_paragraph: bool = False) -> None:
        """Add a block; one that is not found stays as it is."""
        try:
            block = Block(self.text, token, places, self.known["ends"]) if places and token.content else None
        except LookupError:
            block = None
        if block:
            self.parts.append(Inline(block, self.known, in_paragraph))

    def add_row(self, cells: list[Found]) -> None:
        """Add the cells of a line of a table, found from its end."""
        number = cells[0].map[0] if cells and cells[0].map else 0
        line, found = self.lines[number] if cells else "", list[tuple[Found, list[int]]]()
        after = len(line)
        for cell in reversed(cells):
            at = line.rfind(cell.content, 0, after)
            if at < 0 or line[at + len(cell.content) : after].strip(" \t|"):
                return
            found.append((cell, [self.begins[number] + at]))
            after = at
        for cell, places in reversed(found):
            self.add(cell, places)

    def add_html(self, first: int, end: int) -> None:
        begin = self.begins[first]
        for part in parts_of(self.text[begin : self.begins[min(end, len(self.lines))]]):
            part.begin, part.end = part.begin + begin, part.end + begin
            self.parts.append(part)


class Markdown(Text):
    """A text in Markdown; metadata in YAML or TOML at its beginning stay as they are."""

    def parts(self, text: str, model: Direction) -> list[Part]:
        front = FRONT_MATTER.match(text)
        return Reader(text, front.end() if front else 0).parts
