"""Scripts: the letters of each script, and the scripts in which a text is written."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cache

import regex

OF_ALL_SCRIPTS = ("MODIFIER", "IDEOGRAPHIC")
"""The first words in the names of letters that belong to no script."""
ALPHABET = 20
"""A corpus counts as written in a script if it has at least this many different letters of it."""
NO_LETTERS = regex.compile(r"[^\p{L}\p{Mn}\p{Mc}]+|[\ufe00-\ufe0f\U000e0100-\U000e01ef]+")
"""Variation selectors are also marks, but are removed: they affect only how a character looks."""
NO_SYMBOLS = regex.compile(r"[^\p{N}\p{S}]+")


@cache
def script(character: str) -> str:
    """A letter's script, from its Unicode name, such as LATIN or CJK.

    Returns "" for other characters and for letters shared by all scripts.
    """
    if not character.isalpha():
        return ""
    # Python has no table of scripts, but the names of
    # letters begin with them: LATIN SMALL LETTER A.
    first_word = re.match(r"[A-Z]+", unicodedata.name(character, ""))
    if first_word is None or first_word[0] in OF_ALL_SCRIPTS:
        return ""
    return first_word[0]


def scripts_of_text(lines: Iterable[str]) -> frozenset[str]:
    """The scripts that each account for at least a tenth of a text's letters."""
    text = "".join(lines)
    if text.isascii():  # usual, and worth the speed
        return frozenset(["LATIN"] if any(map(str.isalpha, text)) else [])
    letters = Counter[str]()
    # Counted by character first, because a text has far fewer different characters than letters.
    for character, count in Counter(text).items():
        letters[script(character)] += count
    del letters[""]
    fewest = letters.total() / 10
    return frozenset(name for name, count in letters.items() if count >= fewest)


def scripts_of_characters(characters: str) -> frozenset[str]:
    """The scripts that a corpus with these characters is written in.

    Scripts that occur only in foreign names are not included.
    """
    # Lower case, so that scripts with two cases do not count each letter twice.
    counts = Counter(script(character) for character in set(characters.lower()))
    return frozenset(name for name, count in counts.items() if name and count >= ALPHABET)


def letters(text: str) -> str:
    """The lowercased letters and marks of a text.

    They are equal for texts that differ only in digits, case and punctuation. Text without letters
    keeps its digits and symbols, and text that is only punctuation keeps everything.
    """
    folded = text.casefold()
    # `or`: the second form only if nothing is left, so that two lines of digits are not the same.
    return NO_LETTERS.sub("", folded) or NO_SYMBOLS.sub("", folded) or folded


def direction_of_text(text: str) -> str:
    """`rtl` if the first letter with a direction is written from right to left, otherwise `ltr`."""
    for character in text:
        direction = unicodedata.bidirectional(character)
        # Rule P2 of the bidirectional algorithm (UAX #9): the first strong character decides.
        if direction in ("R", "AL"):
            return "rtl"
        if direction == "L":
            break
    return "ltr"
