"""The dialects of Markdown: what is markup, and which signs of text need a backslash."""

import re
from dataclasses import dataclass

from markdown_it import MarkdownIt

from nmt.plugins.documents.commonmark import PARSER
from nmt.plugins.documents.mdx_rules import PARSER_OF_MDX
from nmt.plugins.documents.syntax import MARKUP, MARKUP_OF_MDX

ACTIVE = r"[\\`|]|\*(?!\s)|(?<!\s)\*|(?<!\w)_|_(?!\w)|&(?=#?\w+;)|~(?=~)|(?<=~)~"
"""Signs that would be markup, except brackets."""
TAG = r"<(?=[a-zA-Z/!?])"
TAG_OF_MDX = r"[<{]"
LABEL = r"(?<=\^)\[|\[(?=[\[\]^!@])|\](?=[\[(:])"
"""Leaves most brackets, because the document rarely defines the label in them."""


@dataclass(frozen=True)
class Dialect:
    parser: MarkdownIt
    markup: re.Pattern[str]
    """Finds possible markup in a block."""
    active: re.Pattern[str]
    """Signs to write with a backslash."""
    active_or_label: re.Pattern[str]
    """The same signs without most brackets."""
    may_be_other: re.Pattern[str]
    """The beginning of a block that may not be a paragraph."""

    def escape(self, text: str) -> str:
        return self.active.sub(r"\\\g<0>", text)

    def escape_few(self, text: str) -> str:
        """Text with as few escapes as possible, which may be too few."""
        return self.active_or_label.sub(r"\\\g<0>", text)


MARKDOWN = Dialect(
    parser=PARSER,
    markup=MARKUP,
    active=re.compile(rf"{ACTIVE}|{TAG}|[\[\]]"),
    active_or_label=re.compile(rf"{ACTIVE}|{TAG}|{LABEL}"),
    may_be_other=re.compile(r"(?:\A|\n)[ \t]*[\[<]"),
)
MDX = Dialect(
    parser=PARSER_OF_MDX,
    markup=MARKUP_OF_MDX,
    active=re.compile(rf"{ACTIVE}|{TAG_OF_MDX}|[\[\]]"),
    active_or_label=re.compile(rf"{ACTIVE}|{TAG_OF_MDX}|{LABEL}"),
    may_be_other=re.compile(r"(?:\A|\n)[ \t]*(?:[\[<{]|(?:import|export) )"),
)
