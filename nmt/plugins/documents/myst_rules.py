"""Blocks of MyST (https://myst-parser.readthedocs.io): directives, targets and comments."""

import re

from markdown_it.rules_block import StateBlock

from nmt.plugins.documents.extensions import add_block, add_title, line_of, line_with_end

OPENING = re.compile(
    r"(?P<fence>`{3,}|~{3,}|:{3,})[ \t]*\{(?P<name>[a-zA-Z][\w:.+-]*)\}[ \t]*(?P<argument>.*)"
)
TITLED = frozenset(
    [
        "admonition",
        "attention",
        "card",
        "caution",
        "danger",
        "dropdown",
        "epigraph",
        "error",
        "exercise",
        "grid-item-card",
        "hint",
        "important",
        "margin",
        "note",
        "prf:definition",
        "prf:theorem",
        "pull-quote",
        "rubric",
        "seealso",
        "sidebar",
        "solution",
        "tab-item",
        "table",
        "tip",
        "todo",
        "topic",
        "warning",
    ]
)
"""Directives whose argument and content are text."""
WITH_TEXT = TITLED | {
    "aside",
    "compound",
    "container",
    "deprecated",
    "div",
    "figure",
    "figure-md",
    "glossary",
    "grid",
    "grid-item",
    "highlights",
    "image",
    "list-table",
    "subfigure",
    "tab-set",
    "versionadded",
    "versionchanged",
    "versionremoved",
}
"""Directives whose content is text."""
OF_CODE = frozenset(
    [
        "autoclass",
        "autodoc2-docstring",
        "autodoc2-object",
        "autodoc2-summary",
        "autofunction",
        "automodule",
        "bibliography",
        "bokeh-plot",
        "code",
        "code-block",
        "code-cell",
        "csv-table",
        "digraph",
        "doctest",
        "embed",
        "eval-rst",
        "figure-md",
        "graph",
        "graphviz",
        "highlight",
        "html-meta",
        "iframe",
        "include",
        "index",
        "js",
        "julia",
        "literalinclude",
        "math",
        "mermaid",
        "ojs",
        "output",
        "parsed-literal",
        "plot",
        "plotly",
        "prompt",
        "py:class",
        "py:function",
        "python",
        "r",
        "raw",
        "sourcecode",
        "sql",
        "stata",
        "tableofcontents",
        "testcode",
        "testoutput",
        "toctree",
        "uml",
        "video",
    ]
)
"""Directives without text, and languages of code that a notebook runs."""
DEEPEST = 15
"""Directives inside of one another; deeper ones are code."""
OPTION = re.compile(r":(?P<key>[\w-]+):(?:[ \t]+(?P<value>\S.*))?")
READABLE = frozenset(["alt", "caption", "subtitle", "title"])
"""Options with text."""
TARGET = re.compile(r"\([^()\n]{1,200}\)=")
BLOCK_BREAK = re.compile(r"\+\+\+(?:[ \t]+\{.*\})?")
SIGNS = re.compile(
    r"^[ \t]*(?:`{3,}|:{3,})\{[a-z]|\{[a-z][\w:.+-]*\}`|^\([\w:. -]+\)=$", re.MULTILINE
)
"""What only files of MyST have, in which % begins a comment."""


def is_myst(state: StateBlock) -> bool:
    """Whether a file has signs of MyST."""
    if "is_myst" not in state.env:
        state.env["is_myst"] = SIGNS.search(state.src) is not None
    return bool(state.env["is_myst"])


def read_line_of_myst(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """A rule of markdown-it for targets, block breaks and comments."""
    if state.is_code_block(first):
        return False
    line = line_of(state, first)
    is_marker = TARGET.fullmatch(line) or BLOCK_BREAK.fullmatch(line)
    is_comment = line.startswith("%") and is_myst(state)
    if not is_marker and not is_comment:
        return False
    return add_block(state, first, first + 1, silent)


def read_directive(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """A rule of markdown-it for a directive; its content is read as usual if it is text."""
    opening = OPENING.fullmatch(line_of(state, first))
    if state.is_code_block(first) or not opening:
        return False
    fence = opening["fence"]
    is_text = opening["name"].lower() in WITH_TEXT and state.level < DEEPEST
    # markdown-it has a rule for code between backquotes.
    if not is_text and fence[0] != ":":
        return False
    if silent:
        return True
    closing = re.compile(rf"{re.escape(fence)}{re.escape(fence[0])}*")
    last = line_with_end(state, first, end, lambda line: bool(closing.fullmatch(line)))
    if last is None:
        last = end
    if not is_text:
        add_code(state, first, last, end, opening)
        return True
    argument = opening["argument"]
    if argument and opening["name"].lower() in TITLED:
        begin = state.bMarks[first] + state.tShift[first] + opening.start("argument")
        add_title(state, argument, first, begin)
    add_block(state, first, first + 1, silent)
    content = read_options(state, first + 1, last)
    # The line that closes a container has a rule of its own.
    read_content(state, content, last, end)
    return True


def add_code(state: StateBlock, first: int, last: int, end: int, opening: re.Match[str]) -> None:
    """Add a directive whose content is not text, as markdown-it adds code."""
    after = min(last + 1, end)
    block = state.push("fence", "", 0)
    block.map = [first, after]
    block.info = f"{{{opening['name']}}}"
    block.content = state.getLines(first + 1, last, state.blkIndent, True)
    state.line = after


def read_options(state: StateBlock, first: int, last: int) -> int:
    """Read the options before the content, and return the number of the line behind them."""
    if first < last and line_of(state, first) == "---":
        closing = line_with_end(state, first, last, lambda line: line == "---")
        if closing is not None:
            add_block(state, first, closing + 1, silent=False)
            return closing + 1
    while first < last and (option := OPTION.fullmatch(line_of(state, first))):
        if option["value"] and option["key"] in READABLE:
            begin = state.bMarks[first] + state.tShift[first] + option.start("value")
            add_title(state, option["value"], first, begin)
        add_block(state, first, first + 1, silent=False)
        first += 1
    return first


def read_content(state: StateBlock, first: int, last: int, end: int) -> None:
    """Read the lines of a directive before the one that closes it."""
    outer_end = state.lineMax
    # markdown-it limits the depth of blocks, so that it does not recurse endlessly.
    state.level += 1
    outer = state.parentType
    state.parentType = "directive"
    state.lineMax = last
    state.md.block.tokenize(state, first, last)
    state.level -= 1
    state.lineMax = outer_end
    state.parentType = outer
    if last < end:
        add_block(state, last, last + 1, silent=False)
    state.line = min(last + 1, end)
