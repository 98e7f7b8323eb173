"""The blocks of a document in AsciiDoc, and the texts in them."""

import re
from collections import Counter
from collections.abc import Sequence

from nmt.plugins.documents import Part, Spliced, marked
from nmt.plugins.prose.asciidoc_inline import Inline
from nmt.plugins.prose.asciidoc_lines import (
    ADMONITION,
    BLOCK_ATTRIBUTES,
    BLOCK_MACRO,
    BLOCK_TITLE,
    CALLOUT,
    COMMENT,
    COMPOUND,
    CONTINUATION,
    ENTRY,
    LIST_ITEM,
    PREPROCESSOR,
    RULE,
    SECTION,
    TABLE,
    TERM,
    UNDERLINE,
    VERBATIM,
    VERBATIM_STYLES,
    Line,
    lines_between,
)
from nmt.plugins.prose.asciidoc_parts import (
    AttributeText,
    SectionTitle,
    UnderlinedTitle,
    has_letters,
)
from nmt.plugins.prose.asciidoc_tables import Table, columns_of
from nmt.plugins.prose.sentences import ProseSentence, markup_in

FOOTNOTE = re.compile(r"(?<!\\)footnote(?:ref)?:[\w-]{0,80}\[")
LONGEST_NOTE = 4000
INLINE_IMAGE = re.compile(r"(?<![\w\\:])image:(?!:)[^\s\[\]]{1,1000}\[(?=[^\]])")
SENTENCE_END = re.compile(r"[.!?:;\u3002][)\"'*_`\u201d]*$")
FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(?:.*\n)*?---[ \t]*\r?(?:\n|\Z)")
SHOWN_ENTRY = re.compile(r"description|toc-title|.*-(?:caption|label|title)")
ANCHORS = re.compile(r"(?:\[\[|\[[\w.%]{0,80}#|\bid=[\"']?)([\w:.-]{1,200})")
REFERENCES = re.compile(r"<<#?([^<>\n,]{1,300})(?:,[^<>]{0,1000})?>>|xref:#?([^\s\[\]]{1,300})\[")
ENDS_PARAGRAPH = (VERBATIM, COMPOUND, TABLE, BLOCK_ATTRIBUTES, COMMENT, PREPROCESSOR)
ENDS_ITEM = (LIST_ITEM, CALLOUT, TERM, BLOCK_TITLE)
BLANKS = " \t"
TABLES = "tables"
ENTRIES = "attribute entries"
CONDITIONS = "texts in conditions"
ATTRIBUTES = "attributes of blocks"


def names_of(title: str) -> list[str]:
    """The names that Asciidoctor may derive from a title, depending on attributes."""
    words = re.sub(r"[^\w\s.-]", "", title.lower())
    names = list[str]()
    for separator in "_-":
        name = re.sub(r"[\s._-]+", separator, words).strip(separator)
        names += [f"_{name}", name]
    return names


class Page:
    """What the blocks of a document have in common: its parts, and counts of the rest."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.parts = list[Part]()
        self.sentences = list[ProseSentence]()
        self.left = Counter[str]()
        self.referenced = set[str]()
        """The names in references that no anchor defines."""
        for cross, macro in REFERENCES.findall(text):
            self.referenced.add((cross or macro).strip())
        self.referenced.difference_update(ANCHORS.findall(text))
        self.has_hard_breaks = False
        """Whether line breaks in paragraphs remain."""

    def add(self, begin: int, end: int, syntax: Inline) -> None:
        """Add the text of a block, which lies between two offsets."""
        sentence, outside = self.sentence(begin, end, syntax)
        if sentence.lines:
            self.parts.append(sentence)
        self.parts += outside

    def sentence(self, begin: int, end: int, syntax: Inline) -> tuple[ProseSentence, list[Part]]:
        """A sentence, and the parts of its notes that are beside its words."""
        notes = self.notes(begin, end)
        scanned = None
        if notes:
            pieces = list[str]()
            at = begin
            for note in notes:
                pieces.append(self.text[at : note.begin])
                pieces.append(marked(note))
                at = note.begin + len(note.text)
            scanned = "".join([*pieces, self.text[at:end]])
        sentence = ProseSentence(self.text, (begin, end), syntax, notes, scanned)
        self.sentences.append(sentence)
        outside = list[Part]()
        for note in notes:
            if note.begin not in sentence.notes:
                outside += note.parts
        return sentence, outside

    def notes(self, begin: int, end: int) -> list[Spliced]:
        """The footnotes and images between two offsets, whose texts are separate sentences."""
        notes = list[Spliced]()
        at = begin
        patterns = [FOOTNOTE, INLINE_IMAGE]
        found = [pattern.search(self.text, at, end) for pattern in patterns]
        while any(found):
            first = min(filter(None, found), key=lambda match: match.start())
            closing = self.closing_bracket(first.end(), end)
            at = first.end()
            if closing:
                note = self.note(first, closing)
                at = closing + 1
                if note.lines:
                    notes.append(note)
            for index, match in enumerate(found):
                if match and match.start() < at:
                    found[index] = patterns[index].search(self.text, at, end)
        return notes

    def note(self, opening: re.Match[str], closing: int) -> Spliced:
        whole = self.text[opening.start() : closing + 1]
        if opening[0].startswith("image"):
            part = self.attribute(opening.end(), closing)
            return Spliced(whole, [part] if part else [], opening.start())
        sentence = ProseSentence(self.text, (opening.end(), closing), Inline(in_brackets=True))
        self.sentences.append(sentence)
        return Spliced(whole, [sentence] if sentence.lines else [], opening.start())

    def closing_bracket(self, begin: int, end: int) -> int:
        """The bracket that closes the one before an offset; 0 if there is none."""
        depth = 1
        for at in range(begin, min(end, begin + LONGEST_NOTE)):
            sign = self.text[at]
            if sign == "]" and self.text[at - 1] != "\\":
                depth -= 1
                if not depth:
                    return at
            elif sign == "[":
                depth += 1
        return 0

    def attribute(self, begin: int, end: int) -> AttributeText | None:
        """The alternative text of an image: the first of the attributes between two offsets."""
        part = AttributeText.first(self.text, begin, end)
        if part:
            self.sentences.append(part.sentence)
        return part


class Blocks:
    """The blocks between two offsets of a document."""

    def __init__(self, page: Page, begin: int, end: int, in_cell: bool = False) -> None:
        self.page = page
        self.lines = lines_between(page.text, begin, end)
        self.in_cell = in_cell
        self.syntax = Inline(in_cell)
        self.style = ""
        """The style of the next block."""
        self.attributes = ""
        """The attributes of the next block."""
        self.has_anchor = False
        self.in_list = False
        self.needs_text = False
        """Whether the last line was a term without a definition."""
        self.is_attached = False
        """Whether the last line was the sign + between the blocks of an item."""
        self.readers = (
            self.read_blank,
            self.read_kept,
            self.read_delimited,
            self.read_attributes,
            self.read_title,
            self.read_macro,
            self.read_item,
        )

    def read(self) -> None:
        at = 0
        if not self.in_cell:
            at = self.read_header()
        while at < len(self.lines):
            at = self.read_block(at)

    def text_at(self, index: int) -> str:
        """The text of a line, which is empty behind the end."""
        return self.lines[index].text if index < len(self.lines) else ""

    def read_header(self) -> int:
        """Read the title of the document; the author and the revision below it stay."""
        front = FRONT_MATTER.match(self.page.text)
        at = front[0].count("\n") if front else 0
        while at < len(self.lines) and not self.is_title_of_document(at):
            after = self.read_blank(at) or self.read_kept(at)
            if not after:
                return at
            at = after
        if at == len(self.lines):
            return at
        at = self.read_title(at) or self.read_text(at)
        while self.text_at(at):
            at = self.read_kept(at) or at + 1
        return at

    def is_title_of_document(self, at: int) -> bool:
        if self.lines[at].text.startswith(("= ", "# ")):
            return True
        return self.is_underlined(at) and self.lines[at + 1].text.startswith("=")

    def read_block(self, at: int) -> int:
        for reader in self.readers:
            after = reader(at)
            if after:
                return after
        return self.read_text(at)

    def add(self, begin: int, end: int) -> None:
        self.page.add(begin, end, self.syntax)

    def forget(self) -> None:
        """Forget the attributes, which are those of the last block."""
        self.style = ""
        self.attributes = ""
        self.has_anchor = False
        self.is_attached = False
        self.needs_text = False

    def read_blank(self, at: int) -> int:
        text = self.lines[at].text
        if text == CONTINUATION:
            self.is_attached = True
            self.needs_text = False
            return at + 1
        return 0 if text.strip() else at + 1

    def read_kept(self, at: int) -> int:
        """Read a line that stays as it is, such as a comment."""
        text = self.lines[at].text
        if COMMENT.match(text):
            return at + 1
        condition = PREPROCESSOR.match(text)
        if condition:
            is_text = "def::" in text and has_letters(condition["text"])
            self.page.left[CONDITIONS] += is_text
            return at + 1
        entry = ENTRY.match(text)
        if entry:
            return self.read_entry(at, entry)
        if RULE.match(text):
            self.forget()
            return at + 1
        return 0

    def read_entry(self, at: int, entry: re.Match[str]) -> int:
        """Read an attribute of the document; readers see the values of some."""
        line = self.lines[at]
        if entry["name"].startswith("hardbreaks"):
            self.page.has_hard_breaks = not line.text.startswith(":!") and "!:" not in line.text
        after = at + 1
        is_long = line.text.endswith((" \\", " + \\"))
        while is_long and after < len(self.lines):
            is_long = self.text_at(after).endswith(" \\")
            after += 1
        if entry["value"] and SHOWN_ENTRY.fullmatch(entry["name"]):
            if after == at + 1:
                self.page.add(line.begin + entry.start("value"), line.end, self.syntax)
            else:
                self.page.left[ENTRIES] += 1
        return after

    def end_of(self, at: int, delimiter: str) -> int:
        """The line behind the next delimiter, or behind the last line."""
        for index in range(at, len(self.lines)):
            if self.lines[index].text == delimiter:
                return index + 1
        return len(self.lines)

    def read_delimited(self, at: int) -> int:
        text = self.lines[at].text
        if VERBATIM.match(text):
            delimiter = "```" if text.startswith("```") else text
            after = self.end_of(at + 1, delimiter)
            self.forget()
            return after
        table = TABLE.match(text)
        if table:
            return self.read_table(at, table["sign"])
        if not COMPOUND.match(text):
            return 0
        if self.style in VERBATIM_STYLES:
            after = self.end_of(at + 1, text)
            self.forget()
            return after
        if self.style == "verse":
            after = self.end_of(at + 1, text)
            self.add_verse(self.lines[at + 1 : after - 1])
            self.forget()
            return after
        self.forget()
        return at + 1

    def add_verse(self, lines: Sequence[Line]) -> None:
        for line in lines:
            if line.text:
                self.add(line.begin, line.end)

    def read_table(self, at: int, sign: str) -> int:
        after = self.end_of(at + 1, self.lines[at].text)
        first = self.lines[at].end + 1
        last = self.lines[after - 1].begin if after - 1 > at else first
        columns = columns_of(self.attributes)
        has_cells = sign in "|!" and not re.search(r"separator|format", self.attributes)
        table = Table(self.page.text, first, last, sign) if has_cells else None
        if table is None or not table.is_regular(columns):
            self.page.left[TABLES] += has_letters(self.page.text[first:last])
        else:
            for cell in table.cells_with_styles(columns):
                self.read_cell(cell.begin, cell.end, cell.style)
        self.forget()
        return after

    def read_cell(self, begin: int, end: int, style: str) -> None:
        if style == "l":
            self.page.left[TABLES] += has_letters(self.page.text[begin:end])
        elif style == "a":
            # The indentation of the first line belongs to the cell.
            first = self.page.text.rfind("\n", 0, begin) + 1
            if not self.page.text[first:begin].strip():
                begin = first
            Blocks(self.page, begin, end, in_cell=True).read()
        else:
            # An empty line separates the paragraphs of a cell.
            syntax = Inline(in_cell=True)
            lines = lines_between(self.page.text, begin, end)
            at = 0
            while at < len(lines):
                after = at
                while after < len(lines) and lines[after].text.strip():
                    after += 1
                if after > at:
                    self.page.add(lines[at].begin, lines[after - 1].end, syntax)
                at = after + 1

    def read_attributes(self, at: int) -> int:
        """Read the attributes of the next block."""
        text = self.lines[at].text
        if not BLOCK_ATTRIBUTES.match(text):
            return 0
        if text.startswith("[["):
            self.has_anchor = True
            return at + 1
        inside = text[1:-1]
        first = re.split(r"[,#.%]", inside, maxsplit=1)[0].strip().strip("\"'")
        if first and "=" not in first:
            self.style = first
        elif re.match(r"%?[\w%]*,\s*\w+\s*(?:,|$)", inside) and not first:
            self.style = "source"
        self.attributes += f",{inside}"
        self.page.left[ATTRIBUTES] += bool(re.search(r"\b(?:title|caption)=", inside))
        return at + 1

    def read_title(self, at: int) -> int:
        """Read the title of a section or block."""
        line = self.lines[at]
        title = SECTION.match(line.text) or BLOCK_TITLE.match(line.text)
        if not title:
            return 0
        begin = line.begin + title.end()
        if line.text.startswith("."):
            self.add(begin, line.end)
            return at + 1
        sentence, outside = self.page.sentence(begin, line.end, self.syntax)
        anchor = "" if line.text.startswith("= ") else self.anchor_of(line.text[title.end() :])
        if sentence.lines:
            self.page.parts.append(SectionTitle(self.page.text, sentence, line, anchor))
        else:
            self.page.parts += outside
        self.forget()
        self.in_list = False
        return at + 1

    def anchor_of(self, title: str) -> str:
        """An anchor for references to a title, or nothing if there are none."""
        if "#" in self.attributes or "id=" in self.attributes or self.has_anchor:
            return ""
        newline = "\r\n" if "\r\n" in self.page.text else "\n"
        for name in names_of(title):
            if name in self.page.referenced:
                self.page.referenced.remove(name)
                return f"[[{name}]]{newline}"
        if title in self.page.referenced:
            return f"[[{names_of(title)[0]},{title}]]{newline}"
        return ""

    def read_macro(self, at: int) -> int:
        line = self.lines[at]
        macro = BLOCK_MACRO.match(line.text)
        if not macro:
            return 0
        if macro["name"] == "image":
            begin = line.begin + macro.start("attributes")
            part = self.page.attribute(begin, line.begin + macro.end("attributes"))
            if part:
                self.page.parts.append(part)
        self.forget()
        return at + 1

    def read_item(self, at: int) -> int:
        """Read the first paragraph of an item of a list."""
        line = self.lines[at]
        item = LIST_ITEM.match(line.text) or CALLOUT.match(line.text)
        if item:
            self.in_list = True
            return self.add_text(at, line.begin + item.end(), in_item=True)
        term = TERM.match(line.text)
        if not term or self.style in VERBATIM_STYLES:
            return 0
        self.in_list = True
        self.forget()
        self.add(line.begin + term.start("term"), line.begin + term.end("term"))
        begin = line.begin + term.end()
        if begin < line.end:
            return self.add_text(at, begin, in_item=True)
        self.needs_text = True
        return at + 1

    def read_text(self, at: int) -> int:
        """Read a paragraph, a literal paragraph, or a title with a line below it."""
        line = self.lines[at]
        is_indented = line.text[0] in BLANKS
        # Of an item, only its first paragraph may be indented.
        if self.style in VERBATIM_STYLES or (is_indented and not self.needs_text):
            self.forget()
            return self.end_of_paragraph(at)
        if self.is_underlined(at):
            return self.read_underlined(at)
        if self.style == "verse":
            after = self.end_of_paragraph(at)
            self.add_verse(self.lines[at:after])
            self.forget()
            return after
        self.in_list = self.needs_text or (self.in_list and self.is_attached)
        admonition = ADMONITION.match(line.text)
        if admonition:
            return self.add_text(at, line.begin + admonition.end(), self.in_list)
        blanks = len(line.text) - len(line.text.lstrip(BLANKS))
        return self.add_text(at, line.begin + blanks, self.in_list)

    def read_underlined(self, at: int) -> int:
        """Read a title with a line below it."""
        line = self.lines[at]
        underline = self.lines[at + 1]
        sentence, outside = self.page.sentence(line.begin, line.end, self.syntax)
        anchor = ""
        # A title of the document needs none.
        if not underline.text.startswith("="):
            anchor = self.anchor_of(line.text)
        title = UnderlinedTitle(self.page.text, sentence, line, underline, anchor)
        if title.lines:
            self.page.parts.append(title)
        else:
            self.page.parts += outside
        self.forget()
        return at + 2

    def is_underlined(self, at: int) -> bool:
        if at + 1 >= len(self.lines) or self.in_cell:
            return False
        underline = self.lines[at + 1].text
        title = self.lines[at].text
        if not UNDERLINE.match(underline) or not re.search(r"\w", title):
            return False
        return abs(len(title) - len(underline)) <= 1

    def end_of_paragraph(self, at: int, in_item: bool = False) -> int:
        """The line behind a paragraph."""
        patterns = ENDS_PARAGRAPH + ENDS_ITEM if in_item else ENDS_PARAGRAPH
        for index in range(at + 1, len(self.lines)):
            text = self.lines[index].text
            if not text.strip() or text == CONTINUATION:
                return index
            if any(pattern.match(text) for pattern in patterns):
                return index
        return len(self.lines)

    def add_text(self, at: int, begin: int, in_item: bool) -> int:
        """Add a paragraph that begins at an offset of a line; return the line behind it."""
        after = self.end_of_paragraph(at, in_item)
        has_breaks = self.page.has_hard_breaks or "hardbreaks" in self.attributes
        self.forget()
        lines = self.lines[at:after]
        spans = [(begin, lines[0].end)]
        for line in lines[1:]:
            spans.append((line.begin, line.end))
        if has_breaks:
            for span in spans:
                self.add(*span)
        else:
            self.add_sentences(spans)
        following = self.text_at(after)
        precedes_comment = COMMENT.match(following) or PREPROCESSOR.match(following)
        # Behind a comment, the paragraph continues.
        self.needs_text = in_item and bool(precedes_comment)
        return after

    def add_sentences(self, spans: Sequence[tuple[int, int]]) -> None:
        """Add a paragraph; if each of its lines is a sentence, they are separate parts."""
        text = self.page.text
        whole = spans[0][0], spans[-1][1]
        lines = [text[begin:end] for begin, end in spans]
        are_sentences = len(lines) > 1 and all(map(SENTENCE_END.search, lines[:-1]))
        if are_sentences and not FOOTNOTE.search(text, *whole):
            markup = Counter[tuple[str, bool]]()
            for line in lines:
                markup += markup_in(self.syntax.tokens(line))
            if markup == markup_in(self.syntax.tokens(text[slice(*whole)])):
                for begin, end in spans:
                    self.add(begin, end)
                return
        self.add(*whole)
