"""Numbers in a text: numerals in any digits and formats, also counted in thousands or millions."""

import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal

import regex

from nmt.flags.calendars import ERAS, FIRST_YEAR, shifted, usual_years
from nmt.flags.units import (
    EAST_ASIAN_DIGITS,
    EAST_ASIAN_UNITS,
    FRACTION,
    HOUR_AFTER_NOON,
    HUNDRED,
    KOREAN,
    LONG_UNIT,
    UNIT,
    powers_of_unit,
)

IN_WORDS = 31
"""Numbers up to this, such as days and hours, are often written in words."""
LONGEST_SUM = 40
"""The maximum length of an East Asian numeral, in characters; a product of more is not a number."""
OTHER_MEANING = ("\uc870", "\u5146", "\u4eac")
"""Units that also mean something else: an article of a law, mega, and a capital."""
INTEGER = regex.compile(r"\d+|\d{1,3}(\D)(?:\d{2,3}\1)*\d{3}")
"""An integer with or without groups of digits. In India, all groups except the last have two."""
DIGIT = regex.compile(r"\d")
PLAIN = r"\d+(?:[.,'\u2019\u066b\u066c\uff0c\uff0e]\d+)*"
WITH_BLANKS = rf"(?<!\d)\d{{1,3}}(?: \d{{3}})+(?!\d)(?:[.,\u066b]\d+)?|{PLAIN}"
ERAS_BY_LENGTH = sorted(ERAS, key=len, reverse=True)
ERA = "|".join(map(regex.escape, ERAS_BY_LENGTH))
HAN_DIGIT = f"[{''.join(EAST_ASIAN_DIGITS)}]"
LARGE_UNIT = f"[{''.join(EAST_ASIAN_UNITS)}]"
# Digits and units in turn, such as 1億2000万 and 3만 5천. It must begin with digits, because units
# and Han digits are also parts of words.
# After a blank, only four digits are the rest of a sum, as in 1만 2345. Others are another number.
REST = rf"(?:{PLAIN}| \d{{4}}(?!\d))?"
SUM = rf"(?:{PLAIN}) ?{LARGE_UNIT}+(?: ?(?:{PLAIN}|{HAN_DIGIT}+) ?{LARGE_UNIT}+)*{REST}"
BEFORE = rf"(?:(?P<era>{ERA}) ?)?"
# 1990s is often '90s in other languages, or the nineties in digits.
DECADE = r"(?:['\u2019]?s|ern?|-?[\u0435\u0445]|-\u0442\u0456|年代|년대| क[ाे] दशक)(?![\p{L}\p{M}])"
AFTER = rf"(?:[ -]?(?=\p{{L}})(?P<unit>{UNIT})|(?P<decade>{DECADE}))?"
NUMERALS = tuple(
    regex.compile(
        rf"(?P<sum>{SUM})|{BEFORE}(?P<digits>{digits}){AFTER}",
        regex.I,
    )
    for digits in (PLAIN, WITH_BLANKS)
)
"""Two ways to find numerals in a text. The second treats 1 234 as one numeral."""
NOT_COUNTED = r"(?<!\d[ -]?)"
WHOLE_UNIT = rf"(?<![\p{{L}}\p{{M}}])(?:{UNIT})"
WRITTEN_UNIT = regex.compile(rf"{NOT_COUNTED}(?:{WHOLE_UNIT}|{LONG_UNIT})", regex.I)
"""A word for a unit that is not after digits: one million."""
HAN_UNIT = r"[\u5341\u767e\u5343\u4e07\u842c\u5104\u4ebf\u5146\u4eac]"
HAN_NUMERAL = regex.compile(rf"(?:{HAN_DIGIT}|{HAN_UNIT})+")
HAN_YEAR = regex.compile(rf"(?P<era>{ERA})\s?(?P<year>{FIRST_YEAR}(?=年)|{HAN_NUMERAL.pattern})")
KOREAN_NUMERAL = regex.compile(f"[{''.join(map(chr, KOREAN))}]{{2,}}")
COUNTS_IN_WORDS = [str(count) for count in [*range(1, 100), *range(100, 1000, 100)]]
"""Numbers that may be before a unit in words: fifty million."""
FRACTIONS = [
    *(f"{whole}.25" for whole in range(IN_WORDS)),
    *(f"{whole}.5" for whole in range(IN_WORDS)),
    *(f"{whole}.75" for whole in range(IN_WORDS)),
]
MINUTES = {"15", "30", "45"}
"""Parts of an hour that may be in words: half past three."""
PART_OF_SUM = regex.compile(rf"{PLAIN}|{HAN_DIGIT}+|{LARGE_UNIT}")


@dataclass
class Numeral:
    """The possible meanings of a numeral.

    Values are strings of decimal digits, without leading zeros, and without trailing zeros after
    the decimal point. They are not integers, because Python refuses to convert thousands of digits.
    """

    values: set[str]
    """The possible values of the number: two for 1.234."""
    parts: set[str]
    """The values of the number's parts: three for 14.3.2015."""
    scaled: set[str] = field(default_factory=set)
    """The values with the unit that follows the digits, such as million, if there is one."""

    def is_among(self, values: set[str]) -> bool:
        if (self.values | self.scaled) & values:
            return True
        return not self.scaled and self.parts <= values

    def stated(self) -> set[str]:
        """The values that a reader may see: with its unit, if there is one."""
        return self.scaled or self.values | self.parts

    def may_be_in_words(self) -> bool:
        if self.scaled:
            return False
        short = [value for value in self.values if len(value) <= 2]
        return any(int(value) <= IN_WORDS for value in short)


def integer(digits: str) -> str:
    """Digits with marks between them, as a value."""
    return regex.sub(r"\D", "", digits).lstrip("0") or "0"


def numeral(written: str) -> Numeral:
    """The values of digits with marks between them."""
    # Digits of any script, such as Arabic and Devanagari
    # ones, so that equal numbers are equal texts.
    written = DIGIT.sub(in_ascii, written)
    values = set()
    # Both readings are kept, because 1.234 is a thousand in German and a decimal in English.
    if INTEGER.fullmatch(written):
        values.add(integer(written))
    before, mark, decimals = split_at_last_mark(written)
    is_group = decimals == "000"  # 5,000 is hardly 5 with three decimals
    # A decimal mark occurs once, so a mark that is also before it separates groups.
    if mark and not is_group and mark not in before and INTEGER.fullmatch(before):
        values.add(without_final_zeros(f"{integer(before)}.{decimals}"))
    parts = regex.split(r"\D", written)
    return Numeral(values, set(map(integer, parts)))


def in_ascii(digit: "regex.Match[str]") -> str:
    return str(unicodedata.decimal(digit[0]))


def split_at_last_mark(written: str) -> tuple[str, str, str]:
    """1,234.5 -> 1,234 and . and 5; digits without a mark are all in the last part."""
    match = regex.fullmatch(r"(.*)(\D)(\d+)", written)
    if match is None:
        return "", "", written
    return match[1], match[2], match[3]


def without_final_zeros(decimal: str) -> str:
    """A value with a decimal point, without zeros at its end."""
    return decimal.rstrip("0").rstrip(".")


def times_power(value: str, power: int) -> str:
    """A value times a power of ten."""
    whole, _, decimals = value.partition(".")
    # Moves the decimal point in the text, because values may have thousands of digits.
    decimals = decimals.ljust(power, "0")
    return without_final_zeros(f"{integer(whole + decimals[:power])}.{decimals[power:]}")


def products(values: Iterable[str], powers: Collection[int]) -> set[str]:
    """Each value times each power of ten."""
    results = set()
    for value in values:
        for power in powers:
            results.add(times_power(value, power))
    return results


class Sum:
    """An East Asian numeral as it is read: counts, units up to a thousand, and larger units.

    1億2000万 is 1 * 10^8 + 2000 * 10^4. Up to ten thousand, units add:
    二百五十 is 2 * 100 + 5 * 10.
    """

    def __init__(self) -> None:
        self.total = Decimal(0)
        """What has been read up to the last large unit: 10^8 after 1億2000."""
        self.below_ten_thousand = Decimal(0)
        """Counts with units up to a thousand since then: 250 after 1億二百五十."""
        self.count: Decimal | None = None
        """What the next unit multiplies: 2000 after 1億2000; None directly after a unit."""

    def add_count(self, digits: str) -> None:
        """Read the digits of a count, perhaps with marks between them."""
        values = numeral(digits).values
        # Of two readings, the larger one: in East Asia, 1,234 has a group of digits.
        self.count = max(map(Decimal, values), default=Decimal(0))

    def add_unit(self, power: int) -> None:
        """Read a unit of 10**power: 百 is a hundred (2), 万 ten thousand (4), 億 10**8."""
        is_up_to_thousand = power < 4
        is_after_large_unit = self.total and not self.below_ten_thousand and self.count is None
        if is_up_to_thousand:
            # It multiplies only the count before it; 百 without a count is one hundred.
            count = Decimal(1) if self.count is None else self.count
            self.below_ten_thousand += count * 10**power
        elif is_after_large_unit:
            # It multiplies all that has been read: 1万亿 is 1 * 10^4 * 10^8.
            self.total *= 10**power
        else:
            # It multiplies all since the last large unit: 二百五十万 is 250 * 10^4. 万 alone is ten
            # thousand.
            count = self.below_ten_thousand + (self.count or 0)
            self.total += (count or 1) * 10**power
            self.below_ten_thousand = Decimal(0)
        self.count = None

    def value(self) -> str:
        """The sum of all that has been read, as a value of a Numeral."""
        value = f"{self.total + self.below_ten_thousand + (self.count or 0):f}"
        return without_final_zeros(value) if "." in value else value


def value_of_sum(written: str) -> str:
    """The value of a short East Asian numeral, such as 1億2000万, 3万5千, 二百五十 or 二〇二四."""
    result = Sum()
    for part in PART_OF_SUM.findall(written):
        power = EAST_ASIAN_UNITS.get(part)
        if power is not None:
            result.add_unit(power)
        else:
            digits = [str(EAST_ASIAN_DIGITS.get(sign, sign)) for sign in part]
            result.add_count("".join(digits))
    return result.value()


def numerals(text: str, way: "regex.Pattern[str]") -> Iterator[Numeral]:
    """The numerals of a text, with one of NUMERALS."""
    for match in way.finditer(text):
        if match["sum"]:
            yield numeral_of_sum(match["sum"])
        else:
            yield numeral_of_digits(match, text)


def numeral_of_sum(written: str) -> Numeral:
    """The values of digits and East Asian units in turn."""
    counts = [numeral(digits) for digits in regex.findall(PLAIN, written)]
    values = set()
    # A line of thousands of units would be a number with as many digits.
    if len(written) <= LONGEST_SUM:
        values.add(value_of_sum(written))
    # 30兆 may be 30 megabytes instead of 30 trillion.
    if written.endswith(OTHER_MEANING):
        values |= counts[0].values
    parts = set[str]().union(*(count.parts for count in counts))
    return Numeral(set(), parts, values)


def numeral_of_digits(match: "regex.Match[str]", text: str) -> Numeral:
    """The values of digits, with an era before them, or a unit or the sign of a decade after."""
    written = numeral(match["digits"])
    before = text[match.start() - 1] if match.start() else ""
    # The last letters look like Turkish `bin`, a thousand.
    is_in_word = before.isascii() and before.isalpha()  # OCT2BIN
    if match["unit"] and not is_in_word:
        written.scaled = products(written.values, powers_of_unit(match["unit"]))
    if match["era"]:
        written.values |= shifted(written.values, ERAS[match["era"]])
    # Added, not replaced: the text may also have Gregorian years.
    written.values |= usual_years(written.values, text)
    if match["decade"]:
        written.values |= {value[-2:] for value in written.values if len(value) == 4}
    return written


def han_years(text: str) -> set[str]:
    """The Gregorian years for years of an era in Han characters, such as 令和元年."""
    years = set[str]()
    for match in HAN_YEAR.finditer(text):
        year = match["year"]
        if len(year) <= LONGEST_SUM:
            written = "1" if year == FIRST_YEAR else value_of_sum(year)
            years |= shifted([written], ERAS[match["era"]])
    return years


def values_in_words(text: str) -> set[str]:
    """Values that a text may have in words: Han numerals, hours after noon, and `two million`."""
    values = han_years(text)
    # This also finds parts of ordinary words, such as 一 in 一般: an extra value only prevents an
    # alarm.
    for han in HAN_NUMERAL.findall(text):
        if len(han) <= LONGEST_SUM:
            values.add(value_of_sum(han))
    for pattern in HOUR_AFTER_NOON:
        for hour in pattern.findall(text):
            values |= {str(int(hour) + 12), "0"}  # 3 p.m. is 15:00
    for word in KOREAN_NUMERAL.findall(text):
        if len(word) <= LONGEST_SUM:
            values.add(value_of_sum(word.translate(KOREAN)))
    powers = set[int]()
    for unit in WRITTEN_UNIT.finditer(text):
        powers.update(powers_of_unit(unit[0]))
    if HUNDRED.search(text):
        powers.add(2)
    # Any count may be meant, because words for counts are not parsed in any language.
    values |= products(COUNTS_IN_WORDS, powers)
    if FRACTION.search(text):
        values |= MINUTES
        values.update(FRACTIONS)
        values |= products(FRACTIONS, powers)
    return values


def missing_numerals(text: str, other: str) -> list[Numeral]:
    """The numerals in `text` that `other` lacks, even in parts or words."""
    values = values_in_words(other)
    for way in NUMERALS:
        # Both ways, because `1 234` may be one number or two.
        for written in numerals(other, way):
            values |= written.stated()
    missing = []
    for way in NUMERALS:
        missing.append([one for one in numerals(text, way) if not one.is_among(values)])
    # A text is read in the way in which the other has more of its numerals.
    return min(missing, key=len)


def is_number_lost(source: str, translation: str) -> bool:
    """True if a translation lacks a number from the source.

    Numbers up to IN_WORDS may be written in words: they count as lost only if the translation has a
    number that the source lacks.
    """
    lost = missing_numerals(source, translation)
    if not lost:
        return False
    # A translation with another number in its place is wrong even if the number is small.
    if all(written.may_be_in_words() for written in lost):
        return bool(missing_numerals(translation, source))
    return True
