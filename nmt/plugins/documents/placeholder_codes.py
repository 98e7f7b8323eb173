"""Codes of translation files that stand for a value, such as {{name}} or %s."""

import re

from nmt.items import USUAL, Finder

FIRST = re.compile(r"[%{$#@]|<[%?]|\\\(")
"""How placeholders begin, as opposed to tags, escapes and entities."""
NAME = re.compile(r"(?:INTERPOLATION|ICU)(?:_\d+)?")
"""What Angular calls its placeholders."""
LONGEST = 2000
"""Characters of a code that is searched."""


def is_placeholder(code: str) -> bool:
    """Whether a code is a placeholder, which belongs to its sentence like a word."""
    code = code.strip()
    if NAME.fullmatch(code):
        return True
    if len(code) > LONGEST or not FIRST.match(code):
        return False
    return Finder([USUAL]).stretches(code) == [(0, len(code))]
