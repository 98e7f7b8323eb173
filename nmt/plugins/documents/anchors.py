"""Anchors of headings, as GitHub, Docusaurus and other generators derive them from the text."""

import re
import unicodedata
from collections.abc import Iterable

from markdown_it.token import Token

from nmt.plugins.documents.extensions import ATTRIBUTES

EXPLICIT = re.compile(
    r"\{/\*[ \t]*#[^\s{}*]+[ \t]*\*/\}\s*\Z"  # {/* #name */}
    r"|\{(?:[^{}\n]{0,300}[ \t]|:)?#[\w:.-][^{}\n]{0,300}\}\s*\Z"  # {#name .class}
)
"""An anchor that the author of a heading chose, at the end of the heading."""
ATTRIBUTES_AT_END = re.compile(rf"{ATTRIBUTES}\s*\Z")
KEPT = frozenset(["Nd", "Nl", "Pc"])
"""Categories of Unicode in anchors, besides letters and their marks."""


def slug(text: str) -> str:
    """The anchor of a heading with this text.

    Letters with accents stay. See github-slugger (https://github.com/Flet/github-slugger).
    """
    kept = [sign for sign in text.lower() if sign in " -" or is_kept(sign)]
    return "".join(kept).replace(" ", "-")


def is_kept(sign: str) -> bool:
    category = unicodedata.category(sign)
    return category[0] in "LM" or category in KEPT


class Slugs:
    """The anchors of a page, which have numbers if their headings have the same text."""

    def __init__(self) -> None:
        self.numbers = dict[str, int]()

    def add(self, text: str) -> str:
        """The anchor of the next heading: install, install-1, install-2."""
        plain = slug(text)
        anchor = plain
        while anchor in self.numbers:
            self.numbers[plain] += 1
            anchor = f"{plain}-{self.numbers[plain]}"
        self.numbers[anchor] = 0
        return anchor


def heading_text(heading: Token) -> str:
    """The text of a heading that generators turn into an anchor."""
    tokens = heading.children or []
    # Images and tags of HTML are no text.
    texts = [token.content for token in tokens if token.type not in ("image", "html_inline")]
    text = "".join(texts)
    attributes = ATTRIBUTES_AT_END.search(text)
    return text[: attributes.start()].rstrip() if attributes else text


def anchors_of(headings: Iterable[Token]) -> list[str]:
    """The anchors of headings in order; "" for a heading whose author chose another one."""
    slugs = Slugs()
    anchors = list[str]()
    for heading in headings:
        is_explicit = EXPLICIT.search(heading.content)
        anchors.append("" if is_explicit else slugs.add(heading_text(heading)))
    return anchors
