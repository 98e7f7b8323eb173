"""The blocks of a Markdown file: CommonMark, GitHub's tables and footnotes, and others."""

import re

from markdown_it import MarkdownIt
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

from nmt.plugins.documents.extensions import (
    DEEPEST,
    DEFINITION,
    add_title,
    read_comment,
    read_container,
    read_formula,
    read_line_of_site,
    read_template,
    read_too_deep,
)
from nmt.plugins.documents.myst_rules import is_myst, read_directive, read_line_of_myst
from nmt.plugins.documents.roles import ROLE, parts_of_role

FOOTNOTE = re.compile(r"\[\^[^\]\s]+\]:[ \t]*")
# Python-Markdown's blocks, whose content is indented: !!! note "Title", ??? tip, === "Tab"
ADMONITION = re.compile(
    r'(?:(?:!!!|\?\?\?\+?)[ \t]+[\w-]+(?:[ \t]+[\w-]+)*|===[!+]?(?=[ \t]+"))'
    r'(?:[ \t]+"(?P<title>[^"]*)")?[ \t]*'
)
FIELD = re.compile(r":(?!:)[^:\n`]{1,100}:[ \t]+(?=\S)")
ABBREVIATION = re.compile(r"\*\[[^\[\]\n]{1,200}\]:[ \t]+(?=\S)")
INTERRUPTS = ["paragraph", "reference", "blockquote", "list"]
"""The blocks that other blocks may interrupt, even without an empty line between them."""
INDENT = 4  # columns, of what belongs to a footnote or an admonition


def read_footnote(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """A rule of markdown-it for the definition of a footnote, with all its paragraphs."""
    return read_marked(FOOTNOTE, state, first, end, silent)


def read_definition(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """A rule of markdown-it for the definition of a term, which precedes it."""
    return read_marked(DEFINITION, state, first, end, silent)


def read_field(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """A rule of markdown-it for a field of MyST, such as ":name: text"."""
    return is_myst(state) and read_marked(FIELD, state, first, end, silent)


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
    if not marker:
        return False
    # With `silent`, markdown-it only asks whether this block would end a paragraph.
    if not silent:
        # The rest of the first line belongs to the content, as if it were indented, too.
        line_begin = state.bMarks[first]
        shift = state.tShift[first]
        indent = state.sCount[first]
        state.bMarks[first] = marker.end()
        state.tShift[first] = 0
        state.sCount[first] = state.blkIndent + INDENT
        read_inside(state, first, first, end)
        # For the blocks around this one, as markdown-it's own rules do.
        state.bMarks[first] = line_begin
        state.tShift[first] = shift
        state.sCount[first] = indent
    return True


def read_admonition(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """A rule of markdown-it for an admonition."""
    if state.is_code_block(first):
        return False
    begin = state.bMarks[first] + state.tShift[first]
    marker = ADMONITION.fullmatch(state.src, begin, state.eMarks[first])
    if not marker:
        return False
    # Without content, the line is text, as Python-Markdown reads it.
    following = state.skipEmptyLines(first + 1)
    if following >= end or state.sCount[following] - state.blkIndent < INDENT:
        return False
    if not silent:
        if marker["title"]:
            add_title(state, marker["title"], first, marker.start("title"))
        read_inside(state, first, first + 1, end)
    return True


def read_inside(state: StateBlock, first: int, content: int, end: int) -> None:
    """Read the indented content, from the line `content`, of a block that begins at `first`."""
    outer = state.parentType
    state.parentType = "indented"
    # `tokenize` stops at a line that is indented less than this.
    state.blkIndent += INDENT
    opening = state.push("indented_open", "div", 1)
    state.md.block.tokenize(state, content, end)
    opening.map = [first, state.line]
    state.push("indented_close", "div", -1)
    state.blkIndent -= INDENT
    state.parentType = outer


def read_abbreviation(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """A rule of markdown-it for a line that explains an abbreviation."""
    if state.is_code_block(first):
        return False
    begin = state.bMarks[first] + state.tShift[first]
    marker = ABBREVIATION.match(state.src, begin, state.eMarks[first])
    if not marker:
        return False
    if not silent:
        text = state.src[marker.end() : state.eMarks[first]]
        add_title(state, text, first, marker.end())
        state.line = first + 1
    return True


def read_role(state: StateInline, silent: bool) -> bool:
    """A rule of markdown-it for a role, whose text a translation may change."""
    role = ROLE.match(state.src, state.pos)
    if not role:
        return False
    if not silent:
        token = state.push("role", "", 0)
        before, _, after = parts_of_role(role[0])
        token.content = before + after
    state.pos = role.end()
    return True


def parser() -> MarkdownIt:
    """The parser of CommonMark, tables and strikethrough, with the rules of this package."""
    markdown = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    # Nothing is rendered, so an address such as javascript: is no danger, and its link stays one.
    setattr(markdown, "validateLink", lambda url: True)  # noqa: B010
    # At this level, markdown-it ignores the rest of the file. A list has two levels.
    markdown.options["maxNesting"] = DEEPEST + 2
    interrupts: RuleOptionsType = {"alt": INTERRUPTS}
    add = markdown.block.ruler.before
    # Before references, because "[^1]: text" would also be the definition of a reference.
    add("reference", "footnote", read_footnote, interrupts)
    add("footnote", "admonition", read_admonition, interrupts)
    add("admonition", "definition", read_definition, interrupts)
    # `table` is the first rule of markdown-it, so these come before all of CommonMark.
    add("table", "template", read_template, interrupts)
    add("table", "comment", read_comment, interrupts)
    add("table", "line_of_site", read_line_of_site, interrupts)
    add("table", "formula", read_formula, interrupts)
    add("table", "container", read_container, interrupts)
    add("template", "directive", read_directive, interrupts)
    add("directive", "too_deep", read_too_deep)
    add("template", "line_of_myst", read_line_of_myst, interrupts)
    add("reference", "field", read_field, interrupts)
    add("reference", "abbreviation", read_abbreviation, interrupts)
    markdown.inline.ruler.before("backticks", "role", read_role)
    return markdown


PARSER = parser()
