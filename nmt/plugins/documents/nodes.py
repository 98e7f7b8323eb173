"""The tokens that a sentence with markup consists of, and their places in a translation."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

DEEPEST = 50
"""Elements that are nested more deeply become single tags.

Each level is placed by itself, so the time for a sentence grows with its depth.
"""

Kind = Literal["text", "open", "close", "point", "copy"]
"""Text, an opening tag, a closing tag, any other tag ("point"), or code, which is copied."""


@dataclass
class MarkupToken:
    """A span of a file: text, a tag, or code."""

    kind: Kind

    raw: str
    """The node as written in the file; empty for text that only the model sees."""

    text: str = ""
    """The text as a reader sees it; for code, the text that the model may see."""

    name: str = ""
    """A closing tag closes the last open tag with its name."""

    breaks: bool = False
    """Whether the node separates words, even without a space."""

    optional: bool = False
    """Whether to drop an element that would be empty, or a line break next to another."""

    is_script: bool = False
    """Whether the node opens a superscript or subscript."""

    closing: str = ""
    """The text that closes an element in a translation, if not the closing tag's `raw`."""

    is_apart: bool = False
    """Whether the node directly follows a blank that the file lacks."""

    is_dropped: bool = False
    """Whether a translation omits the node, such as the pronunciation of the source."""

    # The fields below are set in the markup tree.

    begin: int = 0
    """Where the node begins in the plain text."""

    end: int = 0
    """Where the node ends in the plain text."""

    is_glued: bool = False
    """Whether a word directly precedes the node."""

    children: list["MarkupToken"] = field(default_factory=list)
    """The nodes inside the element, without its text."""

    def copied(self) -> "MarkupToken":
        """A copy with the same list of children.

        Files have a hundred thousand tokens, and `replace` takes 40 times as long.
        """
        token = object.__new__(type(self))
        token.__dict__.update(self.__dict__)
        return token


class Placed(NamedTuple):
    """A node with its span and its tokens in the translation."""

    begin: int
    end: int
    node: MarkupToken
    tokens: range


def find_pairs(tokens: Sequence[MarkupToken]) -> dict[int, int]:
    """Map the index of each opening or closing tag to its partner's index.

    The pairs are properly nested. Tags without a partner are not in the result.
    """
    partners = dict[int, int]()
    if not any(token.kind == "open" for token in tokens):
        return partners
    opened = list[int]()
    names = Counter[str]()  # of the opened tags
    for index, token in enumerate(tokens):
        # Tags beyond the limit get no partner, so the tree has them as single tags.
        if token.kind == "open" and len(opened) < DEEPEST:
            opened.append(index)
            names[token.name] += 1
        # The count spares a search through all open tags for each closing tag that has no partner.
        elif token.kind == "close" and names[token.name]:
            opening = opened.pop()
            # Tags that were opened since and not closed have no partner.
            while tokens[opening].name != token.name:
                names[tokens[opening].name] -= 1
                opening = opened.pop()
            names[token.name] -= 1
            partners[opening] = index
            partners[index] = opening
    return partners
