"""Pairs of brackets and of quotation marks in a text, in the styles of all languages."""

import unicodedata
from collections import defaultdict, deque
from dataclasses import dataclass

import regex

from nmt.text import WITHOUT_BLANKS, WORD_CHARACTER

SINGLE = "\u2018\u2019", "\u201a\u2018", "\u201a\u2019", "\u201b\u2019", "''"
DOUBLE = "“”", "„“", "„”", "””", "‟”", '""', "\uff02\uff02"
GUILLEMETS = "«»", "»«", "»»", "\u2039\u203a", "\u203a\u2039", "\u203a\u203a"
EAST_ASIAN = "「」", "『』", "《》", "〈〉", "｢｣", "〝〞", "〝〟"
ORNATE = "\ufd3f\ufd3e"
SONGS = "♪♪", "♫♫", "♬♬"
QUOTATIONS = (*SINGLE, *DOUBLE, *GUILLEMETS, *EAST_ASIAN, ORNATE, *SONGS)
"""The first and the last mark of a quotation or a song.

Typographic apostrophes would be too frequent as an opening mark, which they are only in Swedish.
"""
SIGN = regex.compile(r"[\p{Ps}\p{Pe}\p{Pi}\p{Pf}\"'\uff02♪♫♬]")
"""A bracket, a quotation mark, or a note that begins or ends the words of a song."""
STRAIGHT_OR_LAST = "\"'”»\u203a"
"""Marks that begin a quotation in some languages and end it in others."""
DEEPEST = 50  # pairs around a sign
IN_WORDS = "\"'\u2019"
"""Apostrophes, and what Hebrew writes in abbreviations."""


def closing_signs() -> dict[str, frozenset[str]]:
    """For each opening sign, the signs that may close it."""
    closing = defaultdict[str, set[str]](set)
    for marks in QUOTATIONS:
        closing[marks[0]].add(marks[1])
    # In Unicode, a bracket's partner follows at once or, as of [ and {, after one other character.
    for code in range(0x10000):
        if unicodedata.category(chr(code)) != "Ps" or chr(code) in closing:
            continue
        partners = [chr(other) for other in (code + 1, code + 2)]
        closing[chr(code)].update(sign for sign in partners if unicodedata.category(sign) == "Pe")
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

    Signs without a partner, such as apostrophes, are in no pair.
    """
    pairs = list[Pair]()
    opened = deque[int](maxlen=DEEPEST)
    for match in SIGN.finditer(text):
        at = match.start()
        sign = text[at]
        if is_in_word(text, at):
            continue
        partner = next((begin for begin in reversed(opened) if sign in CLOSING[text[begin]]), -1)
        is_after_opening = bool(opened) and opened[-1] == at - 1
        if partner >= 0 and not (sign in CLOSING and begins_only(text, at, is_after_opening)):
            while opened.pop() != partner:
                pass
            pairs.append(Pair(partner, at, sign in QUOTES))
        elif sign in CLOSING and not ends_only(text, at):
            opened.append(at)
    return sorted(pairs, key=lambda pair: pair.opening)


def is_in_word(text: str, at: int) -> bool:
    """Whether a sign is an apostrophe or a similar mark inside a word."""
    if text[at] not in IN_WORDS:
        return False
    neighbors = (text[at - 1 : at], text[at + 1 : at + 2])
    return all(WORD_CHARACTER.match(sign) and not WITHOUT_BLANKS.match(sign) for sign in neighbors)


def begins_only(text: str, at: int, is_after_opening: bool) -> bool:
    """Whether a sign stands where one can begin but not end.

    That is before a word, and after a blank or after a sign that begins something.
    """
    is_after_blank = at == 0 or text[at - 1].isspace()
    is_before_word = WORD_CHARACTER.match(text, at + 1) is not None
    return is_before_word and (is_after_blank or is_after_opening)


def ends_only(text: str, at: int) -> bool:
    """Whether a sign that begins or ends quotations stands where it can only end one."""
    if text[at] not in STRAIGHT_OR_LAST or at == 0 or text[at - 1].isspace():
        return False
    after = text[at + 1 : at + 2]
    return not after or after.isspace()
