"""Splits a block of Markdown into text and possible markup."""

import re
from collections.abc import Collection
from html import unescape
from typing import NamedTuple

from markdown_it.common.utils import normalizeReference
from markdown_it.helpers import parseLinkDestination, parseLinkTitle
from markdown_it.rules_inline import StateInline

from nmt.plugins.documents import html
from nmt.plugins.documents.commonmark import PARSER
from nmt.plugins.documents.emphasis import Run, settle_emphasis
from nmt.plugins.documents.extensions import ADDRESS, ATTRIBUTES, TAG
from nmt.plugins.documents.formulas import FORMULA, FORMULA_IN_BRACKETS
from nmt.plugins.documents.markup import Kind, Token, find_pairs
from nmt.plugins.documents.parameters import count_readable
from nmt.plugins.documents.scripts import NAMES as NAMES_OF_SCRIPTS
from nmt.text import BLOCKS, INLINE, SEPARATORS

LABEL = re.compile(r"\[((?:[^\[\]\\]|\\.){1,999})\]", re.DOTALL)
LONGEST_LABEL, LONGEST_ADDRESS = 999, 4000  # characters; the first limit is CommonMark's
MAIL = r"[\w.!#$%&'*+/=?^`{|}~-]{1,200}@[a-zA-Z\d](?:[a-zA-Z\d.-]{0,200}[a-zA-Z\d])?"
# As GitHub links it, without brackets that it does not close.
BARE_URL = (
    r"(?<![^\W_])(?i:https?://|ftp://|(?<![/@.-])www\.)(?=\w)"
    "(?:[^\\s<>()\\[\\]`\u201c\u201d\u3001\u3002\uff08\uff09\uff0c]"
    r"|\([^\s<>()\[\]`]{0,500}\)){1,2000}"
)
AFTER_URL = "?!.,:;'\"\\"  # punctuation that ends a sentence
MARKUP = re.compile(
    rf"(?P<brackets>{FORMULA_IN_BRACKETS})|"
    r"(?P<hard>(?:[ ]{2,}|\\)\r?\n[ \t>]*)|(?P<soft>[ \t]*\r?\n[ \t>]*)|\\(?P<escaped>[!-/:-@\[-`{-~])|&#?\w{1,32};"
    r"|(?<!`)(?P<ticks>`+)(?!`)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)"
    rf"|<(?P<auto>[a-zA-Z][\w.+-]{{1,31}}:[^\s<>]*|{MAIL})>|(?P<url>{BARE_URL})"
    rf"|(?P<tags>(?:{TAG.pattern})+|{ATTRIBUTES})|(?P<formula>{FORMULA})"
    # What CommonMark lacks: footnotes, task boxes, alerts and a table of contents; citations; pages of a wiki.
    r"|(?P<mark>\[\^[^\]\s]+\]:?|\A\[[ xX]\](?=\s)|\[!\w[\w|-]{0,40}\][+-]?|\[TOC\])"
    r"|(?P<citation>\[(?:(?:see|cf\.|e\.g\.,?) )?-?@\w[^\[\]\n]{0,300}\])(?!\()"
    r"|(?P<wiki>!?\[\[(?P<page>[^\[\]\n|\\]{1,300})(?P<bar>\\?\|(?P<shown>[^\[\]\n]{0,300}))?\]\](?!\())"
    r"|(?P<open>(?:!(?!\[\^[^\]\s]+\](?!\())|\^)?\[)|(?P<close>\])|(?P<emphasis>\*+|_+|~{2,})"
    rf"|(?P<tag>{html.MARKUP.pattern})",
    re.DOTALL,
)
ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
LINE_PREFIX = re.compile(r"\n[ \t>]+")
# Elements whose content is not text.
NO_TEXT = frozenset(["script", "style", "pre", "textarea"])


class Bracket(NamedTuple):
    """An opening bracket: the index of its token, and where its content begins."""

    token: int
    content: int


def end_of_address(text: str, begin: int) -> int:
    """The end of the "(address 'title')" of a link that begins here; 0 if there is none."""
    text = text[begin : begin + LONGEST_ADDRESS]
    if not text.startswith("("):
        return 0
    template = ADDRESS.match(text)
    if template:
        return begin + template.end()

    def after_blanks(at: int) -> int:
        return len(text) - len(text[at:].lstrip())

    at = after_blanks(1)
    address = parseLinkDestination(text, at, len(text))
    if address.ok and PARSER.validateLink(PARSER.normalizeLink(address.str)):
        at = after_blanks(address.pos)
        title = parseLinkTitle(text, at, len(text))
        if title.ok and at > address.pos:
            at = after_blanks(title.pos)
    return begin + at + 1 if text[at : at + 1] == ")" else 0


class Scanner:
    """Splits a block into text and possible markup; `Inline.keeps` later checks that a translation keeps the markup.

    `labels` are the normalized labels that the document defines an address for.
    """

    def __init__(self, text: str, labels: Collection[str]) -> None:
        self.text, self.labels, self.tokens = text, labels, list[Token]()
        self.images = list[
            tuple[tuple[int, int], tuple[int, int]]
        ]()  # the spans of images and of the texts in them
        self.literal = ""  # markup that CommonMark takes for text
        self.has_brackets = False  # in its text
        self.brackets, self.inactive = (
            list[Bracket](),
            0,
        )  # the first brackets are outside of a link, so not links
        self.urls = list[str]()  # bare addresses
        self.parameters_left = 0  # texts in tags of templates and in attributes
        self.opened = set[str]()  # signs that may open emphasis
        self.unclosed = set[str]()  # names of elements that no later tag closes
        # The prefixes of lines in a quotation do not count as punctuation before a sign.
        source = LINE_PREFIX.sub(lambda prefix: "\n".ljust(len(prefix[0])), text)
        self.state = StateInline(source, PARSER, {}, [])
        self.at = 0
        while markup := MARKUP.search(text, self.at):
            self.add_text(self.at, markup.start())
            self.at = markup.end()
            self.add(markup)
        self.add_text(self.at, len(text))
        self.tokens = with_blanks(settle_emphasis(self.tokens))

    def add_text(self, begin: int, end: int) -> None:
        raw = self.text[begin:end]
        self.tokens.append(Token("text", raw, raw))

    def is_defined(self, label: str) -> bool:
        return bool(self.labels) and normalizeReference(label) in self.labels

    def add(self, markup: re.Match[str]) -> None:
        """Add the tokens of some markup, usually a single one."""
        raw = markup[0]
        if markup["url"]:
            self.add_url(markup.start(), raw)
        elif markup["code"] or markup["auto"]:
            self.tokens.append(
                Token("copy", raw, markup["auto"] or " ".join(markup["code"].split()))
            )
        elif markup["tags"]:
            self.literal += raw
            self.parameters_left += count_readable(raw)
            self.tokens.append(Token("point", raw))
        elif markup["formula"] or markup["brackets"]:
            self.literal += raw
            self.tokens.append(Token("copy", raw, " ".join(raw.split())))
        elif markup["mark"] or markup["citation"] or markup["wiki"]:
            self.add_extension(markup)
        elif markup["open"]:
            self.open(markup.start(), raw)
        elif markup["close"]:
            self.close(markup.start())
        elif markup["emphasis"]:
            scanned = self.state.scanDelims(markup.start(), canSplitWord=raw[0] != "_")
            run = Run("text", raw, raw, opens=scanned.can_open, closes=scanned.can_close)
            run.left = len(raw)
            self.tokens.append(run)
            if run.opens:
                self.opened.add(raw[0])
        elif markup["hard"]:
            self.tokens.append(Token("point", raw, breaks=True, optional=True))
        elif markup["tag"] and raw.endswith(">"):
            self.add_tag(markup)
        else:
            self.tokens.append(
                Token("text", raw, "\n" if markup["soft"] else markup["escaped"] or unescape(raw))
            )

    def add_url(self, begin: int, raw: str) -> None:
        """Add an address without the punctuation after it, which may end emphasis."""
        while raw[-1] in AFTER_URL or raw[-1] in self.opened:
            raw = raw[:-1]
        self.at = begin + len(raw)
        self.urls.append(raw)
        self.tokens.append(Token("copy", raw, raw))

    def add_extension(self, markup: re.Match[str]) -> None:
        """Add what CommonMark lacks, unless the document defines the label in its brackets."""
        raw, page, shown = markup[0], markup["page"], markup["shown"] or ""
        if self.is_defined(page or raw.partition("[")[2].rpartition("]")[0]):
            first = raw[: raw.index("[") + 1]
            self.at = markup.start() + len(first)
            self.open(markup.start(), first)
        elif raw.startswith("!") or markup["mark"]:  # an embedded page is like an image
            self.literal += raw
            self.tokens.append(Token("point", raw, breaks=bool(page)))
        elif any(map(str.isalpha, shown)):
            opening = raw[: -len(shown) - 2]
            self.literal += opening
            text = Token("text", shown, ESCAPED.sub(r"\1", shown))
            self.tokens += [
                Token("open", opening, name="page"),
                text,
                Token("close", "]]", name="page"),
            ]
        else:
            self.tokens.append(Token("copy", raw, page or ""))

    def open(self, begin: int, raw: str) -> None:
        """Add an opening bracket as text, until its closing bracket shows what it is."""
        self.tokens.append(Token("text", raw, raw))
        self.brackets.append(Bracket(len(self.tokens) - 1, begin + len(raw)))

    def close(self, begin: int) -> None:
        """Add a closing bracket: the end of a link, image or inline footnote, or text."""
        self.at = begin + 1
        self.tokens.append(Token("text", "]", "]"))
        if not self.brackets:
            self.has_brackets = True
            return
        opening = self.brackets.pop()
        token, is_active = self.tokens[opening.token], len(self.brackets) >= self.inactive
        self.inactive = min(self.inactive, len(self.brackets))
        end = self.end_of_link(opening.content, begin)
        if token.raw == "![" and end:
            while (
                self.images and self.images[-1][0][0] >= opening.content
            ):  # images in the text of this one
                self.images.pop()
            self.images.append(((opening.content - 2, end), (opening.content, begin)))
            self.tokens[opening.token :] = [
                Token("point", self.text[opening.content - 2 : end], breaks=True)
            ]
            self.at = end
        elif token.raw == "[" and end and is_active:
            raw = self.text[begin:end]
            # The text may also be the label of the link's address.
            content = " ".join(self.text[opening.content : begin].split())
            self.tokens[opening.token] = Token("open", "[", name="link")
            closing = f"][{content}]" if raw in ("]", "][]") else ""
            self.tokens[-1] = Token("close", raw, name="link", closing=closing)
            self.settle_inside(opening)
            self.inactive, self.at = len(self.brackets), end
        elif token.raw == "^[":
            self.close_note(opening)
        else:
            self.has_brackets = True

    def close_note(self, opening: Bracket) -> None:
        """Turn the brackets of an inline footnote into an element, apart from the word before it."""
        self.literal += "^["
        before = self.text[: opening.content - 2][-1:]
        is_apart = bool(before.strip())
        self.tokens[opening.token] = Token("open", "^[", name="note", is_apart=is_apart)
        self.tokens[-1] = Token("close", "]", name="note")
        self.settle_inside(opening)
        # Tokens without `raw` are for the model only.
        if is_apart:
            self.tokens.insert(opening.token, Token("text", "", " "))
        if self.text[self.at : self.at + 1].isalnum():
            self.tokens.append(Token("text", "", " "))

    def end_of_link(self, content: int, closing: int) -> int:
        """The end of a link or image with a bracketed text from `content` to `closing`; 0 if it is not one."""
        begin = closing + 1
        if end := end_of_address(self.text, begin):
            return end
        if label := LABEL.match(self.text, begin):
            return label.end() if self.is_defined(label[1]) else 0
        if closing - content > LONGEST_LABEL or not self.is_defined(self.text[content:closing]):
            return 0
        return begin + 2 * self.text.startswith("[]", begin)

    def add_tag(self, markup: re.Match[str]) -> None:
        """Add an HTML tag, or a whole element that is copied."""
        raw, name = markup[0], (markup["name"] or "").lower()
        is_element = bool(name) and name not in html.BETWEEN and not raw.endswith("/>")
        if is_element and raw[1] != "/" and (end := self.end_of_copied(raw, name)):
            element = self.text[markup.start() : end]
            if name in NO_TEXT:
                self.tokens.append(Token("point", element, breaks=name in html.RAW))
            else:
                self.tokens.append(html.copied(name, element))
            self.at = end
            return
        kind: Kind = "point"
        if is_element:
            kind = "close" if raw[1] == "/" else "open"
        token = Token(
            kind,
            raw,
            name=name,
            breaks=name in SEPARATORS | BLOCKS,
            is_script=kind == "open" and name in NAMES_OF_SCRIPTS,
            is_dropped=name in html.RUBY,
        )
        self.tokens.append(token)

    def end_of_copied(self, raw: str, name: str) -> int:
        """The end of an element to copy, whose opening tag has been read; 0 if there is none."""
        is_copied = name in html.COPIED | NO_TEXT
        if not is_copied and name in INLINE:
            is_copied = html.is_fixed(html.tags_of(raw)[0], raw)
        if not is_copied or name in self.unclosed:
            return 0
        closing = re.compile(rf"</{re.escape(name)}\s*>", re.IGNORECASE).search(self.text, self.at)
        if not closing:
            self.unclosed.add(name)
        return closing.end() if closing else 0

    def settle_inside(self, opening: Bracket) -> None:
        """Settle the emphasis in a link: its signs have no partners outside of the link."""
        inside = slice(opening.token + 1, len(self.tokens) - 1)
        self.tokens[inside] = settle_emphasis(self.tokens[inside])


def with_blanks(tokens: list[Token]) -> list[Token]:
    """The tokens with blanks for the model around the tags of elements that separate words."""
    if not any(token.breaks and token.kind == "open" for token in tokens):
        return tokens
    partners = find_pairs(tokens)
    result = list[Token]()
    for index, token in enumerate(tokens):
        blank = [Token("text", "", " ")] if token.breaks and index in partners else []
        result += [*blank, token, *blank]
    return result
