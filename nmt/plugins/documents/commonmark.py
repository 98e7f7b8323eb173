"""The blocks of a Markdown file: CommonMark, GitHub's tables and footnotes, and others."""

import re
from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock

from nmt.plugins.documents.declarations import Declarations
from nmt.plugins.documents.document import Part, Translated
from nmt.plugins.documents.extensions import (
    DEFINITION,
    read_container,
    read_formula,
    read_line_of_site,
    read_template,
)
from nmt.plugins.documents.html import Page

FOOTNOTE = re.compile(r"\[\^[^\]\s]+\]:[ \t]*")
# Python-Markdown's blocks, whose content is indented: !!! note "Title", ??? tip, === "Tab"
ADMONITION = re.compile(
    r'(?:(?:!!!|\?\?\?\+?)[ \t]+[\w-]+(?:[ \t]+[\w-]+)*|===[!+]?(?=[ \t]+"))'
    r'(?:[ \t]+"(?P<title>[^"]*)")?[ \t]*'
)
INDENT = 4  # columns, of what belongs to a footnote or an admonition


def read_footnote(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """A rule of markdown-it for the definition of a footnote, with all its paragraphs."""
    return read_marked(FOOTNOTE, state, first, end, silent)


def read_definition(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """A rule of markdown-it for the definition of a term, which precedes it."""
    return read_marked(DEFINITION, state, first, end, silent)


def read_marked(
    marked: re.Pattern[str],
    state: StateBlock,
    first: int,
    end: int,
    silent: bool,
) -> bool:
    """Read a block whose first line begins with a marker and whose other lines are indented."""
    if state.is_code_block(first):
        return False
    begin = state.bMarks[first] + state.tShift[first]
    marker = marked.match(state.src, begin, state.eMarks[first])
    if marker and not silent:
        of_line = state.bMarks[first], state.tShift[first], state.sCount[first]
        state.bMarks[first], state.tShift[first] = marker.end(), 0
        state.sCount[first] = state.blkIndent + INDENT
        read_inside(state, first, first, end)
        state.bMarks[first], state.tShift[first], state.sCount[first] = of_line
    return marker is not None


def read_admonition(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """A rule of markdown-it for an admonition."""
    if state.is_code_block(first):
        return False
    begin = state.bMarks[first] + state.tShift[first]
    marker = ADMONITION.fullmatch(state.src, begin, state.eMarks[first])
    following = state.skipEmptyLines(first + 1)
    if not marker or following >= end or state.sCount[following] - state.blkIndent < INDENT:
        return False
    if not silent:
        if marker["title"]:
            title = state.push("inline", "", 0)
            title.content, title.map, title.children = marker["title"], [first, first + 1], []
        read_inside(state, first, first + 1, end)
    return True


def read_inside(state: StateBlock, first: int, content: int, end: int) -> None:
    """Read the indented content, from the line `content`, of a block that begins at `first`."""
    outer = state.parentType
    state.parentType = "indented"
    state.blkIndent += INDENT
    opening = state.push("indented_open", "div", 1)
    state.md.block.tokenize(state, content, end)
    opening.map = [first, state.line]
    state.push("indented_close", "div", -1)
    state.blkIndent -= INDENT
    state.parentType = outer


PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
INTERRUPTS: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}
PARSER.block.ruler.before("reference", "footnote", read_footnote, INTERRUPTS)
PARSER.block.ruler.before("footnote", "admonition", read_admonition, INTERRUPTS)
PARSER.block.ruler.before("admonition", "definition", read_definition, INTERRUPTS)
PARSER.block.ruler.before("table", "template", read_template, INTERRUPTS)
PARSER.block.ruler.before("table", "line_of_site", read_line_of_site, INTERRUPTS)
PARSER.block.ruler.before("table", "formula", read_formula, INTERRUPTS)
PARSER.block.ruler.before("table", "container", read_container, INTERRUPTS)


class NestedPage(Part):
    """HTML inside a list or quotation, whose lines have prefixes."""

    def __init__(
        self,
        raw: str,
        begin: int,
        prefixes: Sequence[str],
        lines: Sequence[str],
        declarations: Declarations | None,
    ) -> None:
        self.raw, self.prefixes = raw, prefixes
        self.text = "\n".join(lines)
        self.page = Page(self.text, 0, declarations)
        self.left = self.page.left
        super().__init__(begin, begin + len(raw), self.page.lines)

    def render(self, translations: Sequence[Translated]) -> str:
        text = self.page.render(translations)
        if text == self.text:
            return self.raw
        lines = text.split("\n")
        prefixes = self.prefixes
        if len(lines) != len(prefixes):
            usual = max(prefixes[1:], key=len)
            prefixes = [prefixes[0]] + [usual] * (len(lines) - 1)
        line_end = "\r\n" if "\r\n" in self.raw else "\n"
        written = map(str.__add__, prefixes, lines)
        after = self.raw[len(self.raw.rstrip("\r\n")) :]
        return line_end.join(written) + after


def nested_page(
    raw: str,
    begin: int,
    content: str,
    declarations: Declarations | None,
) -> NestedPage | None:
    """The page with this content, whose lines in the file are `raw`; None if they differ."""
    in_file = raw.rstrip("\r\n").splitlines()
    lines = content.rstrip("\n").split("\n")
    if len(in_file) != len(lines):
        return None
    prefixes = list[str]()
    for whole, line in zip(in_file, lines, strict=True):
        if not whole.endswith(line):
            return None
        prefixes.append(whole.removesuffix(line) if line else whole)
    return NestedPage(raw, begin, prefixes, lines, declarations)
