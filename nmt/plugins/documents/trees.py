"""The markup of a sentence as a tree over its plain text."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, cycle

from nmt.items import COPIES, copy_of
from nmt.plugins.documents.nodes import MarkupToken, find_pairs

# As written in a file: of HTML, of office documents, of subtitles, as an escape, as a reference.
LINE_BREAK = re.compile(
    r"[\r\n]|<(?:\w+:)?(?:br|line-break|cr)\b|\\[nN]|&#(?:10|13|x0*[aAdD]);|_x000[aAdD]_",
    re.IGNORECASE,
)


def unused_marks(text: str) -> Iterator[str]:
    """Marks that do not occur in a text; after the last one, they repeat."""
    # A mark that the text itself contains could not be told from one that stands for code.
    used = set(text)
    marks = (mark for mark in COPIES if mark not in used)
    # If a text uses all marks, a blank separates the words around the code.
    first = next(marks, " ")
    # There are thousands of marks, and few of them are taken.
    return cycle(chain(first, marks))


class TreeBuilder:
    """Builds the plain text of tokens, and the tree of their markup."""

    def __init__(self, marks: Iterator[str]) -> None:
        self.marks = marks
        self.pieces = list[str]()  # of the plain text
        self.size = 0  # of the plain text so far
        # The open elements from the outside to the inside. The first one holds the result.
        self.stack = [MarkupToken("open", "")]

    def node_of(self, token: MarkupToken) -> MarkupToken:
        """A node for a token that begins here."""
        node = token.copied()
        node.begin = self.size
        node.is_glued = bool(self.pieces and self.pieces[-1][-1:].strip())
        # A copy has the token's own list of children, so each node gets a new list.
        node.children = []
        return node

    def add_single(self, token: MarkupToken) -> None:
        """Add text, code, or a tag without a partner."""
        node = self.node_of(token)
        # An opening or closing tag without a partner is a single tag, which nothing closes.
        node.closing = ""
        if token.kind == "copy":
            # The model must not change code, so it gets a protected item.
            node.text = copy_of(next(self.marks), token.text)
        elif token.kind != "text":
            node.kind = "point"
        # A separator is for the model only: without it, the words on both sides would be one word.
        if node.breaks:
            self.pieces.append(separator_of(node))
            self.size += 1
        if node.text:
            self.pieces.append(node.text)
            self.size += len(node.text)
        # A separator is not part of the node, which has only as many characters as its text.
        node.end = node.begin + len(node.text)
        # Text is in `pieces`. Only markup needs a place in the translation.
        if node.kind != "text" and not node.is_dropped:
            self.stack[-1].children.append(node)

    def open(self, token: MarkupToken) -> None:
        self.stack.append(self.node_of(token))

    def close(self, token: MarkupToken) -> None:
        element = self.stack.pop()
        element.end = self.size
        element.closing = token.closing or token.raw
        if element.is_dropped:  # but not its text
            self.stack[-1].children += element.children
        else:
            self.stack[-1].children.append(element)


def text_and_nodes(tokens: Sequence[MarkupToken]) -> tuple[str, list[MarkupToken]]:
    """The plain text of `tokens`, and their markup as a list of nodes, which have children.

    In the text, a marked item stands for each "copy". For example, <b>One</b> two is the text "One
    two" with one node, from 0 to 3.
    """
    if all(token.kind == "text" and not token.breaks for token in tokens):
        return "".join(token.text for token in tokens), []
    partners = find_pairs(tokens)
    marks: Iterator[str] = iter(())
    # The search for unused marks is slow, and few sentences have code.
    if any(token.kind == "copy" for token in tokens):
        marks = unused_marks("".join(token.text for token in tokens))
    builder = TreeBuilder(marks)
    for index, token in enumerate(tokens):
        if index not in partners:
            builder.add_single(token)
        elif token.kind == "open":
            builder.open(token)
        else:
            builder.close(token)
    return "".join(builder.pieces), builder.stack[0].children


def separator_of(node: MarkupToken) -> str:
    """White space for a tag that separates words.

    For a line break, it is one, too, because Chinese and Japanese have no blank in its place.
    """
    return "\n" if LINE_BREAK.search(node.raw) else " "


def all_nodes(nodes: Iterable[MarkupToken]) -> list[MarkupToken]:
    """The nodes and all nodes inside them, outer ones first."""
    result = [*nodes]
    # A loop over a list that grows visits all levels without recursion.
    for node in result:  # which grows meanwhile
        result += node.children
    return result


def without_optional(nodes: Iterable[MarkupToken]) -> Iterator[MarkupToken]:
    """The nodes with the content of each optional element in its place."""
    for node in nodes:
        # The recursion is not deep, because `find_pairs` limits the depth.
        children = list(without_optional(node.children))
        if node.optional and node.kind == "open":
            yield from children
        else:
            yield replace(node, children=children)
