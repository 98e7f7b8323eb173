"""A sentence with markup: its plain text for a translator, and its markup again around the translation."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from nmt.plugins.documents.document import Translated
from nmt.plugins.documents.projection import Node, project

Kind = Literal["text", "open", "close", "point", "copy"]
DEEPEST = 50
"""Elements that are nested deeper are kept as single tags."""
EDGE, EDGE_BACKWARDS = re.compile(r"(?:\s|&nbsp;)*"), re.compile(r"(?:\s|;psbn&)*")


@dataclass
class Token:
    """A stretch of a file: text, a tag that opens or closes an element, another tag, or what is copied, as code is."""

    kind: Kind
    raw: str
    """As it stands in the file."""
    text: str = ""
    """What a reader sees of text, and of what is copied."""
    name: str = ""
    """An element is closed by the next tag of its name."""
    breaks: bool = False
    """A tag between words, even without a blank."""
    optional: bool = False
    """An element that is left out where it would be empty, or a line break where another one is."""
    closing: str = ""
    """What closes an element in a translation, where that is more than `raw`."""


def find_pairs(tokens: Sequence[Token]) -> dict[int, int]:
    """The index of the tag that closes an element, for that which opens it, and the other way round.

    Elements are nested; tags that are not closed, or not opened, have no partner.
    """
    partners, opened, names = dict[int, int](), list[int](), Counter[str]()
    for index, token in enumerate(tokens):
        if token.kind == "open" and len(opened) < DEEPEST:
            opened.append(index)
            names[token.name] += 1
        elif token.kind == "close" and names[token.name]:
            last = None
            while last is None or tokens[last].name != token.name:
                last = opened.pop()
                names[tokens[last].name] -= 1
            partners[last], partners[index] = index, last
    return partners


def tree(tokens: Sequence[Token]) -> tuple[str, list[Node]]:
    """The plain text of tokens, and the markup in it."""
    partners, plain, stack = find_pairs(tokens), "", [(Node("", 0), 0)]
    for index, token in enumerate(tokens):
        if token.kind == "text":
            plain += token.text
        elif token.kind == "open" and index in partners:
            stack.append((Node(token.raw, len(plain), optional=token.optional), index))
        elif token.kind == "close" and index in partners:
            node, opened = stack.pop()
            node.end, node.close = len(plain), token.closing or token.raw
            if not plain[node.begin :].strip():  # nothing in it has a place of its own
                node = Node("".join(inside.raw for inside in tokens[opened : index + 1]), node.begin)
                plain = plain[: node.begin] + " " * (len(plain) > node.begin)
            stack[-1][0].children.append(node)
        else:
            begin, copied = len(plain), token.kind == "copy"
            plain += " " * token.breaks + token.text
            end = begin + len(token.text)
            node = Node(token.raw, begin, end, copied=copied, breaks=token.breaks, optional=token.optional)
            stack[-1][0].children.append(node)
    return plain, stack[0][0].children


def core(tokens: Sequence[Token]) -> tuple[int, list[Token]]:
    """Tokens without the markup and white space before the first word, after the last, and around all.

    Also the length of what is left out at the beginning.
    """
    partners = find_pairs(tokens)
    worded = [index for index, token in enumerate(tokens) if token.text.strip() or token.closing] or [0, -1]
    first, last = worded[0], worded[-1]
    begin = min([first, *(i for i in range(first) if i in partners and first < partners[i] <= last)])
    end = max([last, *(i for i in range(last + 1, len(tokens)) if i in partners and first <= partners[i] <= last)])
    inside, size = list(tokens[begin : end + 1]), sum(len(token.raw) for token in tokens[:begin])
    if inside and inside[0].kind == "text":
        blank = EDGE.match(inside[0].raw).end()  # type: ignore[union-attr]
        size += blank
        inside[0] = replace(inside[0], raw=inside[0].raw[blank:], text=inside[0].text.lstrip())
    if inside and inside[-1].kind == "text":
        raw = inside[-1].raw
        blank = EDGE_BACKWARDS.match(raw[::-1]).end()  # type: ignore[union-attr]
        inside[-1] = replace(inside[-1], raw=raw[: len(raw) - blank], text=inside[-1].text.rstrip())
    return size, inside


def without(node: Node, is_left_out: Callable[[Node], bool]) -> list[Node]:
    """A node without the tags of some elements in it, or what is in it, if it is one itself."""
    inside = [kept for child in node.children for kept in without(child, is_left_out)]
    return inside if is_left_out(node) else [replace(node, children=inside)]


class Sentence:
    """A part of a text that is translated as one line.

    `begin` is where its tokens begin; `escape` writes plain text as the file needs it.
    """

    def __init__(self, begin: int, tokens: Sequence[Token], escape: Callable[[str], str]) -> None:
        size, inside = core(tokens)
        self.raw, self.escape = "".join(token.raw for token in inside), escape
        self.begin, self.end = begin + size, begin + size + len(self.raw)
        self.plain, self.nodes = tree(inside)
        has_words = any(c.isalpha() for token in inside if token.kind == "text" for c in token.text)
        self.lines = [" ".join(self.plain.split())] if has_words else []

    def render(self, translations: Sequence[Translated]) -> str:
        return self.written(translations)

    def written(
        self, translations: Sequence[Translated], is_left_out: Callable[[Node], bool] = lambda node: False
    ) -> str:
        """The sentence with a translation instead of its text, and without the tags of some elements."""
        text = " ".join(translations[0].text.split()) if translations else ""
        if text in ("", " ".join(self.plain.split())):
            return self.raw
        nodes = [kept for node in self.nodes for kept in without(node, is_left_out)]
        return project(self.plain, nodes, text, translations[0].alignment, self.escape)
