# ruff: noqa: RUF001 - letters of other scripts look like Latin ones
"""Units of measurement as other scripts write them, by Unicode's data (CLDR), such as км for km."""

import re
from collections.abc import Iterator
from functools import cache

from nmt.text import SCRIPTS, script

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
    "kg": "كجم, كغ, किग्रा, कि.ग्रा., 公斤, 千克",
    "g": "جم",
    "km": "كلم, किमी, 公里, 千米",
    "pt": "点, نقطة",
    "px": "пикс, 像素, 픽셀, ピクセル",
    "dpi": "نقطة/بوصة, 점/인치",
    "%": "퍼센트, 프로, เปอร์เซ็นต์, بالمئة, بالمائة, في المئة, في المائة",
}
"""Forms in use besides CLDR's."""
SAME_UNITS = {
    **{"KB": "kB", "byte": "B", "bytes": "B", "bits": "bit"},
    **{"l": "L", "ml": "mL", "cl": "cL", "dl": "dL"},
    **{"℃": "°C", "℉": "°F", "％": "%", "٪": "%", "؉": "‰"},
    **{"㎎": "mg", "㎏": "kg", "㎜": "mm", "㎝": "cm", "㎞": "km", "㎖": "mL", "ℓ": "L"},
    **{"bps": "bit/s", "kbps": "kbit/s", "Mbps": "Mbit/s", "Gbps": "Gbit/s"},
    **{"DPI": "dpi", "Mhz": "MHz", "kph": "km/h"},
    **{
        "㎟": "mm²",
        "㎠": "cm²",
        "㎡": "m²",
        "㎢": "km²",
        "㎣": "mm³",
        "㎤": "cm³",
        "㎥": "m³",
        "㎦": "km³",
    },
}
"""Maps units to how we write them."""
VALUES = 1, 2, 5, 11, 100, 1.5
"""Numbers whose units differ in some language."""
NUMBER_BEFORE = re.compile(r"[\d.,\u066b]+[\s\u200e\u200f]*")
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
    return SAME_UNITS.get(unit, unit)


@cache
def spellings(unit: str) -> list[str]:
    """The spellings of an international unit, given by the form that they share."""
    return [unit, *(other for other, shared in SAME_UNITS.items() if shared == unit)]


@cache
def forms_of_unit(unit: str, script_name: str) -> list[str]:
    """How the languages of a script write a unit, given by the form that all its spellings share.

    Languages that write it with Latin letters are left out.
    """
    per, slash, other = unit.partition("/")
    if slash and unit not in CLDR_NAMES:
        firsts = [*forms_of_unit(per, script_name), per]
        seconds = [*forms_of_unit(other, script_name), other]
        forms = [f"{first}/{second}" for first in firsts for second in seconds]
    else:
        forms = list[str]()
        for code in languages_in(script_name):
            forms += forms_of_language(unit, code)
        forms += FURTHER_FORMS.get(unit, "").split(", ")
    in_script = (form for form in forms if any(script(sign) == script_name for sign in form))
    return [*dict.fromkeys(in_script)]


def languages_in(script_name: str) -> list[str]:
    """The codes of a script's languages, as far as CLDR has data about them."""
    from babel import localedata  # takes 30 ms, which few lines need

    codes = [code for names, codes in SCRIPTS.items() if script_name in names for code in codes]
    if "zh" in codes:
        codes.append("zh_Hant")
    return [code for code in codes if localedata.exists(code)]


def forms_of_language(unit: str, code: str) -> Iterator[str]:
    """How a language writes a unit after numbers, in full and abbreviated."""
    from babel.units import UnknownUnitError, format_unit

    name = CLDR_NAMES.get(unit)
    if name is None:
        return
    for length in ("short", "long"):
        for value in VALUES:
            try:
                text = format_unit(value, name, length=length, locale=code)
            except UnknownUnitError:
                return
            if number := NUMBER_BEFORE.match(text):
                yield text[number.end() :]


def pattern_of_form(form: str) -> str:
    """A pattern for a form of a unit, with or without its signs of abbreviation."""
    return "".join(VARIANTS.get(sign) or re.escape(sign) for sign in form)
