"""Quotes and brackets in a line, with what they enclose."""

from bisect import bisect_left
from operator import attrgetter
from typing import NamedTuple

BRACKETS = {
    "(": ")",
    "[": "]",
    "\uff08": "\uff09",
    "\u3010": "\u3011",
    "\u3014": "\u3015",
}
QUOTES = {
    "\u300c": "\u300d",
    "\u300e": "\u300f",
    "\u300a": "\u300b",
    "\u3008": "\u3009",
    "\u00ab": "\u00bb",
    "\u2039": "\u203a",
    "\u201c": "\u201d",
    "\u2018": "\u2019",
    "\u201e": "\u201c\u201d",
    "\u201a": "\u2018\u2019",
}
"""Maps opening quotation marks to those that may close them."""
CLOSING = frozenset("".join(BRACKETS.values()) + "".join(QUOTES.values()))
STRAIGHT = '"'
DEEPEST = 20
"""The innermost opening marks that a closing mark may belong to."""
LONGEST = 400
"""A quote of more characters may have lost its closing mark."""
BEGIN = attrgetter("begin")


class Enclosure(NamedTuple):
    """The indices of two marks that belong together."""

    begin: int
    end: int
    is_quote: bool


def closes(sign: str, opening: str) -> bool:
    return sign in BRACKETS.get(opening, "") or sign in QUOTES.get(opening, "")


def is_straight_opening(text: str, at: int) -> bool:
    """Whether a straight quotation mark opens a quote.

    Otherwise, it is an inch mark or part of a Hebrew abbreviation.
    """
    is_after_word = at > 0 and text[at - 1].isalnum()
    is_before_word = at + 1 < len(text) and not text[at + 1].isspace()
    return is_before_word and not is_after_word


def is_in_hebrew_word(text: str, at: int) -> bool:
    """Whether a straight quotation mark is inside a word, as in Hebrew abbreviations."""
    before = text[at - 1 : at]
    after = text[at + 1 : at + 2]
    is_after_letter = before.isalnum() and not before.isascii()
    return is_after_letter and after.isalpha()


def enclosures(text: str) -> list[Enclosure]:
    """The quotes and brackets of a text, in their order. Marks without a partner are left out."""
    pairs = []
    opened: list[int] = []
    for at, sign in enumerate(text):
        if sign in CLOSING or sign == STRAIGHT:
            # Bounded: a line of thousands of opening marks would otherwise take quadratic time.
            partner = partner_of(text, at, opened[-DEEPEST:])
            if partner is not None:
                # Marks that were opened inside, but not closed, have no partner.
                del opened[opened.index(partner) :]
                # Marks that are too far apart are used up all the
                # same, so that later ones find their partners.
                if at - partner <= LONGEST:
                    is_quote = text[partner] not in BRACKETS
                    pairs.append(Enclosure(partner, at, is_quote))
                continue
        is_opening = sign in BRACKETS or sign in QUOTES
        if is_opening or (sign == STRAIGHT and is_straight_opening(text, at)):
            opened.append(at)
    return sorted(pairs)


def partner_of(text: str, at: int, opened: list[int]) -> int | None:
    """The index of the innermost opening mark that the mark at an index closes."""
    sign = text[at]
    # Hebrew abbreviations, such as the title ד"ר, have a straight mark before their last letter.
    if sign == STRAIGHT and is_in_hebrew_word(text, at):
        return None
    for begin in reversed(opened):
        opening = text[begin]
        if closes(sign, opening) or sign == opening == STRAIGHT:
            return begin
    return None


def enclosures_around(spans: list[Enclosure], at: int) -> list[Enclosure]:
    """The enclosures in a sorted list that may include the character before index `at`."""
    # No enclosure is longer than LONGEST, so one that begins earlier cannot reach the index.
    first = bisect_left(spans, at - LONGEST - 1, key=BEGIN)
    last = bisect_left(spans, at, key=BEGIN)
    return [span for span in spans[first:last] if span.end >= at - 1]
