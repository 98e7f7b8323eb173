"""Markdown (CommonMark and GitHub tables): markdown-it finds the blocks and checks the markup of translations."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from html import unescape
from itertools import pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token as Parsed

from nmt.plugins.documents import html
from nmt.plugins.documents.document import Part, Text, Translated
from nmt.plugins.documents.markup import Sentence, Token, find_pairs, without_optional

FRONT_MATTER = re.compile(
    r"(?:---[ \t]*\r?\n.*?\n(?:---|\.\.\.)|\+\+\+[ \t]*\r?\n.*?\n\+\+\+)[ \t]*(?:\r?\n|\Z)", re.DOTALL
)
ADDRESS = r"(?:\((?>(?:[^()\n]|\([^()\n]{0,200}\)){0,2000})\)|\[[^\[\]]{0,200}\])?"
MARKUP = re.compile(
    r"(?P<hard>(?:[ ]{2,}|\\)\r?\n[ \t>]*)|(?P<soft>[ \t]*\r?\n[ \t>]*)|\\(?P<escaped>[!-/:-@\[-`{-~])|&#?\w{1,32};"
    r"|(?<!`)(?P<ticks>`+)(?!`)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)|<(?P<auto>[a-zA-Z][\w.+-]{1,31}:[^\s<>]*)>"
    rf"|(?P<image>!\[[^\[\]]{{0,500}}\]{ADDRESS})|(?P<unknown>\[\^[^\]\s]+\]:?|\[[ xX]\](?!\()|\[!\w{{1,40}}\])"
    rf"|(?P<open>\[)|(?P<close>\]{ADDRESS})|(?P<emphasis>\*+|~~|(?<!\w)_+|_+(?!\w))|(?P<tag>{html.MARKUP.pattern})",
    re.DOTALL,
)  # the group "unknown" matches footnotes, task boxes and alerts, which CommonMark lacks
ACTIVE = re.compile(r"[\\`\[\]|]|\*(?!\s)|(?<!\s)\*|(?<!\w)_|_(?!\w)|<(?=[a-zA-Z/!?])|&(?=#?\w+;)|~(?=~)")
escape = partial(ACTIVE.sub, r"\\\g<0>")
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
TEXTS = frozenset(("text", "text_special", "softbreak", "hardbreak"))
BEGINS_BLOCK = re.compile(r"((?:\A|\n[ \t>]*+)(?:\d{1,9}(?=[.)]\s)|(?=[#>+=-]|\*\s|~~~)))")


def tokens_of(text: str) -> list[Token]:
    """Split a block into text and possible markup; `Inline.keeps` later checks that a translation keeps the markup."""
    tokens, at, links = list[Token](), 0, list[int]()
    for markup in MARKUP.finditer(text):
        raw, begin = markup[0], markup.start()
        tokens.append(Token("text", text[at:begin], text[at:begin]))
        at = markup.end()
        if markup["code"] or markup["auto"]:
            token = Token("copy", raw, markup["auto"] or " ".join(markup["code"].split()))
        elif markup["open"]:
            links.append(at)
            token = Token("open", raw, name="link")
        elif markup["close"]:
            begun = links.pop() if links else at
            is_label = raw in ("]", "][]")  # the link's text is also the label under which its address is defined
            token = Token("close", raw, name="link", closing=f"][{' '.join(text[begun:begin].split())}]" * is_label)
        elif markup["emphasis"]:
            opens = text[at : at + 1].strip() and not text[begin - 1 : begin].strip(" \t\r\n([\"'>*_~")
            token = Token("open" if opens else "close", raw, raw, name=raw, optional=True)
        elif markup["hard"] or markup["image"] or markup["unknown"]:
            token = Token("point", raw, breaks=not markup["unknown"], optional=bool(markup["hard"]))
        elif markup["tag"] and raw.endswith(">"):
            name = (markup["name"] or "").lower()
            is_element = name and name not in html.BETWEEN and not raw.endswith("/>")
            token = Token("point" if not is_element else "close" if raw[1] == "/" else "open", raw, name=name)
            token.breaks = name in html.BETWEEN
        else:
            token = Token("text", raw, " " if markup["soft"] else markup["escaped"] or unescape(raw))
        tokens.append(token)
    partners = find_pairs(tokens)
    for index, token in enumerate(tokens):
        if token.name and token.name == token.text:  # emphasis or a literal character
            token.kind, token.text = (token.kind, "") if index in partners else ("text", token.text)
    return [*tokens, Token("text", text[at:], text[at:])]


class Inline(Sentence):
    """The content of a paragraph, heading or table cell; its translation keeps the markup."""

    def __init__(self, text: str, begin: int, end: int, references: dict[str, Any], in_paragraph: bool) -> None:
        super().__init__(begin, tokens_of(text[begin:end]), escape)
        self.references, self.in_paragraph = references, in_paragraph
        self.before, self.after = text[begin : self.begin], text[self.end : end]

    def render(self, translations: Sequence[Translated]) -> str:
        """The translation, without emphasis if it would otherwise lose markup; the source if even that loses markup."""
        for nodes in (self.nodes, list(without_optional(self.nodes))):
            written = self.written(translations, nodes)
            if self.in_paragraph and written != self.raw:
                written = BEGINS_BLOCK.sub(r"\1\\", written)
            if written == self.raw or self.keeps(written, escape(translations[0].text)):
                return written
        return self.raw

    def markup_of(self, text: str) -> tuple[Counter[str], int]:
        """Parse the block with `text` as its content; return its markup and number of literal emphasis characters."""
        tokens = PARSER.parseInline(self.before + text + self.after, self.references)[0].children or []
        markup = Counter(f"{token.type} {token.attrs} {token.content}" for token in tokens if token.type not in TEXTS)
        texts = "".join(token.content for token in tokens if token.type == "text")
        return markup, sum(map(texts.count, "*_~"))

    def keeps(self, written: str, plain: str) -> bool:
        """True if `written` has the source's markup, perhaps without emphasis, and adds no emphasis characters."""
        (before, _), (after, signs), (_, others) = map(self.markup_of, (self.raw, written, plain))
        left_out = all(re.match("em_|strong_|s_", markup) for markup in before - after)
        closed, closed_before = (sum(tag.partner > 0 for tag in html.tags_of(text)) for text in (written, self.raw))
        whole = self.before + written + self.after
        defines = self.in_paragraph and whole.startswith("[") and not PARSER.parse(whole)
        return not defines and after <= before and left_out and signs <= others and closed >= closed_before


class Markdown(Text):
    """A Markdown file; YAML or TOML front matter is left unchanged."""

    def parts(self, text: str, target: str) -> list[Part]:
        front = FRONT_MATTER.match(text)
        at = front.end() if front else 0
        body, parts, references = text[at:], list[Part](), dict[str, Any]()
        begins = [at, *(at + line.end() for line in re.finditer(r"\r\n?|\n|.\Z", body))]
        for opening, token in pairwise([Parsed("", "", 0), *PARSER.parse(body, references)]):
            first, after = token.map or (0, 0)
            if token.type == "html_block" and token.level == 0:
                begin, at = begins[first], begins[min(after, len(begins) - 1)]
                parts.append(html.Page(text[begin:at], begin))
            elif token.type == "inline" and token.content:
                lines = token.content.rstrip().split("\n")
                last = first + len(lines) - 1
                begin = text.find(lines[0].rstrip(), max(at, begins[first]), begins[first + 1])
                end = text.find(lines[-1], max(begin, begins[last]), begins[last + 1])
                at = begins[first + 1] if min(begin, end) < 0 else end + len(lines[-1])
                if min(begin, end) >= 0:
                    parts.append(Inline(text, begin, at, references, opening.type == "paragraph_open"))
        return parts
