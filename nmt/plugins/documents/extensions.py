"""Blocks of site generators that CommonMark lacks: templates, containers, formulas, definitions."""

import re
from collections.abc import Callable

from markdown_it.rules_block import StateBlock

from nmt.plugins.documents.code_elements import (
    FENCE,
    WITHOUT_TEXT,
    is_of_code,
    is_setting,
    may_be_setting,
)

INSIDE = r"[\s\S]{0,1000}?"  # of a paragraph, so without empty lines
TAG = re.compile(
    rf"\{{\{{(?:<{INSIDE}>|%{INSIDE}%)\}}\}}"  # Hugo: {{< tag >}}, {{% tag %}}
    rf"|\{{%{INSIDE}%\}}"  # Liquid and Jinja
    rf"|\{{#{INSIDE}#\}}"  # their comments
    rf"|<%(?!=){INSIDE}%>"  # ERB
)
"""A tag of Hugo, Liquid, Jinja or ERB. Tags such as {{ name }} stand for words instead."""
ADDRESS = re.compile(
    rf"\([ \t]*(?:{TAG.pattern}|\{{\{{[^{{}}\n]{{1,500}}\}}\}})[^\s()]{{0,500}}[ \t]*\)"
)
"""The address of a link that a template computes, in its brackets."""
ATTRIBUTE = r"(?:[#.][\w:.-]+|[\w-]+=(?:\"[^\"\n]*\"|'[^'\n]*'|[\w%.-]+)|data-[\w-]+)"
ATTRIBUTES = rf"\{{:?[ \t]*{ATTRIBUTE}(?:[ \t]+{ATTRIBUTE}){{0,20}}[ \t]*\}}"
"""Attributes after headings, links and other elements: {#name .class key="value"}."""
OPENING_OF_TAG = re.compile(r"\{\{[<%]|\{%")
CLOSING_OF_TAG = {"{{<": ">}}", "{{%": "%}}", "{%": "%}"}
MOST_LINES_OF_TAG = 50
"""The lines to search for the end of a tag; longer tags are text."""
MOST_NAMES = 50
"""The names of tags with code that nothing closes; further ones are not searched."""
NAME_OF_TAG = re.compile(r"\{\{[<%]-?\s*([\w./-]+)|\{%-?\s*(\w+)")
CONTAINER = re.compile(
    r":{3,}[ \t]*(?:(?:\{[^{}]*\}|\w[\w.-]*)[ \t]*)?"
    r"(?:\[(?P<label>[^\[\]]*)\]|(?P<title>[^\s{\[][^{}]*?))?[ \t]*(?:\{[^{}]*\})?[ \t]*"
)
"""A line that opens or closes a container of Docusaurus, VitePress or Pandoc: :::note Title."""
DEFINITION = re.compile(r":[ \t]+(?=\S)")
OF_SITE = re.compile(
    r"\{::?[^{}\n]*\}"  # attributes of kramdown
    r'|-+8<-+(?:[ \t]+"[^"\n]*")?'  # snippets of MkDocs
    r"|<<<[ \t]+[@./].*"  # of VitePress
    r"|\\(?!begin|end)[a-zA-Z]+(?:\[[^\[\]\n]*\]|\{[^{}\n]*\}){0,5}"  # commands of TeX for Pandoc
    r"|import (?:[\w*{}, ]{1,500} from )?(?:\"[^\"\n]+\"|'[^'\n]+')\s*;?"  # MDX
    r"|export (?:const |let |default |function |\{).*[;{}\])]"
)
"""A line for the generator of the site, without text."""
FORMULAS = {"$$": "$$", r"\[": r"\]", r"\\[": r"\\]"}
ENVIRONMENT = re.compile(r"\\begin\{([a-z]+\*?)\}")

DEEPEST = 32
"""Maximum level of blocks; a list takes two. Hostile files would otherwise take long."""


def read_too_deep(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """A rule of markdown-it for the content of a list or quotation that is nested too deeply."""
    if silent or state.level < DEEPEST:
        return False
    after = first + 1
    # A line that is indented less belongs to a block around this one.
    while after < end and (state.isEmpty(after) or state.sCount[after] >= state.blkIndent):
        after += 1
    token = state.push("too_deep", "", 0)
    token.map = [first, after]
    token.content = state.getLines(first, after, 0, False)
    state.line = after
    return True


def line_of(state: StateBlock, number: int) -> str:
    """A line of the file, without its indentation."""
    begin = state.bMarks[number] + state.tShift[number]
    return state.src[begin : state.eMarks[number]].rstrip()


def add_block(state: StateBlock, first: int, after: int, silent: bool, tags: str = "") -> bool:
    """Add lines that stay as they are.

    Their `tags`, by default the first line, may have parameters that readers see.
    """
    if not silent:
        block = state.push("copied_block", "", 0)
        block.map = [first, after]
        block.content = tags or line_of(state, first)
        state.line = after
    return True


def add_title(state: StateBlock, text: str, line: int, begin: int) -> None:
    """Add the title of a block, which is text at the offset `begin` on this line."""
    title = state.push("inline", "", 0)
    title.content = text
    title.map = [line, line + 1]
    title.children = []
    # Where the text begins in its line of the file. The same text may be in the line before it.
    title.meta["column"] = begin - (state.src.rfind("\n", 0, begin) + 1)


def line_with_end(
    state: StateBlock,
    first: int,
    end: int,
    is_end: Callable[[str], bool],
) -> int | None:
    """The number of the first line after `first` that ends a block; None if no line does."""
    for number in range(first + 1, end):
        line = line_of(state, number)
        is_outside = state.sCount[number] < state.blkIndent
        # A line with less indentation ends the list or quotation around the block.
        if line and is_outside:
            return None
        if is_end(line):
            return number
    return None


def read_template(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """A rule of markdown-it for lines of tags, with their content if it is not text."""
    line = line_of(state, first)
    if state.is_code_block(first) or not line.startswith(("{", "<%")):
        return False
    tag = long_tag(state, first, end)
    # A tag on a single line may have text beside it, which the code below looks for.
    if tag:
        return add_block(state, first, first + tag.count("\n") + 1, silent, tag)
    after = end_of_element(state, first, end)
    if after is None:
        if TAG.sub("", line).strip():  # the line has text besides its tags
            return False
        after = first + 1
    return add_block(state, first, after, silent)


def long_tag(state: StateBlock, first: int, end: int) -> str:
    """The tag on several lines that begins here; "" if there is none."""
    opening = OPENING_OF_TAG.match(line_of(state, first))
    if not opening:
        return ""
    closing = CLOSING_OF_TAG[opening[0]]
    lines = list[str]()
    # The limit keeps the work linear in files with thousands of tags that nothing closes.
    for number in range(first, min(end, first + MOST_LINES_OF_TAG)):
        line = line_of(state, number)
        if not line:
            break
        lines.append(line)
        if closing in line:
            text = "\n".join(lines)
            is_long = len(lines) > 1
            return text if is_long and TAG.fullmatch(text) else ""
    return ""


def end_of_element(state: StateBlock, first: int, end: int) -> int | None:
    """The number of the line after an element whose content is not text; None if there is none."""
    line = line_of(state, first)
    tag = NAME_OF_TAG.match(line)
    if not tag:
        return None
    name = tag[1] or tag[2]
    closing = re.compile(rf"\{{(?:\{{[<%]-?\s*/\s*|%-?\s*end){re.escape(name)}\b")
    if is_of_code(name) and closing.search(line):
        *_, last_tag = closing.finditer(line)
        after_element = TAG.sub("", line[last_tag.start() :])
        return None if after_element.strip() else first + 1
    if is_of_code(name):
        last = end_of_code(state, first, end, name, closing)
    else:
        last = end_of_settings(state, first, end, closing)
    if last is None:
        return None
    has_text = bool(TAG.sub("", line).strip())
    return None if has_text else last + 1


def end_of_code(
    state: StateBlock, first: int, end: int, name: str, closing: re.Pattern[str]
) -> int | None:
    """The number of the line that closes an element with a name of code; None if none does."""
    # Files may have thousands of such tags that nothing closes. For each name, this is the line up
    # to which no tag closes it.
    searched = state.env.setdefault("searched_tags", {})
    if first < searched.get(name, 0):
        return None
    if name not in searched and len(searched) >= MOST_NAMES:
        return None
    # Where the author of a page fences code in such an element, its other lines are text.
    may_have_fences = name not in WITHOUT_TEXT

    def ends(line: str) -> bool:
        return bool(closing.search(line) or (may_have_fences and FENCE.match(line)))

    last = line_with_end(state, first, end, ends)
    if last is not None and closing.search(line_of(state, last)):
        return last
    if last is not None:
        searched[name] = last
    # Inside a list or quotation, the search ended with it. The closing tag may follow later in the
    # file.
    elif end == state.lineMax:
        searched[name] = end
    return None


def end_of_settings(
    state: StateBlock, first: int, end: int, closing: re.Pattern[str]
) -> int | None:
    """The number of the line that closes an element with a configuration; None if none does."""
    has_setting = False
    # The search ends with the first line of text, so the work stays linear.
    for number in range(first + 1, end):
        line = line_of(state, number)
        if closing.search(line):
            return number if has_setting else None
        has_setting = has_setting or is_setting(line)
        if not may_be_setting(line):
            return None
    return None


def read_comment(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """A rule of markdown-it for comments of Obsidian and kramdown on several lines."""
    if state.is_code_block(first):
        return False
    line = line_of(state, first)
    closing = ""
    if line.startswith("%%") and line.count("%%") == 1:
        closing = "%%"
    elif line in ("{::comment}", "{::nomarkdown}"):
        closing = "{:/"
    if not closing or state.env.get("unclosed") == closing:
        return False
    last = line_with_end(state, first, end, lambda text: closing in text)
    if last is None:
        if end == state.lineMax:
            # Do not search for it again, which would take quadratic time.
            state.env["unclosed"] = closing
        return False
    return add_block(state, first, last + 1, silent)


def read_line_of_site(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """A rule of markdown-it for lines without text."""
    if state.is_code_block(first) or not OF_SITE.fullmatch(line_of(state, first)):
        return False
    return add_block(state, first, first + 1, silent)


def read_formula(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """A rule of markdown-it for formulas on separate lines."""
    if state.is_code_block(first):
        return False
    line = line_of(state, first)
    marks = marks_of_formula(line)
    if marks is None:
        return False
    opening, closing = marks
    content = line[len(opening) :]
    if closing in content:
        # A line with text after a formula is a paragraph.
        is_alone = content.endswith(closing) and content.count(closing) == 1
        return is_alone and add_block(state, first, first + 1, silent)
    last = line_with_end(state, first, end, lambda text: closing in text)
    if last is None or not line_of(state, last).endswith(closing):
        return False
    return add_block(state, first, last + 1, silent)


def marks_of_formula(line: str) -> tuple[str, str] | None:
    """The marks around the formula at the beginning of a line; None if there is no formula."""
    environment = ENVIRONMENT.match(line)
    if environment:
        return environment[0], rf"\end{{{environment[1]}}}"
    for opening, closing in FORMULAS.items():
        if line.startswith(opening):
            return opening, closing
    return None


def read_container(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """A rule of markdown-it for the lines around a container, whose content is read as usual."""
    line = line_of(state, first)
    marker = CONTAINER.fullmatch(line)
    if state.is_code_block(first) or not marker:
        return False
    if not silent:
        begin = state.bMarks[first] + state.tShift[first]
        for group in ("label", "title"):
            if marker[group]:
                add_title(state, marker[group], first, begin + marker.start(group))
        add_block(state, first, first + 1, silent)  # its attributes stay as they are
    return True
