# ruff: noqa: RUF001 - letters of other scripts look like Latin ones
"""Units of measurement as other scripts write them, by Unicode's data (CLDR), such as км for km."""

import re
from collections.abc import Iterator
from functools import cache
from itertools import product

from nmt.items.currencies import (
    CURRENCIES,
    FURTHER_NAMES,
    codes_of_currencies,
    names_of_currency,
)
from nmt.text import SCRIPTS, script

NUMBER_PLACE = "{0}"
"""Stands for the number in a form of a unit that does not merely follow it: 時速{0}キロメートル."""

CLDR_NAMES = {
    "km": "length-kilometer",
    "m": "length-meter",
    "cm": "length-centimeter",
    "mm": "length-millimeter",
    "µm": "length-micrometer",
    "nm": "length-nanometer",
    "pt": "length-point",
    "ft": "length-foot",
    "yd": "length-yard",
    "km²": "area-square-kilometer",
    "m²": "area-square-meter",
    "cm²": "area-square-centimeter",
    "m³": "volume-cubic-meter",
    "cm³": "volume-cubic-centimeter",
    "L": "volume-liter",
    "dL": "volume-deciliter",
    "cL": "volume-centiliter",
    "mL": "volume-milliliter",
    "t": "mass-tonne",
    "kg": "mass-kilogram",
    "g": "mass-gram",
    "mg": "mass-milligram",
    "lb": "mass-pound",
    "oz": "mass-ounce",
    "h": "duration-hour",
    "min": "duration-minute",
    "s": "duration-second",
    "ms": "duration-millisecond",
    "µs": "duration-microsecond",
    "ns": "duration-nanosecond",
    "km/h": "speed-kilometer-per-hour",
    "m/s": "speed-meter-per-second",
    "mph": "speed-mile-per-hour",
    "mi": "length-mile",
    "TB": "digital-terabyte",
    "GB": "digital-gigabyte",
    "MB": "digital-megabyte",
    "kB": "digital-kilobyte",
    "B": "digital-byte",
    "Gbit": "digital-gigabit",
    "Mbit": "digital-megabit",
    "kbit": "digital-kilobit",
    "bit": "digital-bit",
    "GHz": "frequency-gigahertz",
    "MHz": "frequency-megahertz",
    "kHz": "frequency-kilohertz",
    "Hz": "frequency-hertz",
    "MW": "power-megawatt",
    "kW": "power-kilowatt",
    "W": "power-watt",
    "mW": "power-milliwatt",
    "kWh": "energy-kilowatt-hour",
    "kJ": "energy-kilojoule",
    "J": "energy-joule",
    "kcal": "energy-kilocalorie",
    "cal": "energy-calorie",
    "V": "electric-volt",
    "A": "electric-ampere",
    "mA": "electric-milliampere",
    "Ω": "electric-ohm",
    "Pa": "pressure-pascal",
    "hPa": "pressure-hectopascal",
    "kPa": "pressure-kilopascal",
    "MPa": "pressure-megapascal",
    "bar": "pressure-bar",
    "mbar": "pressure-millibar",
    "lx": "light-lux",
    "lm": "light-lumen",
    "°C": "temperature-celsius",
    "°F": "temperature-fahrenheit",
    "K": "temperature-kelvin",
    "°": "angle-degree",
    "\u2033": "length-inch",
    "px": "graphics-pixel",
    "%": "concentr-percent",
    "‰": "concentr-permille",
    "ppm": "concentr-permillion",
}
FURTHER_FORMS = {
    "TB": "Тб, Тбайт, تيرابايت",
    "GB": "Гб, Гбайт, جيجابايت, غيغابايت, ג'יגה בייט, जीबी, गीगाबाइट",
    "MB": "Мб, Мбайт, ميجابايت, ميغابايت, מגה בייט, एमबी, मेगाबाइट",
    "kB": "Кб, кб, КБ, Кбайт, كيلوبايت, केबी, किलोबाइट",
    "GiB": "ГиБ, ГіБ",
    "MiB": "МиБ, МіБ",
    "KiB": "КиБ, КіБ",
    "bit": "位, סיביות",
    "s": "сек",
    "min": "мин",
    "h": "час",
    "kg": "キロ, 킬로, килограммов, килограмма, كيلوغرامات, كيلوجرامات, كجم, كغ, "
    "किग्रा, कि.ग्रा., 公斤, 千克",
    "g": "граммов, грамма, غرامات, جرامات, جم",
    "mL": "мл, مل, ملل",
    "km": "キロ, километров, километра, كيلومترات, كلم, किमी, 公里, 千米",
    "pt": "点, نقطة",
    "px": "пикс, 像素, 픽셀, ピクセル",
    "dpi": "نقطة/بوصة, 점/인치",
    "%": "퍼센트, 프로, เปอร์เซ็นต์, بالمئة, بالمائة, في المئة, في المائة, ร้อยละ{0}, 百分之{0}",
    "°C": "摂氏{0}℃, 摄氏{0}度, 攝氏{0}度, 섭씨{0}℃, 度, 도, องศา, градус, градуса, градусов, "
    "градуси, градусів, درجة, درجات, درجات مئوية, درجه, डिग्री, מעלות, βαθμοί, გრადუსი",
    "°F": "华氏{0}度, 華氏{0}度, 華氏{0}℉, 화씨{0}℉",
    "km/h": "時速{0}km, 时速{0}公里, 时速{0}千米, 时速{0}km, 時速{0}公里, 시속{0}km, "
    "毎時{0}キロメートル, 毎時{0}km, 時速{0}キロ, キロメートル毎時, "
    "公里/小时, 千米/小时, 公里/小時, 公里每小时",
    "m/s": "秒速{0}メートル, 秒速{0}m, 毎秒{0}メートル, 초속{0}미터, 초속{0}m, 每秒{0}米, "
    "メートル毎秒, 米/秒",
    "mph": "миль/ч, миль в час, миль/год, миль на годину, "
    "時速{0}マイル, 时速{0}英里, 時速{0}英里, 시속{0}마일",
    **FURTHER_NAMES,
}
"""Unit -> forms in use that CLDR lacks."""
SAME_UNITS = {
    "KB": "kB",
    "byte": "B",
    "bytes": "B",
    "bits": "bit",
    "l": "L",
    "ml": "mL",
    "cl": "cL",
    "dl": "dL",
    "°م": "°C",
    "°س": "°C",
    "℃": "°C",
    "℉": "°F",
    "％": "%",
    "٪": "%",
    "؉": "‰",
    **codes_of_currencies(),
    "㎎": "mg",
    "㎏": "kg",
    "㎜": "mm",
    "㎝": "cm",
    "㎞": "km",
    "㎖": "mL",
    "ℓ": "L",
    "bps": "bit/s",
    "kbps": "kbit/s",
    "Mbps": "Mbit/s",
    "Gbps": "Gbit/s",
    "DPI": "dpi",
    "Mhz": "MHz",
    "kph": "km/h",
    "㎟": "mm²",
    "㎠": "cm²",
    "㎡": "m²",
    "㎢": "km²",
    "㎣": "mm³",
    "㎤": "cm³",
    "㎥": "m³",
    "㎦": "km³",
}
"""Unit -> its standard form in nmt."""
BEFORE_NUMBERS = {
    "%",
    "％",
    "٪",
    *CURRENCIES,
    *codes_of_currencies(),
}
"""Units that may also stand before the number, as percent does in Turkish, Basque and Persian."""
VALUES = 1, 2, 5, 11, 100, 1.5
"""Numbers whose units differ in some language."""
MARKS_BESIDE = r"[\s\u200e\u200f]*"
NUMBER_IN_FORM = re.compile(rf"{MARKS_BESIDE}[\d.,\u066b]+{MARKS_BESIDE}")
VARIANTS = {
    ".": "[.॰]?",
    "॰": "[.॰]?",
    '"': '["״]',
    "״": '["״]',
    "'": "['׳]",
    "׳": "['׳]",
    " ": r"\s?",
    "\u00a0": r"\s?",
}
"""Patterns for signs of abbreviations, which have several forms or are left out."""


def same_unit(unit: str) -> str:
    """The form of an international unit that all its spellings share: kB for KB."""
    unit = unit.replace("μ", "µ")
    before_number = unit.removesuffix(NUMBER_PLACE)
    if before_number in BEFORE_NUMBERS:
        unit = before_number
    return SAME_UNITS.get(unit, unit)


@cache
def spellings(unit: str) -> list[str]:
    """The spellings of an international unit, given by the form that they share."""
    forms = [unit]
    for other, shared in SAME_UNITS.items():
        if shared == unit:
            forms.append(other)
    return forms + [form + NUMBER_PLACE for form in forms if form in BEFORE_NUMBERS]


@cache
def forms_of_unit(unit: str, script_name: str) -> list[str]:
    """The forms of a unit in the languages of a script; `unit` is the form that spellings share.

    Languages that write it with Latin letters are left out.
    """
    numerator, slash, denominator = unit.partition("/")
    if slash and unit not in CLDR_NAMES:
        forms = forms_of_quotient(numerator, denominator, script_name)
    else:
        forms = list[str]()
        for code in languages_in(script_name):
            forms += forms_of_language(unit, code)
        forms += FURTHER_FORMS.get(unit, "").split(", ")
    in_script = [form for form in forms if has_script(form, script_name)]
    return [*dict.fromkeys(in_script)]


def forms_of_quotient(numerator: str, denominator: str, script_name: str) -> list[str]:
    """How a ratio of two units is written, even if only one of them is in the script."""
    numerators = [*forms_of_unit(numerator, script_name), numerator]
    denominators = [*forms_of_unit(denominator, script_name), denominator]
    return ["/".join(pair) for pair in product(numerators, denominators)]


def has_script(text: str, script_name: str) -> bool:
    return any(script(character) == script_name for character in text)


def languages_in(script_name: str) -> list[str]:
    """The codes of a script's languages, as far as CLDR has data about them."""
    from babel import localedata  # takes 30 ms, which few lines need

    codes = list[str]()
    for names, languages in SCRIPTS.items():
        if script_name in names:
            codes += languages
    if "zh" in codes:
        codes.append("zh_Hant")
    return [code for code in codes if localedata.exists(code)]


def forms_of_language(unit: str, code: str) -> Iterator[str]:
    """The forms of a unit after numbers in a language, in full and abbreviated."""
    from babel.units import UnknownUnitError, format_unit

    yield from names_of_currency(unit, code)
    name = CLDR_NAMES.get(unit)
    if name is None:
        return
    for length in ("short", "long"):
        for value in VALUES:
            try:
                text = format_unit(value, name, length=length, locale=code)
            except UnknownUnitError:
                return
            number = NUMBER_IN_FORM.search(text)
            if number is None:  # such as the dual in Arabic
                continue
            before = text[: number.start()]
            after = text[number.end() :]
            yield before + NUMBER_PLACE + after if before else after


def pattern_of_form(form: str) -> str:
    """A pattern for a part of a form of a unit, with or without its signs of abbreviation."""
    pattern = ""
    for sign in form:
        pattern += VARIANTS.get(sign) or re.escape(sign)
    return pattern
