"""Patterns for abbreviations and initials at the end of a text, with their period."""

from functools import cache

import regex

from nmt.sentences.marks import PERIOD
from nmt.sentences.rules import THOUSANDS


@cache
def abbreviation(words: str) -> "regex.Pattern[str]":
    """A pattern for one of several abbreviations."""
    # Only the first letter may be a capital: in Greek, the case of the second letter distinguishes
    # "for example" from "B.C.".
    forms = []
    for word in words.split():
        rest = regex.escape(word[1:]).replace("_", r"\.?\s?")
        forms.append(f"(?i:{regex.escape(word[0])}){rest}")
    return regex.compile(rf"(?<![\p{{L}}\p{{M}}\p{{N}}])(?:{'|'.join(forms)}){PERIOD}$")


@cache
def abbreviation_after_number(words: str) -> "regex.Pattern[str]":
    """A pattern for one of several abbreviations after a number."""
    forms = "|".join(map(regex.escape, words.split()))
    return regex.compile(rf"[\dIVXLC]\s?(?:{THOUSANDS}\s)?(?:{forms})\.$")


@cache
def initial(letter: str) -> "regex.Pattern[str]":
    """A pattern for a letter that is the last word."""
    return regex.compile(rf"(?<![^\s.(\[\p{{Pi}}\u201e]){letter}{PERIOD}$")
