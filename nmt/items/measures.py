"""Measurements: numbers with units, in the forms that the languages of the world write them.

A translation may write a measurement as its language does, with other digits, decimal marks,
blanks and units. All forms of a measurement have a reading in common; see `readings`.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import product

from nmt.items.currencies import CURRENCIES
from nmt.items.units import (
    NUMBER_PLACE,
    forms_of_unit,
    pattern_of_form,
    same_unit,
    spellings,
)
from nmt.text import (
    CYRILLIC,
    GREEK,
    HAN,
    HANGUL,
    KANA,
    LATIN,
    SOUTH_EAST,
    WORD_CHARACTER,
    is_word_border,
)

BLANK = "[ \u00a0\u202f\u2009]"
# Also with a fraction slash between digits, which may be raised and lowered.
FRACTION = "(?:[¼-¾⅐-⅞↉]|[\\d⁰¹²³⁴-⁹]{1,3}\u2044[\\d₀-₉]{1,3})"
POWER = "⁻?[⁰¹²³⁴-⁹]{1,4}"
ARABIC_DECIMAL = "\u066b"
ARABIC_THOUSANDS = "\u066c"
SEPARATORS = f".,'\u2019{ARABIC_DECIMAL}{ARABIC_THOUSANDS}"
# 1,000.5, 1 000, 1e-5, 1/2, 2½, ¾, 10⁶ or 25²
NUMBER = (
    r"(?:(?>\d{1,3}/|)\.?\d{1,20}+"
    rf"(?>(?:[{SEPARATORS}]\d{{1,20}}+|[ \u00a0\u202f]\d{{3}}(?!\d)){{0,6}})"
    rf"(?>e[-+]?\d{{1,4}}+|)(?:{POWER}|{BLANK}?{FRACTION}|)|{FRACTION})"
)
FACTORS = "(?:[A-Za-zµμΩ]{1,4}[/·⋅]){0,2}"
UNITS = (
    f"{FACTORS}[A-Za-zµμΩ]{{1,4}}{POWER}(?:[/·⋅][A-Za-z]{{1,4}})?|"  # W/m², m³/s, kg·m⁻³
    f"{FRACTION}|"  # the fraction of a mixed number may adjoin it or not: 3 ¾
    "km/h|m/s|[kMGT]?bit/s|[kMGT]i?B/s|[kMG]bps|mph|rpm|fps|[mµ]?g/m³|[kcmnµ]?m[²³]?|[kmµ]?g|t"
    "|[mµn]?s|min|h|[kMG]?Hz|[kKMGT]?i?B|bytes?|[kMG]?bits?|[mµk]?VA?|[mµ]?Ah?|[kMG]?Wh?|[kM]?Ω"
    "|[hkM]?Pa|m?bar|psi|lx|lm|k?J|k?cal|Nm|°[CFمس]|[°\u2032\u2033]|K|px|pt|em|rem|dpi|[mcd]?[lL]"
    "|dB[mA]?|ppm|ppb|lb|oz|ft|yd|%|‰|€|\\$|£|EUR|USD"
    # Percent and per mille of other scripts, ℃ and ℉, and units in a single character, such as ㎏.
    "|[\uff05\u066a\u0609\u2103\u2109\u338e\u338f\u3396\u339c-\u33a6\u2113]"
)
EUROPEAN = LATIN + GREEK + CYRILLIC
# A letter of a European script next to a number or a unit forms one word with it. Other languages
# join their prefixes and particles to measurements.
BEFORE_MEASURE = rf"(?<![{EUROPEAN}\d_.,%°{ARABIC_DECIMAL}])"
AFTER_MEASURE = rf"(?![{EUROPEAN}\d_%])"
# After a letter of a script with blanks, it is a hyphen: Hebrew joins its prefixes to numbers with
# one.
SIGN_OF_NUMBER = rf"(?<![^\W{HAN}{KANA}{SOUTH_EAST}])(?<![)\]])[-+\u2212]"
SIGNED = f"(?>{SIGN_OF_NUMBER}|){NUMBER}"
# The 1990s, the 80s and the '80s are not seconds.
DECADE = r"(?:\d{4}s|(?:(?<=[Tt]he )|(?<=['\u2018\u2019]))\d0s)(?![A-Za-z\d_])"
BEFORE_ITEM = rf"{BEFORE_MEASURE}(?!{DECADE})"
MEASURE = re.compile(rf"{BEFORE_ITEM}({SIGNED})([ \u00a0\u202f]?)({UNITS}){AFTER_MEASURE}")
CURRENCY = f"[{''.join(map(re.escape, CURRENCIES))}]"
MONEY = re.compile(rf"(?<![{LATIN}\d_]){CURRENCY} ?{NUMBER}(?![{LATIN}\d_])")
# A word for minus. It is not part of an item, only of its translations.
MINUS = "零下|氷点下|マイナス|영하|마이너스|负|負|минус|мінус|ลบ|سالب|منفی|माइनस|ऋण|מינוס|მინუს"
# A word for Fahrenheit or per hour before a number gives another meaning to what follows it.
OTHER_UNITS = "華氏 华氏 화씨 時速 时速 시속 毎時 每小时 每小時 秒速 초속 毎秒 每秒"
OTHER_UNIT_BEFORE = "".join(f"(?<!{word})(?<!{word} )" for word in OTHER_UNITS.split())
POWERS = {
    "万": 4,
    "萬": 4,
    "만": 4,
    "億": 8,
    "亿": 8,
    "억": 8,
}
"""East Asian multiplier after a number -> power of ten."""
POWER_OF_TEN = f"{BLANK}?[{''.join(POWERS)}]"
SIGNED_IN_TRANSLATION = rf"(?:(?:{MINUS})\s?{NUMBER}|{SIGNED})(?:{POWER_OF_TEN})?"
# Marks of direction may stand before a unit in Hebrew and Arabic.
GAP = "[ \u00a0\u202f\u2009\u200e\u200f]{0,2}"
# 10%5 does not contain 5%.
NO_PERCENT_AFTER = "(?![%\uff05\u066a])"
# Also not as a file name or a quotient, but another measurement may follow: 30°C/86°F.
NOT_CONTINUED = r"(?!\.?(?:[A-Za-z\d_@\\]|/(?![-+\u2212]?\d)))"
UNCONTINUED = re.compile(NOT_CONTINUED)
SIGNS_OF_ABBREVIATION = re.compile("[.॰\\s\"'\u05f3\u05f4]")
JOINED = re.compile(f"[{HANGUL}{KANA}]")
PARTS = re.compile(rf"()({SIGNED_IN_TRANSLATION}){GAP}(\S.*)", re.DOTALL)
PARTS_WITH_UNIT_FIRST = re.compile(rf"(\D+?){GAP}({SIGNED_IN_TRANSLATION}){GAP}(.*)", re.DOTALL)
PLAIN_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?", re.ASCII)
IS_MINUS = re.compile(rf"(?:{MINUS})\s?")
THOUSANDS_MARKS = re.compile(rf"(?<=\d)[\s'\u2019{ARABIC_THOUSANDS}](?=\d{{3}})")
MARKED_NUMBER = re.compile(rf"[-+]?[\d.,{ARABIC_DECIMAL}]*\d")
MARKS_OF_NUMBER = re.compile(f"[.,{ARABIC_DECIMAL}]")
AMBIGUOUS = re.compile(r"[-+]?[1-9]\d{0,2}\D\d{3}")
"""One mark before three digits: 1.000 is one or a thousand."""
ZEROS = (
    0x0030,  # ASCII
    0x0660,  # Arabic
    0x06F0,  # Persian and Urdu
    0x0966,  # Devanagari
    0x09E6,  # Bengali
    0x0A66,  # Gurmukhi
    0x0AE6,  # Gujarati
    0x0B66,  # Oriya
    0x0BE6,  # Tamil
    0x0C66,  # Telugu
    0x0CE6,  # Kannada
    0x0D66,  # Malayalam
    0x0E50,  # Thai
    0x0ED0,  # Lao
    0x0F20,  # Tibetan
    0x1040,  # Burmese
    0x17E0,  # Khmer
    0x1810,  # Mongolian
    0xFF10,  # full-width
)
"""The digits 0 of the scripts in use."""
Reading = tuple[str, str]
"""A number and a unit, both in a standard form."""


def ascii_digits(text: str) -> str:
    """The text with ASCII digits instead of those of other scripts."""
    if text.isascii():
        return text
    narrow = ""
    for sign in text:
        narrow += str(int(sign)) if sign.isdecimal() else sign
    return narrow


def same_digit(digit: str) -> str:
    """A pattern for a digit in any script."""
    value = int(digit)
    digits = [chr(zero + value) for zero in ZEROS]
    return f"[{''.join(digits)}]"


def numbers(text: str) -> list[str]:
    """The standard forms of all numbers that a text can mean.

    The form of 1.234,5 and of 1 234,5 is `1234.5`. Only the language tells whether a single mark
    before three digits separates decimals or thousands. Such a number, 1.000 or 1,000, has the form
    `1|000`, and the form `1000` unless the mark is a point.
    """
    power = POWERS.get(text[-1])
    if power:
        return multiplied(numbers(text[:-1]), power)
    text = IS_MINUS.sub("-", text)
    without_thousands, thousands_marks = THOUSANDS_MARKS.subn("", text)
    without_blanks = "".join(without_thousands.split())
    plain = ascii_digits(without_blanks).replace("\u2212", "-")
    marks = MARKS_OF_NUMBER.findall(plain)
    # A fraction or a range, such as 1/2 or 5-10,5.
    if not MARKED_NUMBER.fullmatch(plain):
        return [MARKS_OF_NUMBER.sub(".", plain)]
    # 1 000 or 1'000, whose mark can only separate thousands.
    if thousands_marks == 1 and not marks:
        return [plain, *grouped(plain)]
    # 1.000 or 1,000.
    if len(marks) == 1 and not thousands_marks and AMBIGUOUS.fullmatch(plain):
        form = MARKS_OF_NUMBER.sub("|", plain)
        return [form] if marks == ["."] else [form, form.replace("|", "")]
    # 1,5 or 1.234,5: the last mark separates the decimals, and others the thousands.
    has_different_marks = len(set(marks)) > 1
    if len(marks) == 1 or has_different_marks:
        whole, _, decimals = plain.rpartition(marks[-1])
        return [f"{without_marks(whole)}.{decimals}"]
    # 1.234.567 or 1234.
    return [without_marks(plain)]


def multiplied(forms: Iterable[str], power: int) -> list[str]:
    """Standard forms of numbers times a power of ten, without those of fractions and the like."""
    products = list[str]()
    for form in forms:
        if PLAIN_NUMBER.fullmatch(form):
            products.append(f"{Decimal(form).scaleb(power):f}")
    return products


def without_marks(number: str) -> str:
    """A whole number without marks; 0 if there is no digit, as before the point in .5."""
    return MARKS_OF_NUMBER.sub("", number) or "0"


def grouped(number: str) -> list[str]:
    """The form of a whole number with a mark before its last three digits.

    Translations may add such a mark. Longer numbers would have several.
    """
    if number.isdecimal() and 4 <= len(number) <= 6:
        return [f"{number[:-3]}|{number[-3:]}"]
    return []


def readings(measure: str) -> list[Reading]:
    """The numbers that a measurement can mean, each with the unit as it is written.

    The unit is `%` for every sign of percent, and the shared form of an international unit.
    """
    parts = PARTS.fullmatch(measure) or PARTS_WITH_UNIT_FIRST.fullmatch(measure)
    assert parts
    before, number, after = parts.groups()
    unit = same_unit(before + NUMBER_PLACE + after if before else after)
    return [(form, unit) for form in numbers(number)]


def bare(unit: str) -> str:
    """A unit without its signs of abbreviation, which have several forms or are left out."""
    return SIGNS_OF_ABBREVIATION.sub("", unit.replace("μ", "µ"))


def pattern_after(form: str) -> str:
    """A pattern for a form of a unit that follows its number."""
    pattern = pattern_of_form(form)
    if WORD_CHARACTER.match(form[-1]):
        pattern += NOT_CONTINUED
    return pattern


def pattern_around(form: str) -> str:
    """A pattern for a measurement whose unit stands before its number, or around it."""
    before, _, after = form.partition(NUMBER_PLACE)
    begin = rf"(?<![{EUROPEAN}\d_]){pattern_of_form(before)}"
    end = GAP + pattern_after(after) if after else NO_PERCENT_AFTER
    return f"{begin}{GAP}{SIGNED_IN_TRANSLATION}{end}{AFTER_MEASURE}"


class Measures:
    """Finds the measurements of a line in texts, in the forms of any language."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = dict[Reading, str]()
        for text in texts:
            for number, unit in readings(text):
                for form in (number, *grouped(number)):
                    self.texts.setdefault((form, unit), text)
        units = [unit for _, unit in self.texts]
        self.units = list(dict.fromkeys(units))
        self.units_of_forms = defaultdict[str, list[str]](list)
        """The units that a form may stand for; complete for the scripts of patterns made so far."""

    def patterns(self, scripts: Iterable[str]) -> list[str]:
        """Patterns of these units with any number, in international forms and those of scripts."""
        if not self.units:
            return []
        names = set[str]()
        for unit in self.units:
            forms = [*spellings(unit)]
            for script_name in scripts:
                forms += forms_of_unit(unit, script_name)
            for form in forms:
                self.units_of_forms[bare(form)].append(unit)
                names.add(form)
        by_length = sorted(names, key=lambda form: (-len(bare(form)), form))
        # First those around a number, because a number may also have a unit of another measurement
        # after it: 摂氏25度 is not an angle.
        patterns = [pattern_around(form) for form in by_length if NUMBER_PLACE in form]
        after_number = [pattern_after(form) for form in by_length if NUMBER_PLACE not in form]
        number = f"{BEFORE_MEASURE}{OTHER_UNIT_BEFORE}{SIGNED_IN_TRANSLATION}"
        patterns.append(f"{number}{GAP}(?:{'|'.join(after_number)}){AFTER_MEASURE}")
        return patterns

    def text_of(self, measure: str) -> str | None:
        """The line's own text for a measurement that these patterns match, if the line has it."""
        for number, unit in readings(measure):
            units = [unit, *self.units_of_forms.get(bare(unit), ())]
            signed_and_unsigned = [number]
            if not IS_MINUS.search(measure):
                # An apparent sign may be a dash, but a word for minus is never a dash.
                signed_and_unsigned.append(number.lstrip("-+"))
            for reading in product(signed_and_unsigned, units):
                text = self.texts.get(reading)
                if text:
                    return text
        return None


def is_whole(match: re.Match[str]) -> bool:
    """Whether a measurement ends with a word.

    In Korean and katakana, particles and other nouns may follow its unit.
    """
    last_character = match[0][-1]
    if JOINED.match(last_character):
        return True
    return is_word_border(match.string, match.end())
