"""Splits a block of Markdown into text and possible markup.

Whether it is markup also depends on the text around it, as CommonMark defines it (spec 0.31, 6).
"""

import re
from collections.abc import Collection
from html import unescape
from typing import NamedTuple

from markdown_it.common.utils import normalizeReference
from markdown_it.helpers import parseLinkDestination, parseLinkTitle
from markdown_it.rules_inline import StateInline

from nmt.plugins.documents.commonmark import PARSER
from nmt.plugins.documents.dialects import MARKDOWN, Dialect
from nmt.plugins.documents.emphasis import Run, settle_emphasis
from nmt.plugins.documents.extensions import ADDRESS
from nmt.plugins.documents.jsx import Jsx
from nmt.plugins.documents.nodes import Kind, MarkupToken, find_pairs
from nmt.plugins.documents.parameters import count_readable
from nmt.plugins.documents.readings import RUBY
from nmt.plugins.documents.roles import parts_of_role
from nmt.plugins.documents.scripts import NAMES as NAMES_OF_SCRIPTS
from nmt.plugins.documents.syntax import (
    AFTER_URL,
    ESCAPED,
    LABEL,
    LINE_PREFIX,
    LONGEST_LABEL,
    MAY_BE_MARKUP,
)
from nmt.plugins.documents.tags import COPIED, RAW, copied, is_fixed, tags_of
from nmt.text import BETWEEN, BLOCKS, INLINE, SEPARATORS

LONGEST_ADDRESS = 4000  # characters, with its title
NO_TEXT = frozenset(["script", "style", "pre", "textarea"])
"""Elements whose content is not text."""


class Bracket(NamedTuple):
    """An opening bracket that may begin a link, an image or a footnote: `[`, `![` or `^[`."""

    token: int
    """The index of its token."""
    content: int
    """The offset behind it in the block, where its content begins."""


class ImageSpans(NamedTuple):
    """The offsets of an image in the block."""

    whole: tuple[int, int]
    content: tuple[int, int]
    """Of the text in its brackets, which stands for the image."""


class Scanner:
    """Splits a block into text and possible markup.

    `labels` are the normalized labels that the document defines an address for. `Inline.keeps`
    later checks that a translation keeps the markup.
    """

    def __init__(self, text: str, labels: Collection[str], dialect: Dialect = MARKDOWN) -> None:
        self.text = text
        self.labels = labels
        self.jsx = Jsx(text)
        self.tokens = list[MarkupToken]()
        self.images = list[ImageSpans]()
        self.literal = ""  # markup that CommonMark takes for text
        self.has_brackets = False  # in its text
        self.urls = list[str]()  # bare addresses
        self.parameters_left = 0  # texts in tags of templates and in attributes
        self.brackets = list[Bracket]()  # opening brackets that are not closed so far
        self.around_links = 0  # how many of them, from the first, are around a link
        self.highlighted = set[str]()  # signs of highlighting that are open
        self.opened = set[str]()  # signs that may open emphasis
        self.unclosed = set[str]()  # names of elements that no later tag closes
        # The prefixes of lines in a quotation do not count as punctuation before a sign.
        source = LINE_PREFIX.sub(lambda prefix: "\n".ljust(len(prefix[0])), text)
        # The state of markdown-it is only needed for `scanDelims`.
        self.state = StateInline(source, PARSER, {}, [])
        self.at = 0
        may_be_markup = MAY_BE_MARKUP.search(text) is not None
        while may_be_markup and (markup := dialect.markup.search(text, self.at)):
            self.add_text(self.at, markup.start())
            self.at = markup.end()
            self.add(markup)
        self.add_text(self.at, len(text))
        self.tokens = with_blanks(settle_emphasis(self.tokens))

    def add_text(self, begin: int, end: int) -> None:
        raw = self.text[begin:end]
        self.tokens.append(MarkupToken("text", raw, raw))

    def is_defined(self, label: str) -> bool:
        # Most documents define no label, so the label is not even normalized.
        return bool(self.labels) and normalizeReference(label) in self.labels

    def add(self, markup: re.Match[str]) -> None:
        """Add the tokens of some markup, usually a single one."""
        raw = markup[0]
        if markup["url"]:
            self.add_url(markup.start(), raw)
        elif markup["mark"] or markup["citation"] or markup["wiki"]:
            self.add_extension(markup)
        elif markup["open"]:
            self.open(markup.start(), raw)
        elif markup["close"]:
            self.close(markup.start())
        elif markup["emphasis"]:
            self.add_emphasis(markup.start(), raw)
        elif markup["tag"] and raw.endswith(">"):
            self.add_tag(markup.start(), raw, (markup["name"] or "").lower())
        else:
            self.add_other(markup)

    def add_other(self, markup: re.Match[str]) -> None:
        """Add the tokens of markup that CommonMark lacks, or of simple markup."""
        if markup["jsx"]:
            self.add_jsx(markup.start())
        elif markup["role"]:
            self.add_role(markup[0], markup["argument"])
        elif markup["highlight"]:
            self.add_highlight(markup[0])
        else:
            self.tokens.append(self.simple_token(markup))

    def simple_token(self, markup: re.Match[str]) -> MarkupToken:
        """The token of markup that is complete in itself."""
        raw = markup[0]
        if markup["code"]:
            # CommonMark (6.1): a line break in code is a blank.
            return MarkupToken("copy", raw, " ".join(markup["code"].split()))
        if markup["auto"]:
            return MarkupToken("copy", raw, markup["auto"])
        if markup["tags"]:
            # For CommonMark, this is text, whose signs `Inline.keeps` compares.
            self.literal += raw
            self.parameters_left += count_readable(raw)
            return MarkupToken("point", raw)
        if markup["formula"] or markup["brackets"]:
            self.literal += raw
            return MarkupToken("copy", raw, " ".join(raw.split()))
        if markup["literal"]:
            self.literal += raw
            # Keys and tags are words of a sentence, but comments and names of blocks are not.
            kind: Kind = "copy" if raw[0] in "+#" else "point"
            return MarkupToken(kind, raw, raw.strip("+"))
        if markup["value"]:
            self.literal += raw
            return MarkupToken("copy", raw, raw.strip("{} \t"))
        if markup["hard"]:
            # A translation may be shorter than the source, and an empty line would end the
            # paragraph.
            return MarkupToken("point", raw, breaks=True, optional=True)
        if markup["soft"]:
            return MarkupToken("text", raw, "\n")
        # An escaped sign, a reference, or an HTML tag that does not end.
        return MarkupToken("text", raw, markup["escaped"] or unescape(raw))

    def add_emphasis(self, begin: int, raw: str) -> None:
        """Add signs that may open or close emphasis."""
        # markdown-it knows the rules for signs beside letters and punctuation. `_` is not emphasis
        # in a word.
        scanned = self.state.scanDelims(begin, canSplitWord=raw[0] != "_")
        run = Run("text", raw, raw, opens=scanned.can_open, closes=scanned.can_close)
        run.left = len(raw)
        self.tokens.append(run)
        if run.opens:
            self.opened.add(run.sign)

    def add_url(self, begin: int, raw: str) -> None:
        """Add an address without the punctuation after it, which may end emphasis."""
        while raw[-1] in AFTER_URL or raw[-1] in self.opened:
            raw = raw[:-1]
        self.at = begin + len(raw)
        self.urls.append(raw)
        self.tokens.append(MarkupToken("copy", raw, raw))

    def add_extension(self, markup: re.Match[str]) -> None:
        """Add an extension of CommonMark, unless the document defines the label in its brackets."""
        raw = markup[0]
        page = markup["page"] or ""
        shown = markup["shown"] or ""
        in_brackets = raw.partition("[")[2].rpartition("]")[0]
        # With a definition, the brackets are a link of CommonMark, so only the opening one has been
        # read.
        if self.is_defined(page or in_brackets):
            opening = raw[: raw.index("[") + 1]
            self.at = markup.start() + len(opening)
            self.open(markup.start(), opening)
        elif raw.startswith("!") or markup["mark"]:  # an embedded page is like an image
            self.literal += raw
            self.tokens.append(MarkupToken("point", raw, breaks=bool(page)))
        elif any(map(str.isalpha, shown)):
            opening = raw.removesuffix(f"{shown}]]")
            self.literal += opening
            self.tokens.append(MarkupToken("open", opening, name="page"))
            self.tokens.append(MarkupToken("text", shown, ESCAPED.sub(r"\1", shown)))
            self.tokens.append(MarkupToken("close", "]]", name="page"))
        else:
            self.tokens.append(MarkupToken("copy", raw, page))

    def open(self, begin: int, raw: str) -> None:
        """Add an opening bracket as text, until its closing bracket shows what it is."""
        self.tokens.append(MarkupToken("text", raw, raw))
        self.brackets.append(Bracket(len(self.tokens) - 1, begin + len(raw)))

    def close(self, begin: int) -> None:
        """Add a closing bracket: the end of a link, image or inline footnote, or text.

        `begin` is its offset. The last opening bracket without a partner shows what it closes.
        """
        self.at = begin + len("]")
        self.tokens.append(MarkupToken("text", "]", "]"))
        if not self.brackets:
            self.has_brackets = True
            return
        opening = self.brackets.pop()
        # CommonMark (6.3): links have no links inside, and an inner one wins.
        is_around_link = len(self.brackets) < self.around_links
        self.around_links = min(self.around_links, len(self.brackets))
        sign = self.tokens[opening.token].raw
        end = self.end_of_link(opening.content, begin)
        if sign == "![" and end:
            self.close_image(opening, begin, end)
        elif sign == "[" and end and not is_around_link:
            self.close_link(opening, begin, end)
        elif sign == "^[":
            self.close_note(opening)
        else:
            self.has_brackets = True

    def close_image(self, opening: Bracket, closing: int, end: int) -> None:
        """Turn the brackets and address of an image, and all between them, into one tag.

        `closing` is the offset of the closing bracket, `end` that of the end of the image.
        """
        begin = opening.content - len("![")
        # The text of an image is plain, even if it has images itself.
        while self.images and self.images[-1].whole[0] >= opening.content:
            self.images.pop()
        self.images.append(ImageSpans((begin, end), (opening.content, closing)))
        if "{" in self.text[closing:end]:
            self.literal += self.text[begin:end]
        self.tokens[opening.token :] = [MarkupToken("point", self.text[begin:end], breaks=True)]
        self.at = end

    def close_link(self, opening: Bracket, closing: int, end: int) -> None:
        """Turn the brackets and address of a link into an element; the offsets as for an image."""
        raw = self.text[closing:end]
        if "{" in raw:
            # For CommonMark, an address that a template computes is text.
            self.literal += raw
        self.tokens[opening.token] = MarkupToken("open", "[", name="link")
        label = ""
        if raw in ("]", "][]"):
            # The text is also the label of the link's address, which a translation needs, too.
            content = " ".join(self.text[opening.content : closing].split())
            label = f"][{content}]"
        self.tokens[-1] = MarkupToken("close", raw, name="link", closing=label)
        self.settle_inside(opening)
        # Opening brackets before this link are around it.
        self.around_links = len(self.brackets)
        self.at = end

    def close_note(self, opening: Bracket) -> None:
        """Turn the brackets of an inline footnote into an element.

        For the model, a blank separates it from the words beside it.
        """
        self.literal += "^["
        # The sign ^ and the bracket are before the content.
        before = self.text[: opening.content - 2][-1:]
        is_apart = bool(before.strip())
        self.tokens[opening.token] = MarkupToken("open", "^[", name="note", is_apart=is_apart)
        self.tokens[-1] = MarkupToken("close", "]", name="note")
        self.settle_inside(opening)
        # Tokens without `raw` are for the model only.
        if is_apart:
            self.tokens.insert(opening.token, MarkupToken("text", "", " "))
        if self.text[self.at : self.at + 1].isalnum():
            self.tokens.append(MarkupToken("text", "", " "))

    def settle_inside(self, opening: Bracket) -> None:
        """Settle the emphasis in a link: its signs have no partners outside of the link."""
        inside = slice(opening.token + 1, len(self.tokens) - 1)
        # Brackets that are still open have smaller indices, which stay valid.
        self.tokens[inside] = settle_emphasis(self.tokens[inside])

    def end_of_link(self, content: int, closing: int) -> int:
        """The end of a link or image whose text in brackets is from `content` to `closing`.

        This is behind the "(address)" or "[label]" after the text, or behind the text itself if it
        is a label. 0 if the brackets are no link or image.
        """
        begin = closing + 1
        end = end_of_address(self.text, begin)
        if end:
            return end
        # A label in brackets decides. Without one, the text itself may be the label.
        label = LABEL.match(self.text, begin)
        if label:
            return label.end() if self.is_defined(label[1]) else 0
        # Labels are limited, so that a bracket far ahead does not cost a copy of the text.
        if closing - content > LONGEST_LABEL or not self.is_defined(self.text[content:closing]):
            return 0
        return begin + len("[]") if self.text.startswith("[]", begin) else begin

    def add_highlight(self, raw: str) -> None:
        """Add the beginning or the end of ==highlighted text==."""
        closes = raw in self.highlighted
        kind: Kind = "close" if closes else "open"
        # Signs that close nothing are text.
        if not closes and not self.text[self.at : self.at + 1].strip():
            kind = "text"
        self.highlighted ^= {raw}
        self.tokens.append(MarkupToken(kind, raw, name=raw, optional=True))

    def add_role(self, raw: str, argument: str) -> None:
        """Add a role of MyST, of which readers see the text before a target."""
        self.literal += raw
        opening, shown, closing = parts_of_role(raw)
        if not any(map(str.isalpha, shown)):
            self.tokens.append(MarkupToken("copy", raw, " ".join(argument.split())))
            return
        self.tokens.append(MarkupToken("open", opening, name="role"))
        self.tokens.append(MarkupToken("text", shown, shown))
        self.tokens.append(MarkupToken("close", closing, name="role"))

    def add_jsx(self, begin: int) -> None:
        """Add a tag or an expression of MDX, or a sign that begins neither."""
        tag = self.jsx.read(begin)
        if tag is None:
            self.add_text(begin, begin + 1)
            return
        self.at = tag.end
        raw = self.text[begin : tag.end]
        if raw.startswith("{"):
            self.literal += raw
            self.tokens.append(expression(raw))
        else:
            self.add_tag(begin, raw, tag.name)

    def add_tag(self, begin: int, raw: str, name: str) -> None:
        """Add a tag, or a whole element that is copied."""
        is_element = bool(name) and name not in BETWEEN and not raw.endswith("/>")
        closes = raw[1] == "/"
        if is_element and not closes:
            end = self.end_of_copied(raw, name)
            if end:
                self.add_copied(begin, end, name)
                return
        # Everything else is a single tag: it is empty, or a comment.
        kind: Kind = "point"
        if is_element:
            kind = "close" if closes else "open"
        token = MarkupToken(
            kind,
            raw,
            name=name,
            breaks=name in SEPARATORS | BLOCKS,
            is_script=kind == "open" and name in NAMES_OF_SCRIPTS,
            is_dropped=name in RUBY,
        )
        self.tokens.append(token)

    def add_copied(self, begin: int, end: int, name: str) -> None:
        """Add a whole HTML element, which is copied."""
        element = self.text[begin:end]
        if name in NO_TEXT:
            self.tokens.append(MarkupToken("point", element, breaks=name in RAW))
        else:
            self.tokens.append(copied(name, element))
        self.at = end

    def end_of_copied(self, raw: str, name: str) -> int:
        """The end of an element to copy, whose opening tag has been read; 0 if there is none."""
        is_copied = name in COPIED | NO_TEXT
        if not is_copied and name in INLINE:
            is_copied = is_fixed(tags_of(raw)[0], raw)
        if not is_copied or name in self.unclosed:
            return 0
        closing = re.compile(rf"</{re.escape(name)}\s*>", re.IGNORECASE).search(self.text, self.at)
        if closing is None:
            # Do not search for it again, which would take quadratic time.
            self.unclosed.add(name)
            return 0
        return closing.end()


def expression(raw: str) -> MarkupToken:
    """The token of an expression in braces: a word of its sentence, unless it is a comment."""
    if raw.startswith("{/*"):
        return MarkupToken("point", raw)
    return MarkupToken("copy", raw, " ".join(raw.strip("{}").split()))


def end_of_address(text: str, begin: int) -> int:
    """The end of the "(address 'title')" of a link that begins here; 0 if there is none."""
    # Limited, because each opening bracket could otherwise read up to the end of the block.
    text = text[begin : begin + LONGEST_ADDRESS]
    if not text.startswith("("):
        return 0
    template = ADDRESS.match(text)
    if template:
        return begin + template.end()
    at = skip_blanks(text, 1)
    address = parseLinkDestination(text, at, len(text))
    # markdown-it makes no links to addresses such as javascript:.
    if address.ok and PARSER.validateLink(PARSER.normalizeLink(address.str)):
        at = skip_blanks(text, address.pos)
        title = parseLinkTitle(text, at, len(text))
        # A title follows the address after white space. Without it, all of it is the address.
        if title.ok and at > address.pos:
            at = skip_blanks(text, title.pos)
    return begin + at + 1 if text.startswith(")", at) else 0


def skip_blanks(text: str, at: int) -> int:
    """The offset of the first character from `at` that is not white space."""
    return len(text) - len(text[at:].lstrip())


def with_blanks(tokens: list[MarkupToken]) -> list[MarkupToken]:
    """The tokens with blanks for the model around the tags of elements that separate words."""
    if not any(token.breaks and token.kind == "open" for token in tokens):
        return tokens
    partners = find_pairs(tokens)
    blank = MarkupToken("text", "", " ")
    result = list[MarkupToken]()
    for index, token in enumerate(tokens):
        # A tag without a partner becomes a single tag, which separates words anyway.
        if token.breaks and index in partners:
            result += [blank, token, blank]
        else:
            result.append(token)
    return result
