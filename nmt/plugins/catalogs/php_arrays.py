"""PHP files that return an array of strings, as in Laravel (https://laravel.com/docs/localization).

Also files that assign strings one by one: `$string['key'] = 'text';`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from nmt.config import NMTError
from nmt.plugins.catalogs.php_strings import INTERPOLATED, read_string, write_string
from nmt.plugins.catalogs.templates import Template, line_number
from nmt.plugins.catalogs.values import Value, Values
from nmt.plugins.documents import STRING_MARKUP, Kind, is_technical, plural_categories

TOKEN = re.compile(
    r"(?P<space>\s+|//[^\n]*|\#(?!\[)[^\n]*|/\*(?>(?:[^*]|\*(?!/))*)\*/)"
    r"|(?P<string>'(?>(?:[^'\\]|\\.)*)'|\"(?>(?:[^\"\\]|\\.)*)\")"
    r"|(?P<sign>=>|<<<|\?>|[\[\](){},;='\"])"
    r"|(?P<word>[^\s'\"\[\](){},;/#=<?]+|.)",
    re.DOTALL,
)
OPENING_TAG = re.compile(r"\s*<\?(?:php\b)?", re.IGNORECASE)
OPENING = {"[": "]", "(": ")", "{": "}"}
CLOSING = frozenset(OPENING.values())
BEFORE_ARRAY = frozenset(["=>", ",", "[", "(", "=", "return", "?", ":", "??"])
"""What stands before the bracket of an array; after a name, a bracket encloses an index."""
PROGRAM = frozenset(["class", "echo", "fn", "function", "interface", "print", "trait"])
PLACEHOLDER = re.compile(r"(?<![\w:]):[A-Za-z_]\w{0,60}")
RANGE = r"\{\d[\d,*]{0,30}\}|\[[\d*-][\d,*Inf-]{0,30}\]"
"""The numbers for which a plural form is, such as {0} or [2,*]."""
FORM = re.compile(rf"\A(?:{RANGE})\s*|\s*\|\s*(?:{RANGE})?\s*")
LARAVEL = Kind(markup=re.compile(rf"(?P<speaker>{FORM.pattern})|{STRING_MARKUP.pattern}"))
"""Plural forms are sentences of their own; the markup between them stays."""
PLURAL = re.compile(r"[^|\s{\[][^|]*\S\|\S[^|]*")
"""Two plural forms without numbers, as English has them."""
EXPRESSIONS_LEFT = "strings in expressions left untranslated"
INTERPOLATED_LEFT = "strings with variables of PHP left untranslated"


@dataclass
class Token:
    """A token of PHP, which is neither white space nor a comment."""

    text: str
    begin: int
    end: int
    is_string: bool
    is_in_array: bool = False
    """Whether the brackets around it are those of an array."""


@dataclass
class Bracket:
    """An open bracket."""

    closing: str
    is_array: bool


class Arrays(Values):
    """A PHP file with strings; keys and all other code stay unchanged."""

    def read(self) -> None:
        self.values += self.values_in(self.file)

    def values_in(self, text: str) -> Iterator[Value]:
        opening = OPENING_TAG.match(text)
        if not opening:
            raise NMTError("not a PHP file, which begins with <?php")
        tokens = [*tokens_of(text, opening.end())]
        has_strings = False
        for index in strings_of_arrays(text, tokens):
            has_strings = True
            token = tokens[index]
            if is_whole_value(tokens, index):
                yield from self.value_of(token)
            elif not is_key(tokens, index):
                self.left[EXPRESSIONS_LEFT] += 1
        if not has_strings:
            raise NMTError("has no array of strings: nmt translates PHP files such as Laravel's")

    def value_of(self, token: Token) -> Iterator[Value]:
        quote = token.text[0]
        raw = token.text[1:-1]
        if quote == '"' and INTERPOLATED.search(raw):
            self.left[INTERPOLATED_LEFT] += 1
            return
        value = read_string(raw, quote)
        if is_technical(value):
            return
        if PLURAL.fullmatch(value) and len(plural_categories(self.target)) > 2:
            self.left[f"plural messages with fewer forms than {self.target} has"] += 1
        string = Template(value, PLACEHOLDER, LARAVEL)
        yield Value(token.begin, token.end, string, partial(write_string, quote=quote))


def tokens_of(text: str, begin: int) -> Iterator[Token]:
    """The tokens of a file from an offset; NMTError for strings that nmt does not read."""
    for token in TOKEN.finditer(text, begin):
        sign = token["sign"]
        if sign in ("'", '"', "<<<"):
            number = line_number(text, token.start())
            kind = "a heredoc, which nmt does not read" if sign == "<<<" else "an unclosed string"
            raise NMTError(f"line {number}: {kind}")
        if sign == "?>" and text[token.end() :].strip():
            number = line_number(text, token.start())
            raise NMTError(f"line {number}: text follows the code of PHP: not an array of strings")
        if token["space"] is None:
            yield Token(token[0], *token.span(), token["string"] is not None)


def strings_of_arrays(text: str, tokens: Sequence[Token]) -> Iterator[int]:
    """The indices of all strings in arrays, and of those that are assigned to keys."""
    enclosing = list[Bracket]()
    for index, token in enumerate(tokens):
        name = token.text.lower()
        problem = ""
        if token.is_string:
            token.is_in_array = enclosing[-1].is_array if enclosing else False
            if is_data(tokens, index, enclosing):
                yield index
        elif name in PROGRAM and not enclosing:
            problem = "a program, not an array of strings"
        elif name in OPENING:
            enclosing.append(Bracket(OPENING[name], begins_array(tokens, index)))
        elif name in CLOSING and not closes(enclosing, name):
            problem = "this bracket closes nothing"
        if problem:
            raise NMTError(f"line {line_number(text, token.begin)}: {problem}")
    if enclosing:
        raise NMTError("the file is damaged: nothing closes one of its brackets")


def closes(enclosing: list[Bracket], name: str) -> bool:
    """Remove the last open bracket; whether this one closes it."""
    return bool(enclosing) and enclosing.pop().closing == name


def begins_array(tokens: Sequence[Token], index: int) -> bool:
    """Whether a bracket is that of an array, as opposed to an index, a call or a block."""
    before = tokens[index - 1].text.lower() if index else ""
    if tokens[index].text == "[":
        return before in BEFORE_ARRAY
    return before == "array"


def is_data(tokens: Sequence[Token], index: int, enclosing: Sequence[Bracket]) -> bool:
    """Whether a string is in an array or assigned to a key."""
    return enclosing[0].is_array if enclosing else is_assigned(tokens, index)


def is_assigned(tokens: Sequence[Token], index: int) -> bool:
    """Whether a string is assigned to a key: `$string['key'] = 'text';`."""
    before = [token.text for token in tokens[max(index - 2, 0) : index]]
    return before == ["]", "="]


def is_whole_value(tokens: Sequence[Token], index: int) -> bool:
    """Whether a string is a value of an array, as opposed to a key or a part of an expression."""
    before = tokens[index - 1].text
    after = tokens[index + 1].text if index + 1 < len(tokens) else ""
    if before == "=":
        return after == ";"
    is_item = before in ("=>", "[", "(", ",") and after in (",", "]", ")")
    return tokens[index].is_in_array and is_item


def is_key(tokens: Sequence[Token], index: int) -> bool:
    return index + 1 < len(tokens) and tokens[index + 1].text in ("=>", "]")
