"""The marks that may end a sentence, in all scripts."""

from functools import cache

import regex

from nmt.text import INVISIBLE

# German and Georgian close quotes with a mark that opens them elsewhere.
CLOSING = rf"(?:[\p{{Pe}}\p{{Pf}}\"'{INVISIBLE}]|[\u201c\u2018](?=\s|$))*"
# Unicode calls these marks terminals of sentences, except for the Tibetan ones and the ellipsis. It
# also calls a comma of Burmese a terminal.
COMMA_OF_BURMESE = "\u104a"
MARK = rf"(?:(?!{COMMA_OF_BURMESE})[\p{{Sentence_Terminal}}\u0f0d-\u0f11\u2026])"
PICTURE = r"(?:\p{Emoji_Presentation}|\p{Extended_Pictographic}\ufe0f)"
EMOJI = rf"(?:{PICTURE}[\ufe0f\u200d\p{{Emoji_Modifier}}]*)"
# An emoji belongs to the sentence before, unless a blank separates only the two.
AFTER_MARK = rf"(?P<closing>{CLOSING})(?:{EMOJI}+|\s+{EMOJI}+(?=\s|$))?\s*"
END = regex.compile(rf"{MARK}+{AFTER_MARK}")
"""A possible end of a sentence, with the blanks that follow."""
AFTER_CLAUSE = regex.compile(
    rf"[,;:)\u060c\u061b\u3001\uff0c\uff1b\uff1a{COMMA_OF_BURMESE}]|{MARK}"
)
PERIOD = "[.\u06d4]"
"""A period, ASCII or Urdu, that may belong to an abbreviation."""


@cache
def end_of(stops: str) -> "regex.Pattern[str]":
    """END with the further marks of a language."""
    if not stops:
        return END
    return regex.compile(rf"(?:{MARK}|[{stops}])+{AFTER_MARK}")
