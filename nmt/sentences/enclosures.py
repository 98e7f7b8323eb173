"""Quotes and brackets in a line, with what they enclose."""

from bisect import bisect_left
from operator import attrgetter
from typing import NamedTuple

BRACKETS = {"(": ")", "[": "]", "\uff08": "\uff09", "\u3010": "\u3011", "\u3014": "\u3015"}
QUOTES = {
    **{"\u300c": "\u300d", "\u300e": "\u300f", "\u300a": "\u300b", "\u3008": "\u3009"},
    **{"\u00ab": "\u00bb", "\u2039": "\u203a", "\u201c": "\u201d", "\u2018": "\u2019"},
    **{"\u201e": "\u201c\u201d", "\u201a": "\u2018\u2019"},
}
"""Maps opening quotation marks to those that may close them."""
CLOSING = frozenset("".join([*BRACKETS.values(), *QUOTES.values()]))
STRAIGHT = '"'
DEEPEST = 20
"""The innermost opening marks that a closing mark may belong to."""
BEGIN = attrgetter("begin")
LONGEST = 400
"""A quote of more characters may have lost its closing mark."""


class Enclosure(NamedTuple):
    """The indices of two marks that belong together."""

    begin: int
    end: int
    is_quote: bool


def closes(sign: str, opening: str) -> bool:
    return sign in BRACKETS.get(opening, "") or sign in QUOTES.get(opening, "")


def is_straight_opening(text: str, at: int) -> bool:
    """Whether a straight quotation mark opens a quote, rather than being an inch mark or part of a
    Hebrew abbreviation."""
    is_after_word = at > 0 and text[at - 1].isalnum()
    return not is_after_word and at + 1 < len(text) and not text[at + 1].isspace()


def is_in_hebrew_word(text: str, at: int) -> bool:
    """Whether a straight quotation mark is inside a word, as in Hebrew abbreviations."""
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    return before.isalnum() and not before.isascii() and after.isalpha()


def enclosures(text: str) -> list[Enclosure]:
    """The quotes and brackets of a text, in their order. Marks without a partner are left out."""
    found = []
    opened: list[int] = []
    for at, sign in enumerate(text):
        if sign in CLOSING or sign == STRAIGHT:
            partner = partner_of(text, at, opened[-DEEPEST:])
            if partner is not None:
                # Marks that were opened inside, but not closed, have no partner.
                del opened[opened.index(partner) :]
                if at - partner <= LONGEST:
                    found.append(Enclosure(partner, at, text[partner] not in BRACKETS))
                continue
        is_opening = sign in BRACKETS or sign in QUOTES
        if is_opening or (sign == STRAIGHT and is_straight_opening(text, at)):
            opened.append(at)
    return sorted(found)


def partner_of(text: str, at: int, opened: list[int]) -> int | None:
    """The index of the innermost opening mark that the mark at an index closes."""
    sign = text[at]
    if sign == STRAIGHT and is_in_hebrew_word(text, at):
        return None
    for begin in reversed(opened):
        if closes(sign, text[begin]) or (sign == STRAIGHT and text[begin] == STRAIGHT):
            return begin
    return None


def enclosures_around(spans: list[Enclosure], at: int) -> list[Enclosure]:
    """Those of sorted enclosures that may include the character before an index."""
    first = bisect_left(spans, at - LONGEST - 1, key=BEGIN)
    last = bisect_left(spans, at, key=BEGIN)
    return [span for span in spans[first:last] if span.end >= at - 1]
