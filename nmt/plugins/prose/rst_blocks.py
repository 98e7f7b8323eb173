"""The blocks of a document in reStructuredText, and the texts in them.

Source: https://docutils.sourceforge.io/docs/ref/rst/restructuredtext.html
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from nmt.plugins.documents import Part
from nmt.plugins.prose.rst_directives import Argument, Directive, directive_named
from nmt.plugins.prose.rst_inline import NAME, Inline, has_letters, normalized
from nmt.plugins.prose.rst_lines import (
    ADORNMENT,
    ANONYMOUS,
    BULLET,
    DOCTEST,
    ENUMERATOR,
    EXPLICIT,
    FIELD,
    GRID_TABLE,
    LINE_BLOCK,
    OPTIONS,
    SIMPLE_TABLE,
    Line,
    least_column,
    line_from,
)
from nmt.plugins.prose.rst_titles import Title
from nmt.plugins.prose.sentences import ProseSentence
from nmt.plugins.prose.wrapping import TAB, display_width

DEEPEST = 30
"""Blocks that are nested more deeply stay untranslated."""
DIRECTIVE = re.compile(rf"\.\.[ \t]+(?:\|[^|\n]+\|[ \t]+)?(?P<name>{NAME})[ \t]?::(?:[ \t]+|$)")
FOOTNOTE = re.compile(r"\.\.[ \t]+\[(?:\d+|#[\w.+:-]*|\*|[\w.+:-]+)\](?:[ \t]+|$)")
ATTRIBUTION = re.compile(r"(?:---?(?!-)|\u2014)[ \t]*\S")
NO_LINE = Line(0, 0, 0, "")
VERSION = re.compile(r"\S+[ \t]*")
TYPE_FIELDS = frozenset(
    [
        "type",
        "rtype",
        "vartype",
        "paramtype",
        "orphan",
        "tocdepth",
        "nosearch",
    ]
)
CLASSIFIER = " : "
TABLES = "tables"
BLOCKS = "blocks of text"
DIRECTIVES = "unknown directives"
TERMS = "terms of glossaries"
FIELDS = "fields at the beginning"
ATTRIBUTIONS = "attributions of quotations"


def have_letters(lines: Iterable[Line]) -> bool:
    return any(has_letters(line.text) for line in lines)


class Page:
    """What the blocks of a document have in common: its parts, and counts of the rest."""

    def __init__(self, text: str, inline: Inline, targets: set[str]) -> None:
        self.text = text
        self.inline = inline
        self.targets = targets
        """The names that explicit targets define."""
        self.parts = list[Part]()
        self.sentences = list[ProseSentence]()
        self.left = Counter[str]()

    def sentence(self, begin: int, end: int) -> ProseSentence:
        sentence = ProseSentence(self.text, (begin, end), self.inline)
        self.sentences.append(sentence)
        return sentence

    def add(self, begin: int, end: int) -> None:
        """Add the text of a block, which lies between two offsets."""
        sentence = self.sentence(begin, end)
        if sentence.lines:
            self.parts.append(sentence)


class Body:
    """Blocks with the same indentation, which may have other blocks inside."""

    def __init__(
        self,
        page: Page,
        lines: Sequence[Line],
        depth: int = 0,
        base: int | None = None,
    ) -> None:
        self.page = page
        self.lines = lines
        self.depth = depth
        self.base = least_column(lines) if base is None else base
        self.is_glossary = False
        # Only the first blocks of a document are bibliographic fields.
        self.is_at_top = depth == 0
        self.readers = (
            (BULLET, self.read_bullet),
            (ENUMERATOR, self.read_enumerated),
            (FIELD, self.read_field),
            (OPTIONS, self.read_option),
            (DOCTEST, self.read_doctest),
            (LINE_BLOCK, self.read_line_block),
            (GRID_TABLE, self.read_grid_table),
            (SIMPLE_TABLE, self.read_simple_table),
            (EXPLICIT, self.read_explicit),
            (ANONYMOUS, self.read_anonymous),
        )

    def read(self) -> None:
        if self.depth > DEEPEST:
            self.page.left[BLOCKS] += have_letters(self.lines)
            return
        at = 0
        while at < len(self.lines):
            at = self.read_block(at)

    def line_at(self, index: int) -> Line:
        """A line, which is blank behind the end."""
        return self.lines[index] if index < len(self.lines) else NO_LINE

    def read_block(self, at: int) -> int:
        """Read the block that begins with a line; return the line behind it."""
        line = self.lines[at]
        if not line:
            return at + 1
        if line.column > self.base:
            return self.read_quotation(at)
        for pattern, reader in self.readers:
            match = pattern.match(line.text)
            if match:
                after = reader(at, match)
                if after:
                    if pattern not in (FIELD, EXPLICIT):
                        self.is_at_top = False
                    return after
        return self.read_title(at) or self.read_text(at)

    def inner(self, lines: Sequence[Line], base: int | None = None) -> "Body":
        return Body(self.page, lines, self.depth + 1, base)

    def end_of_indented(self, at: int, column: int) -> int:
        """The line behind those from `at` that are blank or begin at least at a column."""
        end = at
        for index in range(at, len(self.lines)):
            line = self.lines[index]
            if line and line.column < column:
                break
            if line:
                end = index + 1
        return end

    def behind(self, line: Line, size: int) -> Line:
        """The rest of a line behind a sign of this size."""
        column = line.column + len(line.text[:size].expandtabs(TAB))
        return line_from(self.page.text, line.begin + size, line.end, column)

    def read_quotation(self, at: int) -> int:
        end = self.end_of_indented(at, self.base + 1)
        self.inner(self.lines[at:end]).read()
        return end

    def read_bullet(self, at: int, match: re.Match[str]) -> int:
        return self.read_item(at, match.end())

    def read_item(self, at: int, size: int) -> int:
        """Read an item of a list, whose sign has this size."""
        first = self.behind(self.lines[at], size)
        column = first.column
        if not first:
            # The content begins on the next line.
            column = self.base + 1
            following = self.end_of_indented(at + 1, column)
            column = least_column(self.lines[at + 1 : following]) or column
        end = self.end_of_indented(at + 1, column)
        self.inner([first, *self.lines[at + 1 : end]], column).read()
        return end

    def read_enumerated(self, at: int, match: re.Match[str]) -> int:
        """Read an item, unless the next line shows that it is a paragraph."""
        following = self.line_at(at + 1)
        if following and following.column <= self.base and not ENUMERATOR.match(following.text):
            return 0
        return self.read_item(at, match.end())

    def block_behind(self, at: int, size: int) -> tuple[list[Line], int]:
        """The lines of a block that begins behind a sign, and the line behind it.

        The first line begins at the column of the others.
        """
        end = self.end_of_indented(at + 1, self.base + 1)
        rest = list(self.lines[at + 1 : end])
        first = self.behind(self.lines[at], size)
        if any(rest):
            first = Line(first.begin, first.end, least_column(rest), first.text)
        return [first, *rest], end

    def read_field(self, at: int, match: re.Match[str]) -> int:
        lines, end = self.block_behind(at, match.end())
        if self.is_at_top:
            self.page.left[FIELDS] += have_letters(lines)
        elif match["name"].partition(" ")[0] not in TYPE_FIELDS:
            self.inner(lines).read()
        return end

    def read_option(self, at: int, match: re.Match[str]) -> int:
        lines, end = self.block_behind(at, match.end())
        # Without a description, it is a paragraph.
        if not any(lines):
            return 0
        self.inner(lines).read()
        return end

    def read_doctest(self, at: int, match: re.Match[str]) -> int:
        return self.next_blank(at)

    def next_blank(self, at: int) -> int:
        """The next blank line, or the end."""
        while self.line_at(at):
            at += 1
        return at

    def read_line_block(self, at: int, match: re.Match[str]) -> int:
        first = self.behind(self.lines[at], match.end())
        end = first.end
        at += 1
        # An indented line continues the one before it.
        while self.line_at(at) and self.line_at(at).column > self.base:
            end = self.lines[at].end
            at += 1
        if first:
            self.page.add(first.begin, end)
        return at

    def read_grid_table(self, at: int, match: re.Match[str]) -> int:
        return self.leave_table(at, self.next_blank(at))

    def read_simple_table(self, at: int, match: re.Match[str]) -> int:
        """Leave a table, which ends with the second or third border that a blank line follows."""
        borders = 0
        for index in range(at, len(self.lines)):
            line = self.lines[index]
            if line.text.startswith("=") and SIMPLE_TABLE.match(line.text):
                borders += 1
                if borders > 1 and not self.line_at(index + 1):
                    return self.leave_table(at, index + 1)
        return self.leave_table(at, self.next_blank(at))

    def leave_table(self, at: int, end: int) -> int:
        self.page.left[TABLES] += have_letters(self.lines[at:end])
        return end

    def read_anonymous(self, at: int, match: re.Match[str]) -> int:
        return max(at + 1, self.end_of_indented(at + 1, self.base + 1))

    def read_explicit(self, at: int, match: re.Match[str]) -> int:
        text = self.lines[at].text
        directive = DIRECTIVE.match(text)
        if directive:
            self.is_at_top = False
            return self.read_directive(at, directive)
        footnote = FOOTNOTE.match(text)
        if footnote:
            lines, end = self.block_behind(at, footnote.end())
            self.inner(lines).read()
            return end
        # A target or a comment.
        return max(at + 1, self.end_of_indented(at + 1, self.base + 1))

    def read_directive(self, at: int, match: re.Match[str]) -> int:
        lines, end = self.block_behind(at, match.end())
        name = match["name"].lower()
        if name == "replace":
            self.inner(lines).read()
            return end
        directive = directive_named(name)
        if directive is None:
            self.page.left[DIRECTIVES] += have_letters(lines)
            return end
        argument, options, content = divided(lines)
        self.read_options(options, directive)
        if directive.argument is Argument.VERSION and argument:
            argument[0] = self.behind_version(argument[0])
        if directive.argument is Argument.TITLE:
            self.inner(argument).read()
        elif directive.argument is not Argument.KEPT:
            content = [*argument, *content]
        if directive.has_text:
            body = self.inner(content)
            body.is_glossary = name == "glossary"
            body.read()
        elif name == "csv-table":
            self.page.left[TABLES] += have_letters(content)
        return end

    def behind_version(self, line: Line) -> Line:
        """The text behind a version at the beginning of a line."""
        version = VERSION.match(line.text)
        size = version.end() if version else 0
        rest = line_from(self.page.text, line.begin + size, line.end)
        return Line(rest.begin, rest.end, line.column, rest.text)

    def read_options(self, lines: Sequence[Line], directive: Directive) -> None:
        """Read the options of a directive, of which some have text."""
        for index, line in enumerate(lines):
            option = FIELD.match(line.text)
            if not option:
                continue
            if option["name"] in directive.options:
                end = line.end
                for further in lines[index + 1 :]:
                    if FIELD.match(further.text):
                        break
                    end = further.end
                self.page.add(line.begin + option.end(), end)

    def read_title(self, at: int) -> int:
        """Read a title and its adornment, or a line across the page; 0 if there is none."""
        line = self.lines[at]
        following = self.line_at(at + 1)
        if ADORNMENT.match(line.text):
            return self.read_overlined(at)
        if not ADORNMENT.match(following.text) or following.column != self.base:
            return 0
        if len(following.text) < min(display_width(line.text), 4):
            return 0
        self.add_title(line, following)
        return at + 2

    def read_overlined(self, at: int) -> int:
        """Read a title with a line above it, or a line across the page; 0 if there is none."""
        line = self.lines[at]
        title = self.line_at(at + 1)
        if not title:
            return at + 1 if len(line.text) >= 4 else 0
        underline = self.line_at(at + 2)
        if underline.text != line.text:
            return 0
        self.add_title(title, underline, line)
        return at + 3

    def add_title(self, line: Line, underline: Line, overline: Line | None = None) -> None:
        self.is_at_top = True
        sentence = self.page.sentence(line.begin, line.end)
        name = normalized(line.text)
        is_referenced = name in self.page.inline.referenced and name not in self.page.targets
        title = Title(self.page.text, sentence, line, underline, overline, is_referenced)
        if title.lines:
            self.page.parts.append(title)

    def read_text(self, at: int) -> int:
        """Read a paragraph or a definition."""
        self.is_at_top = False
        line = self.lines[at]
        following = self.line_at(at + 1)
        if following and following.column > self.base:
            return self.read_definition(at)
        end = at + 1
        while self.line_at(end) and self.line_at(end).column == self.base:
            end += 1
        return self.add_paragraph(line, self.lines[end - 1], end)

    def read_definition(self, at: int) -> int:
        line = self.lines[at]
        end = self.end_of_indented(at + 1, self.base + 1)
        if line.text.endswith("::"):
            # A paragraph of one line, before a literal block that lacks its blank line.
            return self.add_paragraph(line, line, at + 1)
        if self.is_glossary:
            self.page.left[TERMS] += has_letters(line.text)
        # A term with a classifier is a parameter of a function and its type.
        elif CLASSIFIER not in line.text:
            self.page.add(line.begin, line.end)
        self.inner(self.lines[at + 1 : end]).read()
        return end

    def add_paragraph(self, first: Line, last: Line, after: int) -> int:
        """Add a paragraph; return the line behind it, and behind the literal block that follows."""
        end = last.end
        if not last.text.endswith("::"):
            if self.is_glossary:
                self.page.left[TERMS] += has_letters(first.text)
            elif self.depth and ATTRIBUTION.match(first.text):
                self.page.left[ATTRIBUTIONS] += has_letters(first.text)
            else:
                self.page.add(first.begin, end)
            return after
        if end - 2 > first.begin:
            self.page.add(first.begin, end - 2)
        return self.end_of_literal(after)

    def end_of_literal(self, at: int) -> int:
        """The line behind a literal block."""
        while at < len(self.lines) and not self.lines[at]:
            at += 1
        if at == len(self.lines):
            return at
        if self.lines[at].column > self.base:
            return self.end_of_indented(at, self.base + 1)
        # Without indentation, each of its lines begins with the same sign.
        sign = self.lines[at].text[0]
        if sign.isalnum():
            return at
        while self.line_at(at).text.startswith(sign):
            at += 1
        return at


def divided(lines: Sequence[Line]) -> tuple[list[Line], list[Line], list[Line]]:
    """The argument, the options and the content of a directive."""
    # The argument may begin on the second line.
    first = 0 if lines[0] else 1
    at = first
    while at < len(lines) and lines[at] and not FIELD.match(lines[at].text):
        at += 1
    argument = list(lines[first:at])
    first = at
    if at < len(lines) and lines[at]:
        while at < len(lines) and lines[at]:
            at += 1
    return argument, list(lines[first:at]), list(lines[at:])
