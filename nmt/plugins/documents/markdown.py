"""Markdown (CommonMark, GitHub's tables): markdown-it finds blocks, and checks that a translation has their markup."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from html import unescape
from itertools import accumulate, pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token as Parsed

from nmt.plugins.documents import html
from nmt.plugins.documents.document import Part, Text, Translated
from nmt.plugins.documents.markup import Sentence, Token, find_pairs, without_optional

FRONT_MATTER = re.compile(
    r"(?:---[ \t]*\r?\n.*?\n(?:---|\.\.\.)|\+\+\+[ \t]*\r?\n.*?\n\+\+\+)[ \t]*(?:\r?\n|\Z)", re.DOTALL
)
ADDRESS = r"(?:\((?:[^()\n]|\([^()\n]{0,200}\)){0,2000}+\)|\[[^\[\]]{0,200}\])?"
MARKUP = re.compile(
    r"(?P<hard>(?:[ ]{2,}|\\)\r?\n[ \t>]*)|(?P<soft>[ \t]*\r?\n[ \t>]*)|\\(?P<escaped>[!-/:-@\[-`{-~])|&#?\w{1,32};"
    r"|(?<!`)(?P<ticks>`+)(?!`)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)|<(?P<auto>[a-zA-Z][\w.+-]{1,31}:[^\s<>]*)>"
    rf"|(?P<image>!\[[^\[\]]{{0,500}}\]{ADDRESS})|(?P<unknown>\[\^[^\]\s]+\]:?|\[[ xX]\](?!\()|\[!\w{{1,40}}\])"
    rf"|(?P<open>\[)|(?P<close>\]{ADDRESS})|(?P<emphasis>\*+|~~|(?<!\w)_+|_+(?!\w))|(?P<tag>{html.MARKUP.pattern})",
    re.DOTALL,
)
"""Unknown to CommonMark are footnotes, the boxes of tasks, and alerts."""
ACTIVE = re.compile(r"[\\`\[\]|]|\*(?!\s)|(?<!\s)\*|(?<!\w)_|_(?!\w)|<(?=[a-zA-Z/!?])|&(?=#?\w+;)|~(?=~)")
"""What may mean more than the character itself."""
TEXTS = frozenset(("text", "text_special", "softbreak", "hardbreak"))
BEGINS_BLOCK = re.compile(r"((?:\A|\n[ \t>]*+)(?:\d{1,9}(?=[.)]\s)|(?=[#>+=-]|\*\s|~~~)))")


def escape(text: str) -> str:
    return ACTIVE.sub(r"\\\g<0>", text)


@cache
def parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


def tokens_of(text: str) -> list[Token]:
    """What looks like markup in the text of a block, and the text between; `Inline.keeps` checks the result."""
    tokens, at, links = list[Token](), 0, list[int]()
    for markup in MARKUP.finditer(text):
        raw, begin, before = markup[0], markup.start(), text[: markup.start()][-1:]
        tokens.append(Token("text", text[at:begin], text[at:begin]))
        at = markup.end()
        if markup["code"] or markup["auto"]:
            token = Token("copy", raw, markup["auto"] or " ".join(markup["code"].split()))
        elif markup["open"]:
            links.append(at)
            token = Token("open", raw, name="link")
        elif markup["close"]:
            begun = links.pop() if links else at
            is_name = raw in ("]", "][]")  # the text is the name of the address
            token = Token("close", raw, name="link", closing=f"][{' '.join(text[begun:begin].split())}]" * is_name)
        elif markup["emphasis"]:
            opens = text[at : at + 1].strip() and not before.strip(" \t\r\n([\"'>*_~")
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
        if token.name and token.name == token.text:  # emphasis, or a sign that is none
            token.kind, token.text = (token.kind, "") if index in partners else ("text", token.text)
    return [*tokens, Token("text", text[at:], text[at:])]


class Inline(Sentence):
    """The content of a paragraph, a heading or a cell. Its markup stays the same, and a paragraph stays one."""

    def __init__(self, text: str, begin: int, end: int, references: dict[str, Any], in_paragraph: bool) -> None:
        super().__init__(begin, tokens_of(text[begin:end]), escape)
        self.references, self.in_paragraph = references, in_paragraph
        self.before, self.after = text[begin : self.begin], text[self.end : end]

    def render(self, translations: Sequence[Translated]) -> str:
        """The block, if need be without emphasis, or as it was where no way keeps its markup."""
        for nodes in (self.nodes, list(without_optional(self.nodes))):
            written = self.written(translations, nodes)
            if self.in_paragraph and written != self.raw:
                written = BEGINS_BLOCK.sub(r"\1\\", written)
            if written == self.raw or self.keeps(written, escape(translations[0].text)):
                return written
        return self.raw

    def markup_of(self, text: str) -> tuple[Counter[str], int]:
        """The markup in the block with another text, and how many signs of emphasis are none there."""
        tokens = parser().parseInline(self.before + text + self.after, self.references)[0].children or []
        markup = Counter(f"{token.type} {token.attrs} {token.content}" for token in tokens if token.type not in TEXTS)
        texts = "".join(token.content for token in tokens if token.type == "text")
        return markup, sum(map(texts.count, "*_~"))

    def keeps(self, written: str, plain: str) -> bool:
        """True if a text has the markup that the block had, emphasis aside, and no signs of its own."""
        (before, _), (after, signs), (_, others) = map(self.markup_of, (self.raw, written, plain))
        left_out = all(re.match("em_|strong_|s_", markup) for markup in before - after)
        closed, closed_before = (sum(tag.partner > 0 for tag in html.tags_of(text)) for text in (written, self.raw))
        whole = self.before + written + self.after
        defines = self.in_paragraph and whole.startswith("[") and not parser().parse(whole)
        return not defines and after <= before and left_out and signs <= others and closed >= closed_before


class Markdown(Text):
    """A text in Markdown; metadata in YAML or TOML at its beginning stay as they are."""

    def parts(self, text: str, target: str) -> list[Part]:
        front = FRONT_MATTER.match(text)
        begin = front.end() if front else 0
        body, parts, references, row = text[begin:], list[Part](), dict[str, Any](), list[Parsed]()
        lines = re.findall(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+", body)
        self.begins = list(accumulate(map(len, lines), initial=begin))
        self.rows = [line.rstrip().replace("\0", "\ufffd") for line in lines]
        for opening, token in pairwise([Parsed("", "", 0), *parser().parse(body, references)]):
            if token.type == "html_block" and token.level == 0 and token.map:
                begin, end = self.begins[token.map[0]], self.begins[min(token.map[1], len(self.rows))]
                parts.append(html.Page(text[begin:end], begin))
            elif token.type == "tr_close":
                parts += (Inline(text, *span, references, in_paragraph=False) for span in self.cells(row))
                row = []
            elif token.type == "inline" and opening.type in ("th_open", "td_open"):
                row.append(token)
            elif token.type == "inline" and token.content and token.map:
                lines = token.content.split("\n")
                begin, _ = self.find(lines[0], token.map[0])
                end, rest = self.find(lines[-1], token.map[0] + len(lines) - 1)
                if min(begin, end) >= 0 and not rest.strip(" \t#"):
                    end += len(lines[-1].rstrip())
                    parts.append(Inline(text, begin, end, references, opening.type == "paragraph_open"))
        return parts

    def find(self, content: str, number: int) -> tuple[int, str]:
        """Where the content of a line stands in the text, -1 for nowhere, and what follows it in the line."""
        line, content = self.rows[number], content.rstrip()
        at = line.rfind(content)
        return (self.begins[number] + at if at >= 0 else -1), line[at + len(content) :]

    def cells(self, row: list[Parsed]) -> list[tuple[int, int]]:
        """Where the cells of a line of a table stand, found from its end; none if one is not there."""
        number = row[0].map[0] if row and row[0].map else 0
        line, spans = self.rows[number] if row else "", list[tuple[int, int]]()
        after = len(line)
        for cell in reversed(row):
            at = line.rfind(cell.content, 0, after)
            if at < 0 or line[at + len(cell.content) : after].strip(" \t|"):
                return []
            spans.insert(0, (self.begins[number] + at, self.begins[number] + at + len(cell.content)))
            after = at
        return spans
