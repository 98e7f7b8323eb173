"""Pairs of brackets and of quotation marks in a text, in the styles of all languages."""

import unicodedata
from collections import defaultdict, deque
from dataclasses import dataclass

import regex

from nmt.text import WITHOUT_BLANKS, WORD_CHARACTER

# Languages differ: English has “ ”, German „ “, Polish „ ”, Swedish ” ”, French « », Danish » «.
SINGLE = ("\u2018\u2019", "\u201a\u2018", "\u201a\u2019", "\u201b\u2019", "''")
DOUBLE = ("“”", "„“", "„”", "””", "‟”", '""', "\uff02\uff02")
GUILLEMETS = ("«»", "»«", "»»", "\u2039\u203a", "\u203a\u2039", "\u203a\u203a")
EAST_ASIAN = ("「」", "『』", "《》", "〈〉", "｢｣", "〝〞", "〝〟")
ORNATE = "\ufd3f\ufd3e"
SONGS = ("♪♪", "♫♫", "♬♬")
QUOTATIONS = (*SINGLE, *DOUBLE, *GUILLEMETS, *EAST_ASIAN, ORNATE, *SONGS)
"""The first and the last mark of a quotation or a song.

Typographic apostrophes would be too frequent as an opening mark, which they are only in Swedish.
"""
SIGN = regex.compile(r"[\p{Ps}\p{Pe}\p{Pi}\p{Pf}\"'\uff02♪♫♬]")
"""A bracket, a quotation mark, or a note that begins or ends the words of a song."""
STRAIGHT_OR_LAST = "\"'”»\u203a"
"""Marks that begin a quotation in some languages and end it in others."""
DEEPEST = 50
"""The maximum depth of nested open signs; beyond it, the outermost signs are forgotten."""
IN_WORDS = "\"'\u2019"
"""Apostrophes, and the marks of Hebrew abbreviations."""
BASIC_PLANE = range(0x10000)
"""The code points of Unicode that have brackets."""


def closing_signs() -> dict[str, frozenset[str]]:
    """For each opening sign, the signs that may close it."""
    closing = defaultdict[str, set[str]](set)
    for marks in QUOTATIONS:
        closing[marks[0]].add(marks[1])
    # Python's `unicodedata` does not know the partner of a bracket, which is a close neighbor.
    for code in BASIC_PLANE:
        opening = chr(code)
        if unicodedata.category(opening) != "Ps" or opening in closing:
            continue
        # A bracket's partner follows at once or, as of [ and {, after one other character.
        for partner in (chr(code + 1), chr(code + 2)):
            if unicodedata.category(partner) == "Pe":
                closing[opening].add(partner)
    return {opening: frozenset(signs) for opening, signs in closing.items()}


CLOSING = closing_signs()
QUOTES = frozenset("".join(QUOTATIONS))


@dataclass(frozen=True)
class Pair:
    """The indices of two signs that belong together."""

    opening: int
    closing: int
    is_quotation: bool


def find_brackets(text: str) -> list[Pair]:
    """The pairs of brackets and quotation marks of a text, which are properly nested.

    For example, (a "b") has the pairs of offsets 0 and 6, and 3 and 5. Signs without a partner,
    such as apostrophes, are in no pair.
    """
    pairs = list[Pair]()
    # The limit keeps the search for a partner short in a text with thousands of open signs.
    opened = deque[int](maxlen=DEEPEST)
    for match in SIGN.finditer(text):
        at = match.start()
        sign = text[at]
        if is_in_word(text, at):
            continue
        partner = opening_of(sign, text, opened)
        is_after_opening = bool(opened) and opened[-1] == at - 1
        may_open = sign in CLOSING
        only_opens = may_open and begins_only(text, at, is_after_opening)
        # A straight mark could close a quotation, but before a word, it begins a new one.
        if partner is not None and not only_opens:
            # Signs that were opened since have no partner.
            while opened.pop() != partner:
                pass
            pairs.append(Pair(partner, at, sign in QUOTES))
        elif may_open and not ends_only(text, at):
            opened.append(at)
    # A pair is found at its closing sign, so inner pairs come first here.
    return sorted(pairs, key=lambda pair: pair.opening)


def opening_of(sign: str, text: str, opened: deque[int]) -> int | None:
    """The index of the last open sign that a sign may close."""
    for begin in reversed(opened):
        if sign in CLOSING[text[begin]]:
            return begin
    return None


def is_in_word(text: str, at: int) -> bool:
    """Whether a sign is an apostrophe or a similar mark inside a word."""
    if text[at] not in IN_WORDS:
        return False
    before = text[at - 1 : at]
    after = text[at + 1 : at + 2]
    return is_letter_in_word(before) and is_letter_in_word(after)


def is_letter_in_word(character: str) -> bool:
    """Whether a character is part of a word in a script with blanks."""
    is_part = WORD_CHARACTER.match(character) is not None
    return is_part and not WITHOUT_BLANKS.match(character)


def begins_only(text: str, at: int, is_after_opening: bool) -> bool:
    """Whether a sign stands where a quotation can begin but not end.

    That is before a word, and after a blank or another opening sign.
    """
    is_after_blank = at == 0 or text[at - 1].isspace()
    is_before_word = WORD_CHARACTER.match(text, at + 1) is not None
    return is_before_word and (is_after_blank or is_after_opening)


def ends_only(text: str, at: int) -> bool:
    """Whether a sign that can begin or end a quotation stands where it can only end one."""
    if text[at] not in STRAIGHT_OR_LAST or at == 0 or text[at - 1].isspace():
        return False
    after = text[at + 1 : at + 2]
    return not after or after.isspace()
