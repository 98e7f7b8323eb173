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
"""The maximum length of an East Asian numeral, in characters; a product of more is no number."""
OTHER_MEANING = ("\uc870", "\u5146", "\u4eac")
"""Units that also mean something else: an article of a law, mega, and a capital."""
INTEGER = regex.compile(r"\d+|\d{1,3}(\D)(?:\d{2,3}\1)*\d{3}")
"""An integer with or without groups of digits. In India, all groups except the last have two."""
DIGIT = regex.compile(r"\d")
PLAIN = r"\d+(?:[.,'\u2019\u066b\u066c\uff0c\uff0e]\d+)*"
WITH_BLANKS = rf"(?<!\d)\d{{1,3}}(?: \d{{3}})+(?!\d)(?:[.,\u066b]\d+)?|{PLAIN}"
ERA = "|".join(map(regex.escape, sorted(ERAS, key=len, reverse=True)))
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
COUNTS_IN_WORDS = [str(count) for count in (*range(1, 100), *range(100, 1000, 100))]
"""What may be before a unit in words: fifty million."""
FRACTIONS = [f"{whole}.{part}" for whole in range(IN_WORDS) for part in ("25", "5", "75")]
MINUTES = {"15", "30", "45"}
"""Parts of an hour that may be in words: half past three."""
PART_OF_SUM = regex.compile(rf"{PLAIN}|{HAN_DIGIT}+|{LARGE_UNIT}")


@dataclass
class Numeral:
    """What a numeral may mean: its possible values (two for 1.234), and the values of its parts
    (three for 14.3.2015).

    Values are strings of decimal digits, without leading zeros, and without trailing zeros after
    the decimal point. They are no integers, because Python refuses to convert thousands of digits.
    """

    values: set[str]
    parts: set[str]
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
        is_small = any(len(value) <= 2 and int(value) <= IN_WORDS for value in self.values)
        return is_small and not self.scaled


def integer(digits: str) -> str:
    """Digits with marks between them, as a value."""
    return regex.sub(r"\D", "", digits).lstrip("0") or "0"


def numeral(written: str) -> Numeral:
    """The values of digits with marks between them."""
    written = DIGIT.sub(lambda sign: str(unicodedata.decimal(sign[0])), written)
    *whole, decimals = regex.split(r"\D(?=\d+$)", written)
    values = {integer(written)} if INTEGER.fullmatch(written) else set()
    mark = written[-len(decimals) - 1 : -len(decimals)]
    is_group = decimals == "000"  # 5,000 is hardly 5 with three decimals
    if whole and not is_group and mark not in whole[0] and INTEGER.fullmatch(whole[0]):
        values.add(f"{integer(whole[0])}.{decimals}".rstrip("0").rstrip("."))
    return Numeral(values, set(map(integer, regex.split(r"\D", written))))


def times_power(value: str, power: int) -> str:
    """A value times a power of ten."""
    whole, _, decimals = value.partition(".")
    decimals = decimals.ljust(power, "0")
    product = f"{integer(whole + decimals[:power])}.{decimals[power:]}"
    return product.rstrip("0").rstrip(".")


def products(values: Iterable[str], powers: Collection[int]) -> set[str]:
    """Each value times each power of ten."""
    return {times_power(value, power) for value in values for power in powers}


def value_of_sum(written: str) -> str:
    """The value of a short East Asian numeral, such as 1億2000万, 3万5千, 二百五十 or 二〇二四."""
    total = Decimal(0)
    below_ten_thousand = Decimal(0)
    count: Decimal | None = None  # what the next unit multiplies
    for part in PART_OF_SUM.findall(written):
        power = EAST_ASIAN_UNITS.get(part)
        if power is None:
            digits = "".join(str(EAST_ASIAN_DIGITS.get(sign, sign)) for sign in part)
            count = max(map(Decimal, numeral(digits).values), default=Decimal(0))
        elif power < 4:
            below_ten_thousand += (Decimal(1) if count is None else count) * 10**power
            count = None
        elif total and not below_ten_thousand and count is None:
            total *= 10**power  # 1万亿
        else:
            total += (below_ten_thousand + (count or 0) or 1) * 10**power
            below_ten_thousand = Decimal(0)
            count = None
    value = f"{total + below_ten_thousand + (count or 0):f}"
    return value.rstrip("0").rstrip(".") if "." in value else value


def numerals(text: str, way: "regex.Pattern[str]") -> Iterator[Numeral]:
    """The numerals of a text, with one of NUMERALS."""
    for match in way.finditer(text):
        if match["sum"]:
            counts = [numeral(digits) for digits in regex.findall(PLAIN, match["sum"])]
            values = {value_of_sum(match["sum"])} if len(match["sum"]) <= LONGEST_SUM else set()
            if match["sum"].endswith(OTHER_MEANING):
                values |= counts[0].values
            yield Numeral(set(), {part for count in counts for part in count.parts}, values)
            continue
        written = numeral(match["digits"])
        is_in_word = regex.match("[A-Za-z]", text, pos=max(match.start() - 1, 0))  # OCT2BIN
        if match["unit"] and not is_in_word:
            written.scaled = products(written.values, powers_of_unit(match["unit"]))
        if match["era"]:
            written.values |= shifted(written.values, ERAS[match["era"]])
        written.values |= usual_years(written.values, text)
        if match["decade"]:
            written.values |= {value[-2:] for value in written.values if len(value) == 4}
        yield written


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
    values = {value_of_sum(han) for han in HAN_NUMERAL.findall(text) if len(han) <= LONGEST_SUM}
    values |= han_years(text)
    for pattern in HOUR_AFTER_NOON:
        for hour in pattern.findall(text):
            values |= {str(int(hour) + 12), "0"}  # 3 p.m. is 15:00
    for word in KOREAN_NUMERAL.findall(text):
        if len(word) <= LONGEST_SUM:
            values.add(value_of_sum(word.translate(KOREAN)))
    powers = {power for word in WRITTEN_UNIT.finditer(text) for power in powers_of_unit(word[0])}
    if HUNDRED.search(text):
        powers.add(2)
    values |= products(COUNTS_IN_WORDS, powers)
    if FRACTION.search(text):
        values |= MINUTES | {*FRACTIONS} | products(FRACTIONS, powers)
    return values


def missing_numerals(text: str, other: str) -> list[Numeral]:
    """The numerals in `text` that `other` lacks, even in parts or words."""
    values = values_in_words(other)
    for way in NUMERALS:
        for written in numerals(other, way):
            values |= written.stated()
    missing = ([one for one in numerals(text, way) if not one.is_among(values)] for way in NUMERALS)
    return min(missing, key=len)


def is_number_lost(source: str, translation: str) -> bool:
    """True if a translation lacks a number from the source.

    Numbers up to IN_WORDS may be written in words: they count as lost only if the translation has a
    number that the source lacks.
    """
    lost = missing_numerals(source, translation)
    if not lost:
        return False
    if all(written.may_be_in_words() for written in lost):
        return bool(missing_numerals(translation, source))
    return True
