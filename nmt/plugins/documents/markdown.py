"""Markdown as CommonMark and GitHub know it: markdown-it finds blocks and what is in them, this, where."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import accumulate, groupby, pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_inline import autolink, backtick, image, link
from markdown_it.token import Token as Parsed

from nmt.plugins.documents import html
from nmt.plugins.documents.document import Direction, Part, Text, Translated
from nmt.plugins.documents.markup import Sentence, Token, find_pairs

FRONT_MATTER = re.compile(
    r"(?:---[ \t]*\r?\n.*?\n(?:---|\.\.\.)|\+\+\+[ \t]*\r?\n.*?\n\+\+\+)[ \t]*(?:\r?\n|\Z)", re.DOTALL
)
BREAK = re.compile(r"[ \t]*\\?\n[ \t]*")
ALERT, ATTRIBUTES = r"\[!\w{1,40}\][+-]?", r"\{:[^{}\n]{0,200}\}|\{ ?[#.]\w[^{}\n]{0,200}\}"
UNKNOWN = re.compile(rf"(\[\^[^\]\s]+\]:?|\[[ xX]\]|{ALERT}|{ATTRIBUTES})")
"""Footnotes, the boxes of tasks, alerts and lists of attributes, which CommonMark takes for text."""
STARTS, ENDS = re.compile(rf"\s*(?:\[\^[^\]\s]+\]:|{ALERT}|{ATTRIBUTES})"), re.compile(rf"\s*(?:{ALERT}|{ATTRIBUTES})")
"""Lines of a paragraph of CommonMark that begin another one, or end one."""
ACTIVE = re.compile(r"[\\`\[\]|]|\*(?!\s)|(?<!\s)\*|(?<!\w)_|_(?!\w)|<(?=[a-zA-Z/!?])|&(?=#?\w+;)|~(?=~)")
"""What may mean more than the character itself."""
EMPHASIS = re.compile("em_|strong_|s_")
TEXTS = frozenset(("text", "text_special", "softbreak", "hardbreak"))
BEGINS_BLOCK = re.compile(r"((?:\A|\n[ \t>]*+)(?:\d{1,9}(?=[.)]\s)|(?=[#>+=-]|\*\s|~~~)))")


def escape(text: str) -> str:
    return ACTIVE.sub(r"\\\g<0>", text)


def noting(rule: Callable[[Any, bool], bool]) -> Callable[[Any, bool], bool]:
    """A rule of markdown-it that notes where what it finds ends."""

    def noted(state: Any, silent: bool) -> bool:
        begin = state.pos
        applies = rule(state, silent)
        if applies and not silent:
            state.env["ends"][state.src, begin] = state.pos
        return applies

    return noted


@cache
def parser() -> MarkdownIt:
    markdown = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")
    for name, rule in {"link": link, "image": image, "autolink": autolink, "backticks": backtick}.items():
        markdown.inline.ruler.at(name, noting(rule))
    return markdown


def markup_of(text: str, notes: dict[str, Any]) -> tuple[Counter[str], int]:
    """The markup in the text of a block, and how many signs of emphasis are none there."""
    tokens = parser().parseInline(text, notes)[0].children or []
    markup = Counter(f"{token.type} {token.attrs} {token.content}" for token in tokens if token.type not in TEXTS)
    return markup, sum(token.type == "text" and token.content.strip("*_~") == "" < token.content for token in tokens)


def with_copies(tokens: Sequence[Token]) -> list[Token]:
    """Tokens in which each element that is copied in HTML is one."""
    joined, partners, at = list[Token](), find_pairs(tokens), 0
    while at < len(tokens):
        token, last = tokens[at], partners.get(at, at)
        tag = html.tags_of(token.raw)[0] if last > at and token.raw.startswith("<") else None
        if tag and (tag.name in html.COPIED or tag.is_fixed(token.raw)):
            inside = tokens[at : last + 1]
            shown = "" if tag.name in ("math", "svg") else "".join(token.text for token in inside)
            token = Token("copy", "".join(token.raw for token in inside), shown, breaks=not shown)
            at = last
        joined.append(token)
        at += 1
    return joined


class Inline(Sentence):
    """The content of a paragraph, a heading or a cell, whose lines begin at `places` in the text.

    Its markup stays the same, and a paragraph stays one. Raises LookupError where markup is not found in the text.
    """

    def __init__(self, text: str, parsed: Parsed, places: list[int], notes: dict[str, Any], in_paragraph: bool) -> None:
        self.content, self.places, self.notes, self.in_paragraph = parsed.content, places, notes, in_paragraph
        self.starts = [0, *(end.end() for end in re.finditer("\n", self.content))]
        """Where each line begins in the content."""
        tokens = list(self.read(parsed.children or []))
        begins = [self.place(at) for at, _ in [*tokens, (len(self.content), None)]]
        for (_, token), span in zip(tokens, pairwise(begins), strict=True):
            token.raw = text[slice(*span)]
        super().__init__(begins[0], with_copies([token for _, token in tokens]), escape)
        self.before, self.after = text[begins[0] : self.begin], text[self.end : begins[-1]]

    def place(self, at: int) -> int:
        """The place in the text of a character of the content."""
        line = bisect_right(self.starts, at) - 1
        return self.places[line] + at - self.starts[line]

    def read(self, parsed: list[Parsed]) -> Iterator[tuple[int, Token]]:
        """Where each token begins in the content, and the token."""
        at, links, skip = 0, list[tuple[int, int]](), 0
        for is_text, group in groupby(parsed, lambda each: each.type == "text"):
            if is_text:
                for piece in UNKNOWN.split("".join(each.content for each in group)) if not skip else ():
                    if not self.content.startswith(piece, at):
                        raise LookupError
                    if piece:
                        yield at, Token("point", "") if UNKNOWN.fullmatch(piece) else Token("text", "", piece)
                    at += len(piece)
                continue
            for each in group:
                end = self.notes["ends"].get((self.content, at), at)
                if skip:
                    skip = 0
                    continue
                if each.type == "link_open" and each.info == "auto":
                    token, skip = Token("copy", "", self.content[at + 1 : end - 1]), 1
                elif each.type == "link_open":
                    links.append((at + 1, end))
                    token, end = Token("open", "", name="link"), at + 1
                elif each.type == "link_close":
                    begun, end = links.pop()
                    token = Token("close", "", name="link")
                    if self.content[at:end] in ("]", "][]"):  # the text is the name of the address
                        token.closing = f"][{' '.join(self.content[begun:at].split())}]"
                elif each.type == "code_inline":
                    token = Token("copy", "", each.content)
                elif each.type == "image":
                    token = Token("point", "", breaks=True)
                else:
                    token, end = self.read_markup(each, at)
                if end <= at:
                    raise LookupError
                yield at, token
                at = end

    def read_markup(self, parsed: Parsed, at: int) -> tuple[Token, int]:
        """A token that is found by what it is written with, and its end."""
        if parsed.type in ("softbreak", "hardbreak"):
            broken, hard = BREAK.match(self.content, at), parsed.type == "hardbreak"
            if not broken:
                raise LookupError
            return Token("point" if hard else "text", "", "" if hard else " ", breaks=hard, optional=hard), broken.end()
        written = parsed.content if parsed.type == "html_inline" else parsed.markup
        if not self.content.startswith(written, at):
            raise LookupError
        tag, end = html.MARKUP.fullmatch(written), at + len(written)
        if parsed.type == "text_special":
            return Token("text", "", parsed.content), end
        if parsed.type == "html_inline":
            name = ((tag["name"] if tag else "") or "").lower()
            if name and name not in html.BETWEEN and not written.endswith("/>"):
                return Token("close" if written[1] == "/" else "open", "", name=name), end
            return Token("point", "", breaks=name in html.BETWEEN), end
        name, _, way = parsed.type.rpartition("_")
        return Token("open" if way == "open" else "close", "", name=name, optional=True), end

    def render(self, translations: Sequence[Translated]) -> str:
        """The block, without emphasis where that would not be emphasis, or as it was where no way keeps its markup."""
        ways = (
            self.written(translations),
            self.written(translations, lambda node: bool(node.close and node.optional)),
        )
        blocks = (BEGINS_BLOCK.sub(r"\1\\", way) if self.in_paragraph and way != self.raw else way for way in ways)
        return next((block for block in blocks if self.keeps(block, translations)), self.raw)

    def keeps(self, written: str, translations: Sequence[Translated]) -> bool:
        """True if a text has the markup that the block had, emphasis aside."""
        if written == self.raw:
            return True
        texts = (self.before + text + self.after for text in (self.raw, written, escape(translations[0].text)))
        (before, _), (after, signs), (_, others) = (markup_of(text, self.notes) for text in texts)
        left_out = all(EMPHASIS.match(markup) for markup in before - after)
        closed, closed_before = (sum(tag.partner > 0 for tag in html.tags_of(text)) for text in (written, self.raw))
        whole = self.before + written + self.after
        defines = self.in_paragraph and whole.startswith("[") and not parser().parse(whole, {"ends": {}})
        return not defines and after <= before and left_out and signs == others and closed >= closed_before


class Reader:
    """Collects the parts of a text that are to be translated."""

    def __init__(self, text: str, begin: int) -> None:
        self.text, self.parts = text, list[Part]()
        self.notes: dict[str, Any] = {"ends": {}}
        """What the parser notes: where markup ends, and the addresses of references."""
        body = text[begin:]
        lines = re.findall(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+", body)
        self.begins = list(accumulate(map(len, lines), initial=begin))
        self.lines = [line.rstrip().replace("\0", "\ufffd") for line in lines]
        row = list[Parsed]()
        for opening, token in pairwise([Parsed("", "", 0), *parser().parse(body, self.notes)]):
            if token.type == "html_block" and token.level == 0 and token.map:
                begin, end = self.begins[token.map[0]], self.begins[min(token.map[1], len(self.lines))]
                self.parts.append(html.Page(text[begin:end], begin))
            elif token.type == "tr_close":
                self.add_row(row)
                row = []
            elif token.type == "inline" and opening.type in ("th_open", "td_open"):
                row.append(token)
            elif token.type == "inline":
                for piece in self.pieces(token):
                    self.add(piece, self.places(piece), opening.type == "paragraph_open")

    def pieces(self, token: Parsed) -> list[Parsed]:
        """The content of a block, with footnotes and lines such as alerts apart."""
        lines, first, pieces = token.content.split("\n"), token.map[0] if token.map else 0, list[Parsed]()
        begins = [n for n, line in enumerate(lines) if n and (STARTS.match(line) or ENDS.match(lines[n - 1]))]
        for begin, end in pairwise([0, *begins, len(lines)]):
            [piece] = parser().parseInline("\n".join(lines[begin:end]).strip(), self.notes) if begins else [token]
            piece.map = [first + begin, first + end]
            pieces.append(piece)
        return pieces

    def places(self, token: Parsed) -> list[int]:
        """Where each line of the content stands in the text; none where one of them is not found."""
        places, first = list[int](), token.map[0] if token.map else 0
        for number, line in enumerate(token.content.split("\n"), first):
            at = self.lines[number].rfind(line.rstrip()) if number < len(self.lines) else -1
            if at < 0 or self.lines[number][at + len(line.rstrip()) :].strip(" \t#"):
                return []
            places.append(self.begins[number] + at)
        return places

    def add(self, token: Parsed, places: list[int], in_paragraph: bool = False) -> None:
        """Add a block; one that is not found stays as it is."""
        if places and token.content:
            with suppress(LookupError):
                self.parts.append(Inline(self.text, token, places, self.notes, in_paragraph))

    def add_row(self, cells: list[Parsed]) -> None:
        """Add the cells of a line of a table, found from its end."""
        number = cells[0].map[0] if cells and cells[0].map else 0
        line, places = self.lines[number] if cells else "", list[int]()
        after = len(line)
        for cell in reversed(cells):
            at = line.rfind(cell.content, 0, after)
            if at < 0 or line[at + len(cell.content) : after].strip(" \t|"):
                return
            places.append(self.begins[number] + at)
            after = at
        for cell, place in zip(cells, reversed(places), strict=True):
            self.add(cell, [place])


class Markdown(Text):
    """A text in Markdown; metadata in YAML or TOML at its beginning stay as they are."""

    def parts(self, text: str, model: Direction) -> list[Part]:
        front = FRONT_MATTER.match(text)
        return Reader(text, front.end() if front else 0).parts
