"""Blanks between sentences, and between the lines of a paragraph."""

import re
from collections.abc import Iterable

import regex

from nmt.text.characters import NO_BLANK_BESIDE

WITH_WHITE_SPACE = re.compile("[\u3001\u3002\uff01\uff0c\uff0e\uff1a\uff1b\uff1f]")
"""Full-width commas, full stops and the like."""
SHARED = r"[\p{Ps}\p{Pe}\p{Pi}\p{Pf}\u2014\u2026\u00b7]"
"""Brackets, quotation marks, dashes and dots.

ASCII marks at the end of a sentence need a blank.
"""
SHARED_AFTER = regex.compile(rf"{SHARED}+$")
SHARED_BEFORE = regex.compile(rf"^{SHARED}+")
LONGEST_SHARED = 9
"""The number of characters beside a blank in which such signs are ignored."""


def blank_between(before: str, after: str) -> str:
    """The separator of two sentences, or lines of a paragraph: empty in Chinese and Japanese.

    Signs that these share with other scripts, such as quotation marks, are ignored. Full-width
    marks contain their own white space, so no separator follows them in any script.
    """
    # Quotation marks and brackets do not show the script; the letters behind them do. Only a few
    # characters are copied, because `joined` calls this for a text that grows.
    before = SHARED_AFTER.sub("", before[-LONGEST_SHARED:])
    after = SHARED_BEFORE.sub("", after[:LONGEST_SHARED])
    if WITH_WHITE_SPACE.match(before[-1:]):
        return ""
    has_no_blanks = NO_BLANK_BESIDE.match(before[-1:]) and NO_BLANK_BESIDE.match(after[:1])
    return "" if has_no_blanks else " "


def joined(texts: Iterable[str]) -> str:
    """Join sentences, or the lines of a paragraph, with blanks where their script has them."""
    result = ""
    for text in texts:
        if result and text:
            result += blank_between(result, text)
        result += text
    return result
