"""Spans of a file that a sentence with markup consists of."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

DEEPEST = 50  # elements nested more deeply become single tags
Kind = Literal["text", "open", "close", "point", "copy"]


@dataclass
class Token:
    """A span of a file: text, an opening or closing tag, any other tag ("point"), or code, which is copied."""

    kind: Kind
    raw: str  # as written in the file
    text: str = ""  # text as a reader sees it; of code, what the model may see
    name: str = ""  # a closing tag closes the last open tag with its name
    breaks: bool = False  # separates words, even without a space
    optional: bool = (
        False  # an element to drop if it would be empty, or a line break to drop next to another
    )
    is_script: bool = False  # opens a superscript or subscript
    closing: str = ""  # what closes an element in a translation, if not the closing tag's `raw`
    is_apart: bool = False  # directly after a blank that the file lacks
    is_dropped: bool = False  # not in a translation, such as how to pronounce the source
    # Set in the markup tree: the span in the plain text, whether a word directly precedes it, and the nodes inside.
    begin: int = 0
    end: int = 0
    is_glued: bool = False
    children: list["Token"] = field(default_factory=list)


def find_pairs(tokens: Sequence[Token]) -> dict[int, int]:
    """Map the index of each opening or closing tag to its partner's index; the pairs are properly nested."""
    partners, opened, names = dict[int, int](), list[int](), Counter[str]()
    for index, token in enumerate(tokens):
        if token.kind == "open" and len(opened) < DEEPEST:
            opened.append(index)
            names[token.name] += 1
        elif token.kind == "close" and names[token.name]:
            while tokens[last := opened.pop()].name != token.name:
                names[tokens[last].name] -= 1
            names[token.name] -= 1
            partners[last], partners[index] = index, last
    return partners
