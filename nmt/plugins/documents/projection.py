"""Writes the translation of a sentence with its markup."""

from collections.abc import Callable

import regex

from nmt.items import COPIES
from nmt.plugins.documents.links import Links
from nmt.plugins.documents.neighbors import DIVIDER
from nmt.plugins.documents.nodes import MarkupToken, Placed
from nmt.plugins.documents.placement import Placement
from nmt.plugins.documents.trees import all_nodes
from nmt.plugins.documents.words import Tokens
from nmt.translation import Alignment

# A hard break of Markdown may begin with a backslash, and the next line of a quotation with `>`.
# Quantifiers are possessive, so many blanks take linear time.
BEGINS_WITH_BREAK = regex.compile(r"\A[ \t]*+\\?\r?\n[ \t>]*+")
ENDS_WITH_BREAK = regex.compile(r"\n[ \t>]*+\Z")


class Projection:
    """Places the markup inside `root` in a translation by aligning source and target tokens."""

    def __init__(self, plain: str, root: MarkupToken, target: str, alignment: Alignment) -> None:
        nodes = all_nodes(root.children)
        marks = {node.text[0] for node in nodes if node.kind == "copy"}
        # Elements may begin or end inside a word of the source, which is divided there.
        edges = set[int]()
        for node in nodes:
            edges.update((node.begin, node.end))
        self.source = Tokens(plain, marks, edges)
        # The translation has no edges yet, but measurements are cut where the source's are.
        self.target = Tokens(target, marks, divided=self.source.divided)
        self.placement = Placement(Links(self.source, self.target, alignment))
        # Copies that a translator repeated or moved out of their element do not become text.
        self.surplus: regex.Pattern[str] | None = None
        if marks:
            any_mark = "".join(marks)
            # A mark may enclose the text that a translator saw, so the text goes with it; see
            # `copy_of`.
            self.surplus = regex.compile(rf" ?([{any_mark}])(?:[^\s{COPIES}]*\1)?")

    def render(self, place: Placed, escape: Callable[[str], str]) -> str:
        """The translated text at a place, with the markup inside it."""
        pieces = list[str]()
        at = place.begin
        before: MarkupToken | None = None
        for inner in self.placement.places(place):
            node = inner.node
            is_element = node.kind == "open"
            # What is inside decides whether an optional element is written at all.
            inside = self.render(inner, escape) if is_element else ""
            text = self.text_before(node, before, self.text(at, inner.begin))
            pieces.append(escape(text))
            is_left_out = is_element and node.optional and not inside
            if not is_left_out:
                # Only text between two line breaks prevents an empty line.
                raw = node.raw if text.strip() else after_line_break(before, node)
                pieces += [raw, inside, node.closing]
            before = node
            # The inside of an element is written with it, so the text continues behind the element.
            at = inner.end
        pieces.append(escape(self.text(at, place.end)))
        return "".join(pieces)

    def text_before(self, node: MarkupToken, before: MarkupToken | None, text: str) -> str:
        """The text between two nodes, without blanks that only the model needs."""
        if before:
            # The model saw a blank between the two elements, but the file has none.
            if not text.strip() and adjoin(before, node):
                return ""
            # The same divider is between the two nodes in the source, such as links of a menu.
            # Words between them are no divider, so the blank behind them stays.
            is_same = text == self.source.text[before.end : node.begin]
            if node.is_apart and is_same and DIVIDER.fullmatch(text.strip()):
                return text.rstrip()
        # An inline footnote follows its word directly, with any text before it in the translation.
        if node.is_apart and node.name == "note":
            return text.rstrip()
        return text

    def text(self, begin: int, end: int) -> str:
        """The text of a span in which no mark has its place."""
        text = self.target.text[begin:end]
        if self.surplus is None:
            return text
        text = str(self.surplus.sub("", text))
        # A surplus mark at the beginning of the translation leaves the blank behind it.
        return text if begin else text.lstrip()


def adjoin(one: MarkupToken, other: MarkupToken) -> bool:
    """True if only a blank for the model separates two nodes in the source, in any order."""
    is_first = other.is_apart and one.end + 1 == other.begin
    is_second = one.is_apart and other.end + 1 == one.begin
    return is_first or is_second


def after_line_break(before: MarkupToken | None, node: MarkupToken) -> str:
    """A node as written directly after another one, without a second line break.

    In Markdown, whose line breaks are optional, an empty line would end the paragraph.
    """
    if before is None or not (before.breaks and node.breaks):
        return node.raw
    if not (before.optional or node.optional):
        return node.raw
    if not ENDS_WITH_BREAK.search(before.raw):
        return node.raw
    return str(BEGINS_WITH_BREAK.sub("", node.raw))
