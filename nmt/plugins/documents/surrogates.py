"""Characters beyond U+FFFF that a file writes as two escapes, which are a pair in UTF-16."""

import re

SURROGATE = re.compile(r"[\ud800-\udfff]")
PAIR = re.compile(r"[\ud800-\udbff][\udc00-\udfff]")
SURROGATES_LEFT = "strings with half of a surrogate pair left untranslated"
"""No encoding has such a half, so no model can read it."""


def join_surrogates(text: str) -> str:
    """A text in which each pair is the character that it stands for; a half stays."""
    return PAIR.sub(character_of_pair, text)


def character_of_pair(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def escape_surrogates(text: str) -> str:
    """JSON in which halves, which no encoding has, are escapes."""
    return SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", text)
