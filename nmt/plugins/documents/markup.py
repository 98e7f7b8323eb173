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
    partners, open_, names = dict[int, int](), list[int](), Counter[str]()
    for index, token in enumerate(tokens):
        if token.kind == "open" and len(open_) < DEEPEST:
            open_.append(index)
            names[token.name] += 1
        elif token.kind == "close" and names[token.name]:
            last = None
            while last is None or tokens[last].name != token.name:
                last = open_.pop()
                names[tokens[last].name] -= 1
            partners[last], partners[index] = index, last
    return partners


def core(tokens: Sequence[Token]) -> tuple[int, int]:
    """First and last but one of the tokens without the markup before the first word, after the last, and around all."""
    partners = find_pairs(tokens)
    worded = [index for index, token in enumerate(tokens) if token.text.strip() or token.closing]
    first, last = (worded[0], worded[-1]) if worded else (0, -1)
    begin = min([first, *(i for i in range(first) if i in partners and first < partners[i] <= last)])
    end = max([last, *(i for i in range(last + 1, len(tokens)) if i in partners and first <= partners[i] <= last)])
    return begin, end + 1


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
                node = Node("".join(each.raw for each in tokens[opened : index + 1]), node.begin)
                plain = plain[: node.begin] + " " * (len(plain) > node.begin)
            stack[-1][0].children.append(node)
        else:
            node = Node(
                token.raw, len(plain), copied=token.kind == "copy", breaks=token.breaks, optional=token.optional
            )
            plain += " " * token.breaks + token.text
            node.end = node.begin + len(token.text)
            stack[-1][0].children.append(node)
    return plain, stack[0][0].children


def joined_breaks(tokens: Sequence[Token]) -> list[Token]:
    """Tokens in which breaks that follow each other are one."""
    found, blanks = list[Token](), ""
    for token in tokens:
        last = found[-1 - bool(blanks)] if len(found) > bool(blanks) else None
        if token.breaks and last and last.breaks and (last.kind, last.optional) == (token.kind, token.optional):
            found[-1 - bool(blanks) :] = [replace(last, raw=last.raw + blanks + token.raw)]
            blanks = ""
            continue
        found.append(token)
        blanks = token.raw if token.kind == "text" and not token.text.strip() else ""
    return found


def without_edges(tokens: Sequence[Token]) -> tuple[int, list[Token]]:
    """Tokens without the white space at both ends, and how long it is at the beginning."""
    found, before = list(tokens), 0
    if found and found[0].kind == "text":
        before = len(EDGE.match(found[0].raw)[0])  # type: ignore[index]
        found[0] = replace(found[0], raw=found[0].raw[before:], text=found[0].text.lstrip())
    if found and found[-1].kind == "text":
        after = len(EDGE_BACKWARDS.match(found[-1].raw[::-1])[0])  # type: ignore[index]
        raw = found[-1].raw
        found[-1] = replace(found[-1], raw=raw[: len(raw) - after], text=found[-1].text.rstrip())
    return before, found


def pruned(node: Node, without: Callable[[Node], bool]) -> list[Node]:
    """A node without the elements in it whose tags are to go, or what is in it, if it is one itself."""
    inside = [kept for child in node.children for kept in pruned(child, without)]
    return inside if without(node) else [replace(node, children=inside)]


class Sentence:
    """A part of a text that is translated as one line.

    `begin` is where its tokens begin; `escape` writes plain text as the file needs it.
    """

    def __init__(self, begin: int, tokens: Sequence[Token], escape: Callable[[str], str]) -> None:
        first, end = core(tokens)
        before, own = without_edges(joined_breaks(tokens[first:end]))
        self.begin = begin + before + sum(len(token.raw) for token in tokens[:first])
        self.raw, self.escape = "".join(token.raw for token in own), escape
        self.end = self.begin + len(self.raw)
        self.plain, self.nodes = tree(own)
        has_words = any(c.isalpha() for token in own if token.kind == "text" for c in token.text)
        self.lines = [" ".join(self.plain.split())] if has_words else []

    def render(self, translations: Sequence[Translated]) -> str:
        return self.written(translations)

    def written(self, translations: Sequence[Translated], without: Callable[[Node], bool] = lambda node: False) -> str:
        """The sentence with a translation instead of its text, and without the tags of some elements."""
        text = " ".join(translations[0].text.split()) if translations else ""
        if text in ("", " ".join(self.plain.split())):
            return self.raw
        nodes = [kept for node in self.nodes for kept in pruned(node, without)]
        return project(self.plain, nodes, text, translations[0].alignment, self.escape)
