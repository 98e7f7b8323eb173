"""The text of a block of Markdown, and its markup: markdown-it finds what is in it, this, where."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_inline import autolink, backtick, image, link
from markdown_it.token import Token as Found

from nmt.plugins.documents.document import Translated
from nmt.plugins.documents.html import BETWEEN, COPIED, MARKUP, is_fixed, tags_of
from nmt.plugins.documents.markup import Sentence, Token, find_pairs

BREAK = re.compile(r"[ \t]*\\?\n[ \t]*")
ALERT, ATTRIBUTES = r"\[!\w{1,40}\][+-]?", r"\{:[^{}\n]{0,200}\}|\{ ?[#.]\w[^{}\n]{0,200}\}"
UNKNOWN = re.compile(rf"(\[\^[^\]\s]+\]:?|\[[ xX]\]|{ALERT}|{ATTRIBUTES})")
"""Footnotes, the boxes of tasks, alerts and lists of attributes, which CommonMark takes for text."""
ACTIVE = re.compile(r"[\\`\[\]|]|\*(?!\s)|(?<!\s)\*|(?<!\w)_|_(?!\w)|<(?=[a-zA-Z/!?])|&(?=#?\w+;)|~(?=~)")
"""What may mean more than the character itself."""
EMPHASIS = re.compile("em_|strong_|s_")
TEXTS = frozenset(("text", "text_special", "softbreak", "hardbreak"))
BEGINS_BLOCK = re.compile(r"((?:\A|\n[ \t>]*+)(?:\d{1,9}(?=[.)]\s)|(?=[#>+=-]|\*\s|~~~)))")


def escape(text: str) -> str:
    return ACTIVE.sub(r"\\\g<0>", text)


def noting(rule: Callable[[Any, bool], bool]) -> Callable[[Any, bool], bool]:
    """A rule of markdown-it that notes where what it has found ends."""

    def noted(state: Any, silent: bool) -> bool:
        begin = state.pos
        found = rule(state, silent)
        if found and not silent:
            state.env["ends"][state.src, begin] = state.pos
        return found

    return noted


@cache
def parser() -> MarkdownIt:
    markdown = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")
    for name, rule in {"link": link, "image": image, "autolink": autolink, "backticks": backtick}.items():
        markdown.inline.ruler.at(name, noting(rule))
    return markdown


def markup_of(text: str, known: dict[str, Any]) -> tuple[Counter[str], int]:
    """The markup in the text of a block, and how many signs of emphasis are none there."""
    found = parser().parseInline(text, known)[0].children or []
    markup = Counter(f"{each.type} {each.attrs} {each.content}" for each in found if each.type not in TEXTS)
    return markup, sum(each.type == "text" and each.content.strip("*_~") == "" < each.content for each in found)


def with_copies(tokens: Sequence[Token]) -> list[Token]:
    """Tokens in which each element that is copied in HTML is one."""
    found, partners, at = list[Token](), find_pairs(tokens), 0
    while at < len(tokens):
        token, last = tokens[at], partners.get(at, at)
        tag = tags_of(token.raw)[0] if last > at and token.raw.startswith("<") else None
        if tag and (tag.name in COPIED or is_fixed(token.raw, tag)):
            inside = tokens[at : last + 1]
            shown = "" if tag.name in ("math", "svg") else "".join(each.text for each in inside)
            token = Token("copy", "".join(each.raw for each in inside), shown, breaks=not shown)
            at = last
        found.append(token)
        at += 1
    return found


class Inline(Sentence):
    """The text of a block, whose markup stays the same; in a paragraph, it does not become another block."""

    def __init__(self, block: "Block", known: dict[str, Any], in_paragraph: bool) -> None:
        super().__init__(block.begin, block.found, escape)
        self.known, self.in_paragraph = known, in_paragraph
        self.before, self.after = block.text[block.begin : self.begin], block.text[self.end : block.end]

    def render(self, translations: Sequence[Translated]) -> str:
        """The block, without emphasis where that would not be emphasis, or as it was where no way keeps its markup."""
        ways = (
            self.written(translations),
            self.written(translations, lambda node: bool(node.close and node.optional)),
        )
        return next((written for written in map(self.as_block, ways) if self.keeps(written, translations)), self.raw)

    def as_block(self, written: str) -> str:
        in_paragraph = self.in_paragraph and written != self.raw
        return BEGINS_BLOCK.sub(r"\1\\", written) if in_paragraph else written

    def keeps(self, written: str, translations: Sequence[Translated]) -> bool:
        """True if a text has the markup that the block had, emphasis aside."""
        if written == self.raw:
            return True
        texts = (self.before + text + self.after for text in (self.raw, written, escape(translations[0].text)))
        (before, _), (after, signs), (_, others) = (markup_of(text, self.known) for text in texts)
        left_out = all(EMPHASIS.match(each) for each in before - after)
        closed, closed_before = (sum(tag.partner > 0 for tag in tags_of(text)) for text in (written, self.raw))
        whole = self.before + written + self.after
        defines = self.in_paragraph and whole.startswith("[") and not parser().parse(whole, {"ends": {}})
        return not defines and after <= before and left_out and signs == others and closed >= closed_before


def joined_texts(found: Sequence[Found]) -> Iterator[Found]:
    """What markdown-it has found, with texts that follow each other as one."""
    for is_text, own in groupby(found, lambda each: each.type == "text"):
        if is_text:
            yield Found("text", "", 0, content="".join(each.content for each in own))
        else:
            yield from own


class Block:
    """The content of a paragraph, a heading or a cell, whose lines begin at `places` in the text."""

    def __init__(self, text: str, found: Found, places: list[int], ends: dict[tuple[str, int], int]) -> None:
        self.text, self.content, self.places, self.ends = text, found.content, places, ends
        self.lines = [0, *(each.end() for each in re.finditer("\n", self.content))]
        """Where each line begins in the content."""
        kinds = list(self.tokens(found.children or []))
        begins = [self.place(at) for at, _ in kinds] + [self.place(len(self.content))]
        self.begin, self.end, self.found = begins[0], begins[-1], [token for _, token in kinds]
        for token, begin, end in zip(self.found, begins, begins[1:], strict=False):
            token.raw = text[begin:end]
        self.found = with_copies(self.found)

    def place(self, at: int) -> int:
        """The place in the text of a character of the content."""
        line = bisect_right(self.lines, at) - 1
        return self.places[line] + at - self.lines[line]

    def tokens(self, found: list[Found]) -> Iterator[tuple[int, Token]]:
        """Where each token begins in the content, and the token."""
        at, links, skip = 0, list[tuple[int, int]](), 0
        for each in joined_texts(found):
            if skip:
                skip -= 1
                continue
            kind, end = each.type, self.ends.get((self.content, at), at)
            if kind == "text":
                for piece in UNKNOWN.split(each.content):
                    if not self.content.startswith(piece, at):
                        raise LookupError
                    if piece:
                        yield at, Token("point", "") if UNKNOWN.fullmatch(piece) else Token("text", "", piece)
                    at += len(piece)
                continue
            if kind == "link_open" and each.info == "auto":
                token, skip = Token("copy", "", self.content[at + 1 : end - 1]), 2
            elif kind == "link_open":
                links.append((at + 1, end))
                token, end = Token("open", "", name="link"), at + 1
            elif kind == "link_close":
                begun, end = links.pop()
                token = Token("close", "", name="link")
                if self.content[at:end] in ("]", "][]"):  # the text is the name of the address
                    token.closing = f"][{' '.join(self.content[begun:at].split())}]"
            elif kind == "code_inline":
                token = Token("copy", "", each.content)
            elif kind == "image":
                token = Token("point", "", breaks=True)
            else:
                token, end = self.other(each, at)
            if end <= at:
                raise LookupError
            yield at, token
            at = end

    def other(self, each: Found, at: int) -> tuple[Token, int]:
        """A token that is found by what it is written with, and its end."""
        if each.type in ("softbreak", "hardbreak"):
            broken = BREAK.match(self.content, at)
            if not broken:
                raise LookupError
            hard = each.type == "hardbreak"
            return Token("point" if hard else "text", "", "" if hard else " ", breaks=hard, optional=hard), broken.end()
        written = each.content if each.type == "html_inline" else each.markup
        if not self.content.startswith(written, at):
            raise LookupError
        tag, end = MARKUP.fullmatch(written), at + len(written)
        if each.type == "text_special":
            return Token("text", "", each.content), end
        if each.type == "html_inline":
            html = ((tag["name"] if tag else "") or "").lower()
            if html and html not in BETWEEN and not written.endswith("/>"):
                return Token("close" if written[1] == "/" else "open", "", name=html), end
            return Token("point", "", breaks=html in BETWEEN), end
        name, _, way = each.type.rpartition("_")
        return Token("open" if way == "open" else "close", "", name=name, optional=True), end
