"""Jupyter notebooks: the text of Markdown cells (https://nbformat.readthedocs.io)."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from nmt.config import NMTError
from nmt.plugins.documents.document import Part, Spliced, notice_of, with_names
from nmt.plugins.documents.encodings import decode_file
from nmt.plugins.documents.json_strings import check_json
from nmt.plugins.documents.markdown import DIRECTIVES, Markdown
from nmt.translation import Document, Translated

TOKEN = re.compile(r'(?P<string>"(?>(?:[^"\\]|\\.)*)")(?P<colon>\s*:)?|[{}\[\]]')
LINE = re.compile(r"[^\n]*\n|[^\n]+")
TEXT_CELLS = ("markdown", "heading")
"""Types of cells with text; the second one is of notebooks before version 4."""
CELLS = (["", "cells", ""], ["", "worksheets", "", "cells", ""])
"""The keys around a cell, of this version and before; objects in lists have none."""
BROKEN = "cells left untranslated because they have broken characters"


@dataclass
class Source:
    """The strings of a cell's text in the file."""

    kind: str = ""
    """The cell's type."""

    strings: list[tuple[int, int]] = field(default_factory=list)
    """The offsets of each of them: of one string, or one for each line."""

    is_list: bool = False


class MarkdownCell(Markdown):
    """The text of a cell, which has no front matter."""

    has_front_matter = False
    # Headings of other cells are unknown here.
    follows_headings = False


class Notebook(Document):
    """A notebook; code, outputs, raw cells, attachments and metadata stay unchanged."""

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.text, self.mark, self.encoding = decode_file(content)
        check_json(self.text)
        self.cells = list[tuple[Source, MarkdownCell]]()
        self.broken = 0
        self.lines = list[str]()
        has_cells = False
        for cell_source in Sources().find(self.text):
            has_cells = True
            if cell_source.kind not in TEXT_CELLS:
                continue
            text = "".join(self.strings_of(cell_source))
            try:
                encoded = text.encode()
            except UnicodeEncodeError:
                self.broken += 1
                continue
            cell = MarkdownCell(encoded, source, target)
            self.cells.append((cell_source, cell))
            self.lines += cell.lines
        if not has_cells and '"cells"' not in self.text:
            raise NMTError("not a notebook: it has no cells; pass format=json for other JSON")
        self.notice = self.notice_with()

    def strings_of(self, source: Source) -> list[str]:
        return [json.loads(self.text[begin:end]) for begin, end in source.strings]

    def join(self, translations: Sequence[Translated]) -> bytes:
        left = iter(translations)
        parts = list[Part]()
        for source, cell in self.cells:
            before = "".join(self.strings_of(source))
            after = cell.join(list(islice(left, len(cell.lines)))).decode()
            if after != before:
                parts += self.changes(source, after)
        self.notice = self.notice_with()
        return self.mark + Spliced(self.text, parts).render(()).encode(self.encoding)

    def notice_with(self) -> str:
        counts = Counter[str]()
        directives = Counter[str]()
        for _, cell in self.cells:
            directives += cell.blocks.directives
            for what, number in cell.counts:
                counts[what] += number
        return notice_of(*counts.items(), with_names(DIRECTIVES, directives), (BROKEN, self.broken))

    def changes(self, source: Source, text: str) -> list[Part]:
        """The changes of a cell's strings that write another text."""
        begin = source.strings[0][0]
        end = source.strings[-1][1]
        raw = self.text[begin:end]
        # Keep the style of the file: programs may read a file with escapes as ASCII.
        ascii_only = "\\u" in raw
        before = self.strings_of(source)
        # Without a list, the text is a single string with all lines.
        lines = LINE.findall(text) if source.is_list else [text]
        written = [json.dumps(line, ensure_ascii=ascii_only) for line in lines]
        if len(lines) == len(before):
            parts = list[Part]()
            for span, old, new, string in zip(source.strings, before, lines, written, strict=True):
                if new != old:
                    parts.append(Part(*span, otherwise=string))
            return parts
        separator = self.separator_of(source)
        return [Part(begin, end, otherwise=separator.join(written))]

    def separator_of(self, source: Source) -> str:
        """What is between two strings of a list."""
        first = source.strings[0]
        if len(source.strings) > 1:
            return self.text[first[1] : source.strings[1][0]]
        # The blanks before the first string are those of each line.
        opening = self.text.rindex("[", 0, first[0])
        return "," + self.text[opening + 1 : first[0]]


class Sources:
    """Finds the sources of the cells in a valid notebook."""

    def __init__(self) -> None:
        self.path = list[str]()  # the keys of the objects and lists around a token
        self.key = ""
        self.source = Source()

    def find(self, text: str) -> Iterator[Source]:
        for token in TOKEN.finditer(text):
            if token["colon"]:
                self.key = json.loads(token["string"])
            elif token["string"]:
                self.add_string(token)
                self.key = ""
            elif token[0] in "{[":
                self.path.append(self.key)
                self.key = ""
                if self.path in CELLS:
                    self.source = Source()
            else:
                if self.path in CELLS:
                    yield self.source
                self.path.pop()

    def add_string(self, token: re.Match[str]) -> None:
        """Add a string to the cell's source if it belongs to it."""
        if self.path in CELLS:
            if self.key == "cell_type":
                self.source.kind = json.loads(token["string"])
            elif self.key == "source":
                self.source.strings.append(token.span("string"))
        elif self.path[:-1] in CELLS and self.path[-1] == "source":
            self.source.is_list = True
            self.source.strings.append(token.span("string"))
