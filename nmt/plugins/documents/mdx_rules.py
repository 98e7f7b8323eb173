"""The rules of MDX: statements, tags and expressions take the place of HTML."""

from markdown_it import MarkdownIt
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock, list_block
from markdown_it.rules_inline import StateInline

from nmt.plugins.documents.commonmark import INDENT, INTERRUPTS, parser
from nmt.plugins.documents.jsx import Jsx

NOT_IN_MDX = ["autolink", "code", "definition", "html_block", "html_inline", "line_of_site"]
STATEMENTS = ("import ", "import{", "import'", 'import"', "export ", "export{", "export*")


def jsx_of(state: StateBlock | StateInline) -> Jsx:
    """The reader of a text, which counts its failures."""
    jsx = state.env.get("jsx")
    if not isinstance(jsx, Jsx) or jsx.text is not state.src:
        jsx = Jsx(state.src)
        state.env["jsx"] = jsx
    return jsx


def add_lines(state: StateBlock, type: str, first: int, end: int) -> None:
    """Add the lines up to the offset `end` as a block of a type."""
    after = first
    while after < state.lineMax and state.bMarks[after] < end:
        after += 1
    block = state.push(type, "", 0)
    block.map = [first, after]
    block.content = state.src[state.bMarks[first] : end]
    state.line = after


def read_statements(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """A rule of markdown-it for import and export."""
    begin = state.bMarks[first]
    is_at_root = state.level == 0 and not state.tShift[first]
    if not is_at_root or not state.src.startswith(STATEMENTS, begin):
        return False
    # Statements do not interrupt a paragraph.
    if silent:
        return False
    add_lines(state, "copied_block", first, jsx_of(state).end_of_code(begin))
    return True


def read_jsx_block(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """A rule of markdown-it for lines that consist of tags and expressions."""
    at = state.bMarks[first] + state.tShift[first]
    jsx = jsx_of(state)
    if not state.src.startswith(("<", "{"), at):
        return False
    while state.src.startswith(("<", "{"), at):
        tag = jsx.read(at)
        if tag is None:
            return False
        at = tag.end
        while state.src.startswith((" ", "\t"), at):
            at += 1
    # A line with text beside its tags is a paragraph.
    if at < len(state.src) and state.src[at] != "\n":
        return False
    # The last line of a list or quotation limits a tag inside.
    if at > state.eMarks[end - 1]:
        return False
    if not silent:
        add_lines(state, "jsx_block", first, at)
    return True


def read_list(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """markdown-it's rule for lists, which may be indented by 4 columns or more."""
    outer = state.blkIndent
    # Without code that is indented, its first item could be so far to the right that markdown-it
    # takes the next one for a part of it.
    if not silent and state.sCount[first] - outer >= INDENT:
        state.blkIndent = state.sCount[first]
    is_list = list_block(state, first, end, silent)
    state.blkIndent = outer
    return is_list


def read_paragraph(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """A rule of markdown-it for a paragraph, which blocks with any indentation may end."""
    outer = state.parentType
    state.parentType = "paragraph"
    rules = state.md.block.ruler.getRules("paragraph")
    after = first + 1
    while after < end and not state.isEmpty(after):
        # markdown-it marks lines that only continue a quotation with a negative indentation.
        is_lazy = state.sCount[after] < 0
        if not is_lazy and any(rule(state, after, end, True) for rule in rules):
            break
        after += 1
    state.parentType = outer
    opening = state.push("paragraph_open", "p", 1)
    opening.map = [first, after]
    text = state.push("inline", "", 0)
    text.content = state.getLines(first, after, state.blkIndent, False).strip()
    text.map = [first, after]
    text.children = []
    state.push("paragraph_close", "p", -1)
    state.line = after
    return True


def read_jsx_inline(state: StateInline, silent: bool) -> bool:
    """A rule of markdown-it for a tag or expression in a line."""
    if state.src[state.pos] not in "<{":
        return False
    tag = jsx_of(state).read(state.pos)
    if tag is None:
        return False
    if not silent:
        token = state.push("html_inline", "", 0)
        token.content = state.src[tag.begin : tag.end]
    state.pos = tag.end
    return True


def parser_of_mdx() -> MarkdownIt:
    markdown = parser().disable(NOT_IN_MDX)
    interrupts: RuleOptionsType = {"alt": INTERRUPTS}
    in_list: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote"]}
    markdown.block.ruler.at("list", read_list, in_list)
    markdown.block.ruler.at("paragraph", read_paragraph)
    markdown.block.ruler.before("template", "jsx_block", read_jsx_block, interrupts)
    markdown.block.ruler.before("jsx_block", "statements", read_statements)
    markdown.inline.ruler.before("html_inline", "jsx", read_jsx_inline)
    return markdown


PARSER_OF_MDX = parser_of_mdx()
