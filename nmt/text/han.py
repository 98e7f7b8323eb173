"""Han characters that the simplified, traditional or Japanese writing does not use."""

from functools import cache

ENCODINGS = {"Hans": "gb2312", "Hant": "big5", "Jpan": "cp932"}
"""Maps writings, as in ISO 15924, to the encoding that has their characters. Those that only Hong
Kong uses are in neither of the first two."""
OTHERS = {"Hans": "Hant", "Hant": "Hans", "Jpan": "Hans"}
"""Maps writings to the one that their texts are confused with."""
FIRST = 0x4E00
LAST = 0x9FFF


def is_encoded(character: str, encoding: str) -> bool:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def characters_of(writing: str) -> frozenset[str]:
    """The common Han characters of a writing."""
    encoding = ENCODINGS[writing]
    characters = map(chr, range(FIRST, LAST + 1))
    return frozenset(sign for sign in characters if is_encoded(sign, encoding))


@cache
def foreign_characters(writing: str) -> frozenset[str]:
    """The Han characters that a writing does not have, but the other one has."""
    return characters_of(OTHERS[writing]) - characters_of(writing)


def foreign_han(text: str, writing: str) -> int:
    """The number of characters in a text that are wrong in a writing: Hans, Hant or Jpan."""
    foreign = foreign_characters(writing)
    return sum(sign in foreign for sign in text)
