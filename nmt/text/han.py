"""Han characters that the simplified, traditional or Japanese writing does not use."""

import re
from functools import cache

from nmt.text.characters import HAN

ENCODINGS = {"Hans": "gb2312", "Hant": "big5", "Jpan": "cp932"}
"""Maps writings, as in ISO 15924, to the encoding that has their characters. Those that only Hong
Kong uses are in neither of the first two."""
CONFUSED_WITH = {"Hans": "Hant", "Hant": "Hans", "Jpan": "Hans"}
"""Maps writings to the one that their texts are confused with."""
IN_HAN = re.compile(f"[{HAN}]")
FIRST_COMMON = 0x4E00
LAST_COMMON = 0x9FFF
"""The common Han characters are between these (CJK Unified Ideographs)."""


def is_encoded(character: str, encoding: str) -> bool:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def characters_of(writing: str) -> frozenset[str]:
    """The common Han characters of a writing."""
    encoding = ENCODINGS[writing]
    # Encodings tell because each was made for one writing; Unicode unified them.
    characters = map(chr, range(FIRST_COMMON, LAST_COMMON + 1))
    return frozenset(sign for sign in characters if is_encoded(sign, encoding))


@cache
def foreign_characters(writing: str) -> frozenset[str]:
    """The Han characters that a writing does not have, but the other one has."""
    return characters_of(CONFUSED_WITH[writing]) - characters_of(writing)


def lacking_han(text: str) -> dict[str, int]:
    """Writing -> the number of different Han characters of a text that it lacks.

    No encoding has every rare character, so only differences between the counts mean something.
    """
    # Different characters: a name that is repeated should not decide.
    characters = {sign for sign in text if IN_HAN.match(sign)}
    lacking = dict[str, int]()
    for writing, encoding in ENCODINGS.items():
        lacking[writing] = sum(not is_encoded(sign, encoding) for sign in characters)
    return lacking


def foreign_han(text: str, writing: str) -> int:
    """The number of characters in a text that are wrong in a writing: Hans, Hant or Jpan."""
    foreign = foreign_characters(writing)
    return sum(sign in foreign for sign in text)
