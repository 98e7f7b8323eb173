"""Tables of strings of Apple (`.strings`), which are property lists in the old notation.

https://developer.apple.com/library/archive/documentation/Cocoa/Conceptual/LoadingResources/Strings
"""

import re
from functools import partial

from nmt.config import NMTError
from nmt.plugins.catalogs.plists import check_text, read_plist
from nmt.plugins.catalogs.values import Value, Values
from nmt.plugins.documents import StringOfProgram, join_surrogates

IGNORED = r"(?:[\s\ufeff]++|/\*(?:[^*]|\*(?!/))*+\*/|//[^\n\r]*+)*+"
STRING = r'"(?>(?:[^"\\]|\\.)*)"' + r"|'(?>(?:[^'\\]|\\.)*)'" + r"|(?:[\w.$:+-]|/(?![/*]))++"
TOKEN = re.compile(rf"{IGNORED}(?:(?P<string>{STRING})|(?P<sign>[=;{{}}])|(?P<end>\Z))", re.DOTALL)
ESCAPE = re.compile(r"\\(?:[uU]([\da-fA-F]{1,4})|([0-7]{1,3})|(.))", re.DOTALL)
MEANINGS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
ESCAPES = {character: f"\\{letter}" for letter, character in MEANINGS.items()}
SPECIAL = re.compile(r'["\\\a\b\f\n\r\t\v]')
PLIST = re.compile(r"\s*<(?:\?xml|!DOCTYPE plist|plist)\b")


class AppleStrings(Values):
    """A table of strings, such as `"key" = "value";`, whose values are translated."""

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        check_text(content)
        super().__init__(content, source, target)

    def read(self) -> None:
        if PLIST.match(self.file):
            read_plist(self)
            return
        tokens = self.tokens()
        at = 0
        # The table may be in braces, as in other property lists.
        end = len(tokens)
        if tokens and tokens[0][0] == "{":
            at = 1
            end -= 1
            if len(tokens) < 2 or tokens[-1][0] != "}":
                raise NMTError("its brace is not closed at the end")
        while at < end:
            at = self.read_entry(tokens, at, end)

    def tokens(self) -> list[tuple[str, int, int]]:
        """The strings and signs of the file, with their spans."""
        tokens = list[tuple[str, int, int]]()
        at = 0
        while at < len(self.file):
            token = TOKEN.match(self.file, at)
            if not token:
                raise self.error(at)
            at = token.end()
            group = token.lastgroup or ""
            if group != "end":
                tokens.append((token[group], *token.span(group)))
        return tokens

    def read_entry(self, tokens: list[tuple[str, int, int]], at: int, end: int) -> int:
        """Read `key = value;` or `key;`; returns the index of the token after it."""
        signs = [token[0] for token in tokens[at : min(at + 4, end)]]
        if is_string(signs[0]) and signs[1:2] == [";"]:
            return at + 2
        has_value = len(signs) > 2 and is_string(signs[2])
        if not is_string(signs[0]) or signs[1:2] != ["="] or not has_value:
            raise self.error(tokens[at][1])
        # The last entry of a table in braces needs no semicolon.
        if signs[3:] not in ([";"], []):
            raise self.error(tokens[at][1])
        self.add(*tokens[at + 2])
        return at + len(signs)

    def add(self, raw: str, begin: int, end: int) -> None:
        # A value without quotes is a word.
        if raw[0] in "\"'":
            string = StringOfProgram(read_escapes(raw[1:-1]))
            write = partial(write_escapes, before=raw[1:-1], quote=raw[0])
            self.values.append(Value(begin + 1, end - 1, string, write))
        elif any(map(str.isalpha, raw)):
            self.values.append(Value(begin, end, StringOfProgram(raw), quoted))

    def error(self, at: int) -> NMTError:
        line = self.file.count("\n", 0, at) + 1
        return NMTError(f'line {line}: expected an entry such as "key" = "value";')


def is_string(token: str) -> bool:
    return token not in ("=", ";", "{", "}")


def read_escapes(raw: str) -> str:
    """The text of a string between its quotes."""

    def meaning(escape: re.Match[str]) -> str:
        if escape[1]:
            return chr(int(escape[1], 16))
        if escape[2]:
            return chr(int(escape[2], 8) % 256)
        return MEANINGS.get(escape[3], escape[3])

    return join_surrogates(ESCAPE.sub(meaning, raw)) if "\\" in raw else raw


def write_escapes(text: str, before: str, quote: str) -> str:
    """A string between its quotes, in the style of another, which it replaces."""
    keeps_lines = "\n" in before
    keeps_quotes = quote == "'"

    def escape(character: re.Match[str]) -> str:
        sign = character[0]
        if (sign in "\r\n" and keeps_lines) or (sign == '"' and keeps_quotes):
            return sign
        return ESCAPES.get(sign, f"\\{sign}")

    text = SPECIAL.sub(escape, text)
    if keeps_quotes:
        text = text.replace("'", "\\'")
    # Some programs still read such files as ASCII.
    return as_ascii(text) if "\\U" in before and before.isascii() else text


def as_ascii(text: str) -> str:
    written = ""
    for character in text:
        if character.isascii():
            written += character
        else:
            units = character.encode("utf-16-be").hex()
            written += "".join(f"\\U{units[at : at + 4]}" for at in range(0, len(units), 4))
    return written


def quoted(text: str) -> str:
    return f'"{write_escapes(text, "", chr(34))}"'
