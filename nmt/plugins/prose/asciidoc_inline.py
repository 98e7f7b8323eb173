"""Inline markup of AsciiDoc, as Asciidoctor reads it.

Source: https://docs.asciidoctor.org/asciidoc/latest/text/
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import unescape

from nmt.plugins.documents import MarkupToken, without_optional
from nmt.plugins.prose.sentences import BEGINS, ENDS, Syntax

ROLE = r"(?:\[[^\[\]\n]{1,200}\])?"
# A bracket inside must be closed, so that files of opening brackets take linear time.
IN_BRACKETS = r"\[(?:[^\[\]\\]|\\.|\[(?=[^\[\]]{0,200}\])){0,1000}\]"
MARKUP = re.compile(
    r"(?P<note>\x00\d+\x01*)"
    r"|(?P<hard>(?<![ \t])[ \t]+\+(?:\r?\n[ \t]*|\s*\Z))"
    r"|(?P<soft>(?<![ \t])[ \t]*\r?\n[ \t]*)"
    r"|(?P<escape>\\(?=[*_`#^~+{<\[(|&:]|https?:|link:|xref:|mailto:|\w{1,20}:))"
    r"|(?P<reference>&(?:\#\d{1,7}|\#x[\da-fA-F]{1,6}|[a-zA-Z]{2,31}\d{0,2});)"
    r"|(?P<pass>\+\+\+(?:(?!\+\+\+)[\s\S]){1,1000}\+\+\+|\$\$(?:(?!\$\$)[\s\S]){1,1000}\$\$"
    r"|\+\+(?!\+)(?:(?!\+\+)[\s\S]){1,1000}\+\+)"
    rf"|(?P<link>\{{[\w][\w-]{{0,80}}\}}[^\s\[\]{{}}]{{0,1000}}(?={IN_BRACKETS}))"
    r"|(?P<attribute>\{[\w][^{}\n]{0,200}\})"
    r"|(?P<index>\(\(\([^()]{1,500}\)\)\))"
    r"|(?P<term>\(\((?=[^()]{1,500}\)\)(?!\))))"
    r"|(?P<anchor>\[\[\[?[\w:][^\[\]\n]{0,300}\]{2,3})"
    r"|(?P<cross><<[^<>\n,]{1,300}(?:>>|,(?=[^<>]{1,1000}>>)))"
    rf"|(?P<macro>(?:link|xref|mailto):[^\s\[\]]{{0,1000}}(?={IN_BRACKETS}))"
    r"|(?P<url>(?<![^\s<>\[\]()\"';*_#^~`+])(?:https?|ftp|irc)://[^\s\[\]<>]{1,1000}"
    rf"(?:{IN_BRACKETS}|))"
    rf"|(?P<other>(?<!\w)(?!https?:|ftp:|irc:)[a-z][\w-]{{1,30}}:[^\s\[\]:]{{0,500}}{IN_BRACKETS})"
    r"|(?P<mail>(?<![\w.+/-])[\w.+-]{1,64}@[a-zA-Z\d-]{1,63}(?:\.[a-zA-Z\d-]{1,63}){1,8})"
    rf"|(?P<script>{ROLE}(?:\^[^\s^]{{1,300}}\^|~[^\s~]{{1,300}}~))"
    rf"|(?P<quotes>{ROLE}[\"']`(?=\S))"
    rf"|(?P<sign>{ROLE}(?:\*\*|__|\#\#|``|[*_\#`+](?=\S)))"
)


@dataclass(frozen=True)
class Sign:
    """Signs around text."""

    name: str
    end: re.Pattern[str]
    may_follow: re.Pattern[str] | None = None
    """What may precede constrained signs; unconstrained ones may be inside of words."""
    is_code: bool = False


BEFORE = re.compile(r"[^\w;:}\\]")
BEFORE_MARK = re.compile(r"[^\w&;:}\\]")
BEFORE_CODE = re.compile(r"[^\w;:\"'`}\\]")
SIGNS = {
    "**": Sign("strong", re.compile(r"(?<=[\s\S])\*\*")),
    "*": Sign("strong", re.compile(r"(?<=\S)\*(?!\w)"), BEFORE),
    "__": Sign("emphasis", re.compile(r"__")),
    "_": Sign("emphasis", re.compile(r"(?<=\S)_(?!\w)"), BEFORE),
    "##": Sign("mark", re.compile(r"##")),
    "#": Sign("mark", re.compile(r"(?<=\S)#(?!\w)"), BEFORE_MARK),
    "``": Sign("code", re.compile(r"``"), is_code=True),
    "`": Sign("code", re.compile(r"(?<=\S)`(?![\w\"'`])"), BEFORE_CODE, is_code=True),
    "+": Sign("pass", re.compile(r"(?<=\S)\+(?!\w)"), BEFORE, is_code=True),
    '"`': Sign("quotes", re.compile(r"(?<=\S)`\"(?!\w)"), BEFORE),
    "'`": Sign("single", re.compile(r"(?<=\S)`'(?!\w)"), BEFORE),
}
CONSTRAINED = frozenset("*_#`")
DOUBLE = ("**", "__", "##", "``", '"`', "'`")
OPTIONAL = frozenset(
    [
        "strong",
        "emphasis",
        "mark",
        "quotes",
        "single",
    ]
)
ADDRESS_NAME = re.compile(r"(?i:ur[li]|link|href|site|page)")
"""In the name of an attribute that probably is an address."""
EMPTY = "{empty}"
"""An attribute without text, before a paragraph that would be another block."""
AFTER_ADDRESS = ".,:;!?)'\"*_`"
DEEPEST = 8
WITHOUT_TEXT = frozenset(
    [
        "indexterm",
        "anchor",
        "icon",
        "bibitem",
        "footnote",
        "footnoteref",
    ]
)
OTHER = f"[^{BEGINS}{ENDS}]?"  # two addresses may be beside each other
EDGE = re.compile(f"(?P<before>{OTHER}){BEGINS}|{ENDS}(?P<after>{OTHER})")
BRACKET_OF_INDEX = re.compile(
    r"(?<=\()(?=\(\(\([^()]{1,500}\)\)\)(?!\)))|(?<=[^()]\)\)\))(?=\)(?!\)))"
)
"""Where Asciidoctor would take a bracket beside an index term for a part of it."""
MAY_BE_BLOCK = re.compile(
    r"(?:[*.-]++|\d{1,9}\.|[a-zA-Z]\.|[ivxIVX]{1,9}\)|<[\d.]+>|={1,6}|\#{1,6}|>)(?:\s|$)"
    r"|\.[^\s.]|//|\[[^\n]*\]$|:!?\w[\w-]{0,60}!?:(?:\s|$)|[\w-]{1,40}::\S*\[|'''|<<<|\|===|!==="
    r"|(?:-{2,}|\.{4,}|={4,}|\*{4,}|_{4,}|\+{4,}|`{3,})$"
    r"|(?:NOTE|TIP|IMPORTANT|CAUTION|WARNING):\s|\+$"
)
"""The beginning of a block that is not a paragraph."""
MAY_BEGIN = re.compile(r"[(\"'\u201c\u201e\u00ab]?[^\W\d_]{2}(?!.*(?:::|;;)$)")
TERM = re.compile(r"(?::{2,4}|;;)(?:\s|$)")


class Inline(Syntax):
    """The inline markup of AsciiDoc."""

    def __init__(self, in_cell: bool = False, in_brackets: bool = False) -> None:
        """`in_cell` is for the cells of a table, `in_brackets` for the content of a macro."""
        self.in_cell = in_cell
        self.in_brackets = in_brackets

    def tokens(self, text: str) -> list[MarkupToken]:
        return list(InlineScanner(text).tokens)

    def escape(self, text: str) -> str:
        pieces = list[str]()
        depth = 0
        for token in self.tokens(text):
            # Asciidoctor removes a backslash only before markup.
            is_markup = token.kind in ("open", "point", "copy") and depth == 0
            pieces.append(f"\\{token.raw}" if is_markup else token.raw)
            if token.kind == "open":
                depth += 1
            elif token.kind == "close":
                depth -= 1
        escaped = "".join(pieces)
        if self.in_cell:
            escaped = re.sub(r"(?<!\\)\|", r"\\|", escaped)
        if self.in_brackets:
            escaped = re.sub(r"(?<!\\)\]", r"\\]", escaped)
        return escaped

    def variants(self, nodes: Sequence[MarkupToken]) -> Iterable[Sequence[MarkupToken]]:
        plain = list(without_optional(nodes))
        for variant in (nodes, plain):
            yield list(with_blanks_around(variant))
            yield list(unconstrained(variant))

    def unwrapped(self, text: str) -> str:
        # Hard line breaks remain.
        return re.sub(r"(?<![ \t\r])(?<![ \t]\+)[ \t]*\r?\n[ \t]*", " ", text)

    def finished(self, text: str, before: str, after: str) -> str:
        """A translation with blanks around bare addresses, and index terms in brackets."""
        return BRACKET_OF_INDEX.sub(" ", EDGE.sub(with_blank, text))

    def guarded(self, text: str, begins_line: bool) -> str:
        is_other = begins_line and not self.in_brackets and MAY_BE_BLOCK.match(text)
        return EMPTY + text if is_other else text

    def may_begin(self, word: str) -> bool:
        return MAY_BEGIN.match(word) is not None

    def is_same(self, written: str, raw: str) -> bool:
        return bool(TERM.search(written)) <= bool(TERM.search(raw))


def with_blank(edge: re.Match[str]) -> str:
    """A blank between an address and the letter beside it."""
    letter = edge["before"] or edge["after"] or ""
    if edge["before"] is not None:
        return f"{letter} " if letter.strip() else letter
    return f" {letter}" if letter.isalnum() else letter


def with_blanks_around(nodes: Iterable[MarkupToken]) -> Iterator[MarkupToken]:
    """The nodes with marks at the ends of addresses, which letters beside them would change."""
    for node in nodes:
        raw = node.raw
        if node.name.startswith("address "):
            raw = f"{BEGINS}{raw}{ENDS}"
        elif node.name.startswith("link {"):
            raw = f"{BEGINS}{raw}"
        yield replace(node, raw=raw, children=list(with_blanks_around(node.children)))


def unconstrained(nodes: Iterable[MarkupToken]) -> Iterator[MarkupToken]:
    """The nodes with signs that may be inside of words."""
    for node in with_blanks_around(nodes):
        raw = node.raw
        closing = node.closing
        sign = raw[-1:]
        is_single = (
            sign in CONSTRAINED and raw[-2:-1] not in CONSTRAINED and raw[-2:-1] not in "\"'"
        )
        if node.kind == "open" and is_single:
            raw += sign
            closing += sign
        elif node.name.startswith("code ") and not raw.startswith("``"):
            raw = f"`{raw}`"
        elif re.match(r"(?:https?|ftp|irc)://", raw):
            raw = f"link:{raw}"
        yield replace(node, raw=raw, closing=closing, children=list(unconstrained(node.children)))


class InlineScanner:
    """Splits a block of text into text and markup: `tokens`."""

    def __init__(self, text: str, depth: int = 0) -> None:
        self.text = text
        self.depth = depth
        self.tokens = list[MarkupToken]()
        self.unclosed = set[str]()
        at = 0
        search = 0
        while markup := MARKUP.search(text, search):
            tokens, end = self.read(markup)
            if end:
                self.add_text(at, markup.start())
                self.tokens += tokens
                at = end
                search = end
            else:
                search = markup.start() + 1
        self.add_text(at, len(text))

    def add_text(self, begin: int, end: int) -> None:
        if begin < end:
            raw = self.text[begin:end]
            self.tokens.append(MarkupToken("text", raw, raw))

    def read(self, markup: re.Match[str]) -> tuple[list[MarkupToken], int]:
        """The tokens of possible markup and its end, which is 0 if it is text."""
        kind = str(markup.lastgroup)
        raw = markup[0]
        end = markup.end()
        if kind == "hard":
            return [MarkupToken("point", raw, name="break", breaks=True)], end
        if kind == "soft":
            return [MarkupToken("text", raw, "\n")], end
        if kind == "escape":
            sign = self.text[end]
            return [MarkupToken("text", raw + sign, sign)], end + 1
        if kind == "reference":
            return [MarkupToken("text", raw, unescape(raw))], end
        if kind in ("note", "index", "anchor"):
            return [MarkupToken("point", raw)], end
        if kind == "attribute" and ADDRESS_NAME.search(raw):
            return [MarkupToken("copy", raw, raw, name=f"address {raw}")], end
        if kind in ("pass", "attribute", "script"):
            return [MarkupToken("copy", raw, " ".join(raw.split()))], end
        if kind in ("quotes", "sign"):
            return self.read_sign(markup)
        return self.read_macro(kind, markup)

    def read_macro(self, kind: str, markup: re.Match[str]) -> tuple[list[MarkupToken], int]:
        raw = markup[0]
        end = markup.end()
        if kind == "term":
            closing = self.text.index("))", end)
            return self.element("term", raw, end, closing, "))"), closing + 2
        if kind == "cross":
            if raw.endswith(">>"):
                return [MarkupToken("copy", raw, raw[2:-2])], end
            closing = self.text.index(">>", end)
            return self.element(f"link {raw}", raw, end, closing, ">>"), closing + 2
        if kind == "mail" or (kind == "url" and not raw.endswith("]")):
            raw = raw.rstrip(AFTER_ADDRESS)
            return [MarkupToken("copy", raw, raw, name=f"address {raw}")], markup.start() + len(raw)
        if kind == "other":
            name = raw.partition(":")[0]
            if name in WITHOUT_TEXT:
                return [MarkupToken("point", raw)], end
            return [MarkupToken("copy", raw, " ".join(raw.split()))], end
        return self.read_link(markup)

    def read_link(self, markup: re.Match[str]) -> tuple[list[MarkupToken], int]:
        """Read a link whose text is in brackets."""
        raw = markup[0].partition("[")[0] + "["
        begin = markup.start() + len(raw)
        closing = begin
        while self.text[closing] != "]":
            closing += 2 if self.text[closing] == "\\" else 1
        content = self.text[begin:closing]
        whole = self.text[markup.start() : closing + 1]
        if not any(map(str.isalpha, content)):
            return [MarkupToken("copy", whole, whole)], closing + 1
        # Behind a caret or in attributes, the text is not all.
        has_attributes = "=" in content
        name = f"link {raw.removeprefix('link:')} {has_attributes}"
        last = closing
        text = re.match(r"\"(?:[^\"\\]|\\.)*\"|[^,]*", content) if has_attributes else None
        if text:
            last = begin + text.end()
            if text[0].startswith('"') and len(text[0]) > 2:
                raw += '"'
                begin += 1
                last -= 1
            elif "=" in text[0]:
                return [MarkupToken("copy", whole, whole)], closing + 1
        elif content.endswith("^"):
            last -= 1
        end = self.text[last : closing + 1]
        return self.element(name, raw, begin, last, end), closing + 1

    def read_sign(self, markup: re.Match[str]) -> tuple[list[MarkupToken], int]:
        """Read markup that begins with signs, such as *strong*."""
        raw = markup[0]
        signs = re.sub(r"^\[[^\]]*\]", "", raw)
        tokens, end = self.enclosed(markup.start(), raw, signs)
        # If two signs enclose nothing, a single one may.
        if not end and len(signs) == 2 and signs[0] == signs[1]:
            inside = self.text[markup.end() - 1 : markup.end()]
            if inside.strip():
                return self.enclosed(markup.start(), raw[:-1], signs[0])
        return tokens, end

    def enclosed(self, begin: int, raw: str, signs: str) -> tuple[list[MarkupToken], int]:
        sign = SIGNS[signs]
        if signs in self.unclosed or self.depth > DEEPEST:
            return [], 0
        if sign.may_follow and begin and not sign.may_follow.match(self.text[begin - 1]):
            return [], 0
        inside = begin + len(raw)
        end = sign.end.search(self.text, inside + 1)
        if not end:
            self.unclosed.add(signs)
            return [], 0
        if sign.is_code:
            content = " ".join(self.text[inside : end.start()].split())
            whole = self.text[begin : end.end()]
            name = f"{sign.name} {raw.removesuffix(signs)}{content}"
            return [MarkupToken("copy", whole, content, name=name)], end.end()
        name = sign.name + raw.removesuffix(signs)
        tokens = self.element(name, raw, inside, end.start(), end[0], sign.name in OPTIONAL)
        return tokens, end.end()

    def element(
        self,
        name: str,
        opening: str,
        begin: int,
        end: int,
        closing: str,
        is_optional: bool = False,
    ) -> list[MarkupToken]:
        """An element around the text between two offsets."""
        inside = InlineScanner(self.text[begin:end], self.depth + 1).tokens
        first = MarkupToken("open", opening, name=name, optional=is_optional)
        return [first, *inside, MarkupToken("close", closing, name=name)]
