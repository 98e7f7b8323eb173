"""The tags of HTML, parsed as browsers parse them, with their offsets.

https://html.spec.whatwg.org, section 13.2.5.
"""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from html import unescape

from nmt.plugins.documents.declarations import value
from nmt.plugins.documents.nodes import MarkupToken
from nmt.plugins.documents.readings import (
    ENDED_BY_CLOSING,
    ENDED_BY_OPENING,
    READINGS,
    RUBY,
)
from nmt.text import BLOCKS

# Quantifiers are possessive or atomic so that every input takes linear time.
VALUE = r"""(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z))"""
ATTRIBUTE = re.compile(
    rf"""(?P<name>[^\s/>=][^\s/>=]*+)(?>\s*+=\s*+(?P<value>{VALUE}|[^\s>"'][^\s>]*+)|)"""
)
# `<!-->` is a whole comment, `--!>` ends one, too, and so does the end of the file.
COMMENT = r"!--(?:-?>|.*?(?:--!?>|\Z))"
CDATA = r"!\[CDATA\[.*?(?:\]\]>|\Z)"
# What browsers take for a comment, such as <!x>, <?x> and </3>.
BOGUS_COMMENT = r"[!?][^>]*+(?:>|\Z)|/[^a-zA-Z][^>]*+(?:>|\Z)"
# A quotation mark begins a value only after `=`. Elsewhere, it is a part of a name.
TAG = (
    r"(?P<end>/?)(?P<name>[a-zA-Z][^\s/>]*+)"
    rf"""(?P<attributes>(?>(?:[^>"'=]++|=\s*+{VALUE}|["'=])*))(?:>|\Z)"""
)
MARKUP = re.compile(rf"<(?:{COMMENT}|{CDATA}|{BOGUS_COMMENT}|{TAG})", re.DOTALL)
COPIED = READINGS | {"rtc", "code", "kbd", "samp", "tt", "var", "math", "svg"}
"""Inline elements whose content is copied."""
UNSEEN = frozenset(["script", "style"])
RAW = frozenset(
    [
        "textarea",
        "xmp",
        "iframe",
        "noembed",
        "noframes",
        "plaintext",
        "pre",
        "listing",
    ]
)
"""Blocks whose content stays unchanged."""
UNREAD = frozenset(["iframe", "noembed", "noframes", "plaintext"])
"""Elements whose text browsers do not show, or do not end."""
WITHOUT_TAGS = UNSEEN | RAW | {"title"}
"""Elements in which "<" is text."""
OF_CELLS = frozenset(["td", "th", "tr", "tbody", "tfoot"])
ENDED_BY = {
    "p": BLOCKS,
    "li": frozenset(["li"]),
    "dt": frozenset(["dt", "dd"]),
    "dd": frozenset(["dt", "dd"]),
    "td": OF_CELLS,
    "th": OF_CELLS,
    "tr": frozenset(["tr", "tbody", "tfoot"]),
    "option": frozenset(["option", "optgroup"]),
}
"""Elements whose closing tag is optional, and the elements that end them."""
READ = frozenset(
    [
        "alt",
        "title",
        "placeholder",
        "aria-label",
        "aria-description",
        "aria-placeholder",
        "aria-roledescription",
        "aria-valuetext",
    ]
)
"""Attributes of all elements with human-readable text."""
LABELED = frozenset(["optgroup", "option", "track"])
"""Elements whose `label` people read."""
BUTTONS = frozenset(["submit", "button", "reset"])
"""Types of <input> whose `value` people read."""
META = frozenset(
    [
        "description",
        "og:title",
        "og:description",
        "og:image:alt",
        "twitter:title",
        "twitter:description",
        "twitter:image:alt",
        "dc.title",
        "dc.description",
        "dcterms.title",
        "dcterms.description",
    ]
)
"""Names of <meta> whose `content` people read."""


@dataclass
class Tag:
    """A tag, comment or similar."""

    begin: int
    end: int

    name: str
    """The element's name in lower case; empty for a comment."""

    closes: bool

    attributes: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Maps names to the spans of their values, including quotes."""

    partner: int = 0
    """The index of the closing tag; 0 if there is none."""


def tags_of(text: str) -> list[Tag]:
    """The tags in `text`, in order, except those inside elements that contain only text."""
    return Tags(text).tags


class Tags:
    """Finds the tags of a text, and which of them belong together."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.is_xml = text.startswith("<?xml")
        self.tags = list[Tag]()
        # For each name, the indices of the opening tags without a partner so far.
        self.opened = defaultdict[str, list[int]](list)
        at = 0
        while markup := MARKUP.search(text, at):
            at = self.add(markup)

    def add(self, markup: re.Match[str]) -> int:
        """Add a tag, and return the offset at which the search for tags continues."""
        tag = Tag(
            begin=markup.start(),
            end=markup.end(),
            name=(markup["name"] or "").lower(),
            closes=markup["end"] == "/",
        )
        # The closing tags that a tag implies come before it.
        self.end_readings(tag)
        index = len(self.tags)
        self.tags.append(tag)
        # A closing tag closes the last open tag with its name, whatever was opened since: browsers
        # repair <b><i></b></i>, too.
        if tag.closes and self.opened[tag.name]:
            opening = self.opened[tag.name].pop()
            self.tags[opening].partner = index
        elif tag.name and not tag.closes:
            self.opened[tag.name].append(index)
            begin, end = markup.span("attributes")
            tag.attributes = attributes_in(self.text, begin, end)
            # In XML, <script/> is a whole element.
            is_whole = self.is_xml and self.text[tag.end - 2] == "/"
            if tag.name in WITHOUT_TAGS and not is_whole:
                return self.skip_text(tag)
        return markup.end()

    def end_readings(self, tag: Tag) -> None:
        """Add the closing tags of readings that a tag implies."""
        ending = ENDED_BY_CLOSING if tag.closes else ENDED_BY_OPENING
        if tag.name not in ending:
            return
        # The closing tags of <rt> and <rp> are optional.
        for name in READINGS:
            if self.opened[name]:
                opening = self.opened[name].pop()
                self.tags[opening].partner = len(self.tags)
                self.tags.append(Tag(tag.begin, tag.begin, name, closes=True))

    def skip_text(self, tag: Tag) -> int:
        """The offset of the closing tag of an element without tags inside."""
        closing = re.compile(rf"</{tag.name}[\s/>]", re.IGNORECASE).search(self.text, tag.end)
        if closing:
            return closing.start()
        # Browsers take all that follows for text.
        tag.end = len(self.text)
        return tag.end


def attributes_in(text: str, begin: int, end: int) -> dict[str, tuple[int, int]]:
    """The attributes in a tag with the spans of their values."""
    attributes = dict[str, tuple[int, int]]()
    for match in ATTRIBUTE.finditer(text, begin, end):
        if match["value"]:
            # Browsers use a name's first value.
            attributes.setdefault(match["name"].lower(), match.span("value"))
    return attributes


def value_of(tag: Tag, name: str, text: str) -> str:
    """The value of an attribute in lower case; empty if a tag of this text lacks it."""
    return value(text, tag.attributes.get(name, (0, 0)))


def is_fixed(tag: Tag, text: str) -> bool:
    """True if a tag of this text marks its element as not to be translated."""
    if value_of(tag, "translate", text) == "no":
        return True
    return "notranslate" in value_of(tag, "class", text).split()


def readable_attributes(tag: Tag, text: str) -> set[str]:
    """The names of the attributes whose text people read on the page, or in search results."""
    # `value` is data except on buttons, and most elements of <meta> are for programs.
    names = set(READ)
    if tag.name in LABELED:
        names.add("label")
    elif tag.name == "input" and value_of(tag, "type", text) in BUTTONS:
        names.add("value")
    elif tag.name == "meta":
        kinds = {value_of(tag, key, text) for key in ("name", "property", "itemprop")}
        if not META.isdisjoint(kinds):
            names.add("content")
    return names & tag.attributes.keys()


def copied(name: str, raw: str) -> MarkupToken:
    """The token for an element that is copied, or for a reading, which is left out."""
    if name in RUBY:
        return MarkupToken("point", raw, name=name, is_dropped=True)
    if name == "math":
        # A formula is a word of its sentence, but its text is no use to the model.
        return MarkupToken("copy", raw)
    text = "" if name == "svg" else unescape(MARKUP.sub("", raw)).strip()
    if not text:
        # An icon or an empty element is not part of the text around it.
        return MarkupToken("point", raw, breaks=True)
    return MarkupToken("copy", raw, text)
