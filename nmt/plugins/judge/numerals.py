"""Numbers in running text, whatever their format: 1,234.5 and 1.234,5 and 1 234,5 are one number."""

import re
import unicodedata
from dataclasses import dataclass

NUMERAL = re.compile(r"\d+(?:[.,'\u2019\u066b\u066c]\d+)*")
WITH_BLANKS = re.compile(rf"(?<!\d)\d{{1,3}}(?: \d{{3}})+(?!\d)(?:[.,\u066b]\d+)?|{NUMERAL.pattern}")
TWELVE_HOURS = re.compile(r"(\d{1,2})(?:[:.]\d\d)? ?[ap]\.? ?m\b", re.I)
IN_WORDS = 31
"""Numbers up to this one, such as days and most of the times of day, are often written in words."""


@dataclass(frozen=True)
class Numeral:
    """A written number: its possible values, of which 1.234 has two, and those of the parts of 14.3.2015.

    Values are in decimal digits, without leading zeros and without zeros after the last decimal.
    """

    readings: frozenset[str]
    parts: frozenset[str]


def in_ascii(digits: str) -> str:
    """Digits of any script as those of ASCII; not by int(), which refuses thousands of digits."""
    return "".join(str(unicodedata.decimal(digit)) for digit in digits)


def integer(digits: str) -> str:
    return in_ascii(digits).lstrip("0") or "0"


def are_groups(parts: list[str]) -> bool:
    """True for digits in groups of three, or in those of India, where all but the last have two."""
    first, *rest = map(len, parts)
    return first <= 3 and rest[-1:] in ([], [3]) and set(rest[:-1]) <= {2, 3}


def numeral(written: str) -> Numeral:
    """The readings of a numeral: as a whole number in groups, and with a decimal point or comma."""
    parts, separators = re.split(r"\D", written), re.findall(r"\D", written)
    readings = set[str]()
    if len(set(separators)) <= 1 and (not separators or are_groups(parts)):
        readings.add(integer("".join(parts)))
    if separators and separators.count(separators[-1]) == 1 and len(set(separators)) <= 2:
        *groups, decimals = parts
        if len(groups) == 1 or are_groups(groups):
            decimals = in_ascii(decimals).rstrip("0")
            readings.add(integer("".join(groups)) + "." * bool(decimals) + decimals)
    return Numeral(frozenset(readings), frozenset(map(integer, parts)))


def numerals(text: str) -> tuple[list[Numeral], list[Numeral]]:
    """The numerals of a text; in the second list, 1 234 is one numeral."""
    plain, with_blanks = ([numeral(written) for written in kind.findall(text)] for kind in (NUMERAL, WITH_BLANKS))
    return plain, with_blanks


def values(text: str) -> set[str]:
    """All that numerals of a text may stand for: their readings and parts, and hours after noon as of 24."""
    readings = {value for way in numerals(text) for number in way for value in number.readings | number.parts}
    return readings | {str(int(hour) + 12) for hour in TWELVE_HOURS.findall(text)}


def missing(text: str, other: str) -> list[Numeral]:
    """The numerals of a text that another does not have."""
    have = values(other)
    ways = (
        [number for number in way if not (number.readings & have or number.parts <= have)] for way in numerals(text)
    )
    return min(ways, key=len)


def is_number_lost(source: str, translation: str) -> bool:
    """True where a translation lacks a number of the source, or has another one instead.

    A number up to IN_WORDS that is just missing may be there in words: it is lost only if there is a number that the
    source does not have.
    """
    lost = missing(source, translation)
    small = all(any(len(value) <= 2 and int(value) <= IN_WORDS for value in number.readings) for number in lost)
    return bool(lost) and (not small or bool(missing(translation, source)))
