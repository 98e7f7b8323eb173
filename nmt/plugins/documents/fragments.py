"""Links to headings of a Markdown file, which lead to the translated headings.

Generators derive the anchor of a heading from its text, so a translation changes it.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote, unquote

from markdown_it.token import Token

from nmt.plugins.documents.anchors import anchors_of
from nmt.plugins.documents.document import Part, Spliced
from nmt.plugins.documents.parsed_pages import ParsedPage
from nmt.plugins.documents.syntax import CODE

FRAGMENT = r"(?P<{}>[^\s()<>\"'`\\#{{}}]+)"
IN_TAG = re.compile(r"\b(?:href|to)\s*=\s*[\"']?#" + FRAGMENT.format("attribute"))
IN_TEXT = re.compile(
    rf"\\[\s\S]|{CODE}|\]\([ \t]*<?#{FRAGMENT.format('link')}"
    rf"|<[a-zA-Z][^<>]*?{IN_TAG.pattern}",
    re.DOTALL,
)
"""A link in a block of text; escaped signs and code, which come first, hide its signs."""
IN_DEFINITION = re.compile(
    r"[ \t>]*\[(?!\^)[^\[\]\n]{1,500}\]:[ \t]*<?#" + FRAGMENT.format("definition")
)
"""The definition of a reference: [name]: #heading."""
EXPLICIT = re.compile(
    r"\{(?:[^{}\n]*[ \t]|:)?#([\w:.-]+)"  # {#name .class}
    r"|\b(?:id|name)\s*=\s*[\"']?([^\s\"'<>]+)"
    r"|^[ \t]*\(([^()\n]{1,200})\)="  # a target of MyST
    r"|(?<!\S)(\^[\w-]{1,60})[ \t]*$",  # the name of a block of Obsidian
    re.MULTILINE,
)
"""An anchor that does not depend on a heading's text."""
OF_SITES = frozenset(["", "top"])
"""Fragments that lead to the beginning of a page."""
OF_LINES = re.compile(r"L\d+(?:-L?\d+)?")
OTHER_PAGE = re.compile(r"(?![a-zA-Z][a-zA-Z\d+.-]*:|//)[^#]+#(?!L\d|:~:)[^#]")
"""The address of an anchor in another file of the site."""
OTHER_PAGE_IN_TAG = re.compile(
    r"<[a-zA-Z][^<>]*?\b(?:href|to)\s*=\s*[\"']?(?![a-zA-Z][a-zA-Z\d+.-]*:|//)"
    r"[^#\s\"'<>]+#[^\s\"'<>]"
)
REFERENCE_OF_HUGO = re.compile(r"\{\{[<%]\s*(?:rel)?ref\s[^{}]*#")
WIKI_LINK = re.compile(r"\[\[[^\[\]\n|#]{0,300}#(?!\^)[^\[\]\n]{1,300}\]\]")
WITH_LINKS = {"inline": IN_TEXT, "html_block": IN_TAG, "jsx_block": IN_TAG}
"""Types of tokens of markdown-it in which links may be, and how to find them."""


class Link(NamedTuple):
    """The place of a fragment in the file, behind its #."""

    begin: int
    end: int
    name: str


class LinkedPage:
    """The headings and links of a Markdown file."""

    def __init__(self, page: ParsedPage) -> None:
        self.page = page
        self.text = page.text
        headings = list[Token]()
        # The spans of text, HTML and tags, without code; cells of a row have the same span.
        self.regions = dict[tuple[int, int], re.Pattern[str]]()
        # Those of links with the address in the text, and with a reference.
        self.addresses = {unquote(str(entry["href"])) for entry in page.references.values()}
        self.elsewhere = len(REFERENCE_OF_HUGO.findall(page.text))
        """The number of links to headings of other files."""
        self.explicit = set[str]()
        self.covered = set[int]()  # lines
        type_before = ""
        for token in page.tokens:
            if token.type == "inline" and type_before == "heading_open":
                headings.append(token)
            type_before = token.type
            # The lines of a list or quotation are those of the blocks inside it, or definitions.
            if token.map and not token.type.endswith("_open"):
                self.covered.update(range(*token.map))
                self.add_region(token, *token.map)
        self.anchors = anchors_of(headings)
        self.numbers = dict[str, int]()
        for number, anchor in enumerate(self.anchors):
            self.numbers.setdefault(anchor, number)
        self.links = [*self.links_in_regions(), *self.links_in_definitions()]

    def add_region(self, token: Token, first: int, after: int) -> None:
        if token.type == "copied_block":
            self.add_explicit(token.content)
        if token.type not in WITH_LINKS:
            return
        span = self.page.begin_of(first), self.page.begin_of(after)
        self.regions[span] = WITH_LINKS[token.type]
        for child in token.children or ():
            address = str(child.attrs.get("href", ""))
            if address.startswith("#"):
                self.addresses.add(unquote(address))
            self.elsewhere += OTHER_PAGE.match(address) is not None

    def add_explicit(self, text: str) -> None:
        for names in EXPLICIT.findall(text):
            self.explicit.update(filter(None, names))

    def links_in_regions(self) -> Iterator[Link]:
        for (begin, end), pattern in self.regions.items():
            raw = self.text[begin:end]
            self.add_explicit(raw)
            self.elsewhere += len(OTHER_PAGE_IN_TAG.findall(raw)) + len(WIKI_LINK.findall(raw))
            for match in pattern.finditer(raw):
                kind = match.lastgroup or ""
                if kind not in ("link", "attribute"):
                    continue
                name = unquote(match[kind])
                # Only the parser knows whether brackets are a link.
                if kind == "attribute" or f"#{name}" in self.addresses:
                    yield Link(begin + match.start(kind), begin + match.end(kind), name)

    def links_in_definitions(self) -> Iterator[Link]:
        """The links in lines for which the parser has no token."""
        begins = self.page.begins
        for line, begin in enumerate(begins[:-1]):
            if line in self.covered:
                continue
            match = IN_DEFINITION.match(self.text, begin, begins[line + 1])
            if match and f"#{unquote(match['definition'])}" in self.addresses:
                yield Link(*match.span("definition"), unquote(match["definition"]))

    def number_of(self, link: Link) -> int | None:
        """The number of the heading to which a link leads; None if there is none."""
        if link.name in self.explicit:
            return None
        # GitHub's script also finds headings by another case.
        number = self.numbers.get(link.name)
        return self.numbers.get(link.name.lower()) if number is None else number

    def undecided(self) -> int:
        """The number of links to headings that are not in the file."""
        count = 0
        for link in self.links:
            is_known = link.name in self.explicit or link.name.lower() in OF_SITES
            if not is_known and not OF_LINES.fullmatch(link.name):
                count += self.number_of(link) is None
        return count

    def with_links_of(self, source: "LinkedPage") -> str | None:
        """The text with its links to the headings of a source leading to those of this page.

        None if the headings of the pages do not correspond.
        """
        if len(self.anchors) != len(source.anchors):
            return None
        parts = list[Part]()
        for link in self.links:
            number = source.number_of(link)
            anchor = "" if number is None else self.anchors[number]
            if number is None or anchor in ("", source.anchors[number]):
                continue
            # Authors who encode letters may need it.
            is_encoded = "%" in self.text[link.begin : link.end]
            written = quote(anchor) if is_encoded else anchor
            parts.append(Part(link.begin, link.end, otherwise=written))
        return Spliced(self.text, parts).render(())
