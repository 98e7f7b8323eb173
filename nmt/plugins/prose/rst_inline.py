"""Inline markup of reStructuredText.

Source: https://docutils.sourceforge.io/docs/ref/rst/restructuredtext.html#inline-markup
"""

import re
from collections.abc import Collection, Iterable, Sequence

import regex

from nmt.plugins.documents import MarkupToken, without_optional
from nmt.plugins.prose.rst_lines import MUST_ESCAPE
from nmt.plugins.prose.rst_roles import CODE_ROLES, TEXT_ROLES
from nmt.plugins.prose.sentences import BEGINS, ENDS, Syntax, with_edges

NAME = r"[^\W_]+(?:[-._+:][^\W_]+){0,40}"
PUNCTUATION = r"[\p{Ps}\p{Pi}\p{Pf}\p{Pd}\p{Po}--\p{ASCII}]"
CLOSING_PUNCTUATION = r"[\p{Pe}\p{Pi}\p{Pf}\p{Pd}\p{Po}--\p{ASCII}]"
MAY_PRECEDE = regex.compile(rf"(?V1)[\s'\"(\[{{<\-/:\0]|{PUNCTUATION}")
"""A character that may precede markup."""
MAY_FOLLOW = regex.compile(rf"(?V1)[\s'\")\]}}>\-/\\:.,;!?\0]|{CLOSING_PUNCTUATION}")
"""A character that may follow markup."""
QUOTES = {"'": "'", '"': '"', "(": ")", "[": "]", "{": "}", "<": ">", "\u201c": "\u201d"}
"""Markup in quotes is text if it would have to begin with the closing quote."""
ADDRESS = r"(?i:https?|ftp|mailto|news|git|irc|file)://?[^\s<>`|\\]{1,2000}"
MAIL = r"[\w.+-]{1,64}@[a-zA-Z\d-]{1,63}(?:\.[a-zA-Z\d-]{1,63}){1,8}"
MARKUP = re.compile(
    r"(?P<escape>\\(?:\r?\n[ \t]*|\s|\S)?)"
    r"|(?P<soft>(?<![ \t])[ \t]*\r?\n[ \t]*)"
    r"|(?P<literal>``)(?=\S)"
    r"|(?P<target>_`)(?=\S)"
    rf"|(?P<role>(?::{NAME}:)?`)(?=[^\s`])"
    r"|(?P<strong>\*\*)(?=\S)"
    r"|(?P<emphasis>\*)(?=[^\s*])"
    r"|(?P<substitution>\|)(?=[^\s|])"
    rf"|(?P<note>\[(?:\d+|\#(?:{NAME})?|\*|{NAME})\]_)"
    rf"|(?P<address>(?<![\w.+-])(?:{ADDRESS}|{MAIL}))"
    rf"|(?P<reference>(?<![^\W_]){NAME}__?)(?![\w])"
)
ENDS_OF = {
    "literal": re.compile(r"(?<=\S)``"),
    "target": re.compile(r"(?<!(?<!\\)[\s\\])`"),
    "role": re.compile(rf"(?<!(?<!\\)[\s\\])`(?P<suffix>:{NAME}:|__?)?"),
    "strong": re.compile(r"(?<!(?<!\\)[\s\\])\*\*"),
    "emphasis": re.compile(r"(?<!(?<!\\)[\s\\])\*"),
    "substitution": re.compile(r"(?<!(?<!\\)[\s\\])\|_{0,2}"),
}
END = re.compile(f"{ENDS}+(?=([^{BEGINS}{ENDS}]))")
AFTER_ADDRESS = ".,:;!?'\")]}>*"
ESCAPED = re.compile(r"\\(?:\s|(\S))")
TO_ESCAPE = re.compile(r"\\|\*(?!\s)|`|\|(?!\s)|_(?![^\W_])|(?<![^\W_])_(?=`)")


def unescaped(text: str) -> str:
    return ESCAPED.sub(r"\1", text)


def normalized(name: str) -> str:
    """The name of a target, which is the same in any case and with any white space."""
    return " ".join(unescaped(name).split()).lower()


class Inline(Syntax):
    """The inline markup of a document in which these names are used by references."""

    def __init__(self, referenced: Collection[str]) -> None:
        self.referenced = referenced

    def tokens(self, text: str) -> list[MarkupToken]:
        return InlineScanner(text, self.referenced).tokens

    def escape(self, text: str) -> str:
        return TO_ESCAPE.sub(r"\\\g<0>", text)

    def variants(self, nodes: Sequence[MarkupToken]) -> Iterable[Sequence[MarkupToken]]:
        yield with_edges(nodes)
        yield with_edges(without_optional(nodes))

    def finished(self, text: str, before: str, after: str) -> str:
        """A translation in which an escaped blank separates markup from the words beside it."""
        pieces = list[str]()
        last = before[-1:]
        for piece in re.split(f"([{BEGINS}{ENDS}])", text):
            pieces.append(piece)
            if piece not in ("", BEGINS, ENDS):
                last = piece[-1]
            elif piece == BEGINS and last and not MAY_PRECEDE.match(last):
                pieces.append("\\ ")
        written = "".join(pieces)
        # Several ends may follow one another, and a blank may already be behind them.
        written = END.sub(separator, written + after[:1]).removesuffix(after[:1])
        written = super().finished(written, before, after)
        begins_block = not before and MUST_ESCAPE.match(written)
        return f"\\{written}" if begins_block else written

    def is_same(self, written: str, raw: str) -> bool:
        # A colon more would announce a literal block.
        return not written.rstrip().endswith("::")


def separator(end: re.Match[str]) -> str:
    """An escaped blank between markup and a letter behind it."""
    is_apart = end.string[end.start() - 1].isspace() or MAY_FOLLOW.match(end[1])
    return "" if is_apart else "\\ "


class InlineScanner:
    """Splits a block of text into text and markup: `tokens`."""

    def __init__(self, text: str, referenced: Collection[str]) -> None:
        self.text = text
        self.referenced = referenced
        self.tokens = list[MarkupToken]()
        self.unclosed = set[str]()
        """Kinds of markup that nothing closes in the rest of the block."""
        at = 0
        search = 0
        while markup := MARKUP.search(text, search):
            end = self.add(markup, at)
            if end:
                at = end
                search = end
            else:
                # A sign that is text; what follows may be markup.
                search = markup.end() if markup["reference"] else markup.start() + 1
        self.add_text(at, len(text))

    def add_text(self, begin: int, end: int) -> None:
        if begin < end:
            raw = self.text[begin:end]
            self.tokens.append(MarkupToken("text", raw, raw))

    def add(self, markup: re.Match[str], at: int) -> int:
        """Add possible markup behind the text from `at`; return its end, or 0 if it is text."""
        kind = str(markup.lastgroup)
        begin = markup.start()
        raw = markup[0]
        if kind == "escape":
            self.add_text(at, begin)
            self.tokens.append(MarkupToken("text", raw, raw[1:].strip()))
            return markup.end()
        if kind == "soft":
            self.add_text(at, begin)
            self.tokens.append(MarkupToken("text", raw, "\n"))
            return markup.end()
        inside = self.text[markup.end() : markup.end() + 1] if kind in ENDS_OF else ""
        if not self.may_begin(begin, inside):
            return 0
        if kind in ENDS_OF:
            return self.add_enclosed(kind, markup, at)
        if kind == "address":
            raw = raw.rstrip(AFTER_ADDRESS)
            return self.add_tokens(at, begin, begin + len(raw), [MarkupToken("copy", raw, raw)])
        if not self.may_end(markup.end()):
            return 0
        if kind == "note":
            return self.add_tokens(at, begin, markup.end(), [MarkupToken("point", raw)])
        return self.add_tokens(at, begin, markup.end(), reference_tokens(raw))

    def add_tokens(self, at: int, begin: int, end: int, tokens: Iterable[MarkupToken]) -> int:
        self.add_text(at, begin)
        self.tokens += tokens
        return end

    def may_begin(self, begin: int, inside: str) -> bool:
        """Whether markup may begin here; `inside` is the first character of its content."""
        if begin == 0:
            return True
        before = self.text[begin - 1]
        if not MAY_PRECEDE.match(before):
            return False
        return before not in QUOTES or QUOTES[before] != inside

    def may_end(self, end: int) -> bool:
        return end == len(self.text) or MAY_FOLLOW.match(self.text[end]) is not None

    def add_enclosed(self, kind: str, markup: re.Match[str], at: int) -> int:
        if kind in self.unclosed:
            return 0
        # At least one character is between the signs.
        first = markup.end() + 1
        while end := ENDS_OF[kind].search(self.text, first):
            # Ends may overlap: ``:role:`x``` ends with three signs.
            first = end.start() + 1
            if self.may_end(end.end()):
                content = self.text[markup.end() : end.start()]
                tokens = self.enclosed(kind, markup[0], content, end)
                return self.add_tokens(at, markup.start(), end.end(), tokens)
        self.unclosed.add(kind)
        return 0

    def enclosed(
        self, kind: str, opening: str, content: str, end: re.Match[str]
    ) -> list[MarkupToken]:
        """The tokens of markup with this content."""
        raw = opening + content + end[0]
        if kind in ("strong", "emphasis"):
            return element(kind, opening, content, end[0], is_optional=True)
        if kind != "role":
            return [MarkupToken("copy", raw, " ".join(content.split()))]
        suffix = end["suffix"] or ""
        if suffix.startswith("_"):
            return self.link(content, suffix)
        role = (opening + suffix).strip("`:").rpartition(":")[2]
        return role_tokens(role, opening, content, end[0])

    def link(self, content: str, suffix: str) -> list[MarkupToken]:
        """The tokens of a phrase that is a link."""
        text, embedded = split_target(content)
        if embedded:
            target = " ".join(embedded.split())
            # A link with one underscore is also a target with its text as the name.
            is_target = suffix == "_" and normalized(text) in self.referenced
            if is_target or not has_letters(text):
                return [MarkupToken("copy", f"`{content}`{suffix}", unescaped(text))]
            closing = f"{embedded}`{suffix}"
            return element(f"link {target}", "`", text, closing, f" {target}`__")
        if suffix == "__":
            return element("anonymous", "`", content, "`__")
        # The name of the target remains, with a text of its own.
        name = " ".join(content.split())
        # With a colon, the name would be an address.
        if re.search(r"[<>\\]|^[\w.+-]+:\S", name):
            return [MarkupToken("copy", f"`{content}`_", unescaped(name))]
        return element(f"link <{name}_>", "`", content, "`_", f" <{name}_>`__")


def reference_tokens(raw: str) -> list[MarkupToken]:
    """The tokens of a reference that is one word, such as Python_."""
    name = raw.rstrip("_")
    return [MarkupToken("copy", raw, name)]


def role_tokens(role: str, opening: str, content: str, closing: str) -> list[MarkupToken]:
    """The tokens of interpreted text."""
    text, target = split_target(content)
    if not target or role in TEXT_ROLES:
        is_text = role in TEXT_ROLES or (not role and is_phrase(content))
        name = f"role {opening}{closing}"
        text = content
    else:
        is_text = role not in CODE_ROLES or is_phrase(text)
        name = f"role {opening} {' '.join(target.split())}{closing}"
        closing = target + closing
    if is_text and has_letters(text):
        return element(name, opening, text, closing)
    raw = opening + text + closing
    return [MarkupToken("copy", raw, " ".join(unescaped(text).split()))]


def split_target(content: str) -> tuple[str, str]:
    """The text of a link and the rest, which is its target: "text" and " <target>"."""
    at = content.rfind("<")
    if at < 1 or not content.endswith(">") or not content[at - 1].isspace():
        return content, ""
    text = content[:at].rstrip()
    return text, content[len(text) :]


def element(
    name: str,
    opening: str,
    content: str,
    closing: str,
    new_closing: str = "",
    is_optional: bool = False,
) -> list[MarkupToken]:
    """An element around text, whose closing may be another one in a translation."""
    first = MarkupToken("open", opening, name=name, optional=is_optional)
    last = MarkupToken("close", closing, name=name, closing=new_closing)
    return [first, *text_tokens(content), last]


def text_tokens(content: str) -> list[MarkupToken]:
    """The tokens of text without markup, apart from escapes."""
    tokens = list[MarkupToken]()
    at = 0
    for mark in re.finditer(r"\\(?:\r?\n[ \t]*|\s|\S)?|(?<![ \t])[ \t]*\r?\n[ \t]*", content):
        if at < mark.start():
            raw = content[at : mark.start()]
            tokens.append(MarkupToken("text", raw, raw))
        shown = mark[0][1:].strip() if mark[0].startswith("\\") else "\n"
        tokens.append(MarkupToken("text", mark[0], shown))
        at = mark.end()
    if at < len(content):
        tokens.append(MarkupToken("text", content[at:], content[at:]))
    return tokens


def is_phrase(text: str) -> bool:
    """Whether a text consists of words, and not of code."""
    words = text.split()
    return len(words) > 1 and all(re.fullmatch(r"[\w'\u2019-]+[.,:;?!]?", word) for word in words)


def has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))
