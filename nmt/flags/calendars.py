"""Years of other calendars, such as 令和6年 and 2567 in Thai, as Gregorian years."""

from collections.abc import Iterable

import regex

# The difference from a year to the Gregorian year: 2567 in Thailand is 2024.
THAI = (-543,)
VIKRAM = (-57, -56)
SHAKA = (78, 79)
SOLAR_HIJRI = (621, 622)
TWO_DIGITS_OF_THAI = (2500 - 543,)
ERAS = {
    # Japan
    "令和": (2018,),
    "平成": (1988,),
    "昭和": (1925,),
    "大正": (1911,),
    "明治": (1867,),
    "㋿": (2018,),
    "㍻": (1988,),
    "㍼": (1925,),
    "㍽": (1911,),
    "㍾": (1867,),
    # Taiwan and Korea
    "民國": (1911,),
    "民国": (1911,),
    "단기": (-2333,),
    "檀紀": (-2333,),
    # The Buddhist era
    "佛曆": THAI,
    "佛历": THAI,
    "พ.ศ.": THAI,
    "พ. ศ.": THAI,
    "พุทธศักราช": THAI,
    # Nepal and India
    "वि.सं.": VIKRAM,
    "वि. सं.": VIKRAM,
    "विक्रम संवत": VIKRAM,
    "विक्रम संवत्": VIKRAM,
    "शक संवत": SHAKA,
    "शक संवत्": SHAKA,
    # After the abbreviation of a month, two digits are the last ones of a Thai year.
    "ม.ค.": TWO_DIGITS_OF_THAI,
    "ก.พ.": TWO_DIGITS_OF_THAI,
    "มี.ค.": TWO_DIGITS_OF_THAI,
    "เม.ย.": TWO_DIGITS_OF_THAI,
    "พ.ค.": TWO_DIGITS_OF_THAI,
    "มิ.ย.": TWO_DIGITS_OF_THAI,
    "ก.ค.": TWO_DIGITS_OF_THAI,
    "ส.ค.": TWO_DIGITS_OF_THAI,
    "ก.ย.": TWO_DIGITS_OF_THAI,
    "ต.ค.": TWO_DIGITS_OF_THAI,
    "พ.ย.": TWO_DIGITS_OF_THAI,
    "ธ.ค.": TWO_DIGITS_OF_THAI,
}
"""Maps what is before a year to what must be added to the year. A year that begins in spring
overlaps two Gregorian years."""
FIRST_YEAR = "元"
"""The first year of an era in Chinese and Japanese."""
USUAL = (
    (regex.compile(r"\p{Thai}"), range(2400, 2600), THAI),
    # Letters and digits of Persian that Arabic lacks.
    (regex.compile("[پچژگکی۰-۹]"), range(1200, 1500), SOLAR_HIJRI),
)
"""Scripts or letters of languages whose usual years are those of another calendar."""


def shifted(years: Iterable[str], shifts: Iterable[int]) -> set[str]:
    """Years plus each shift; decimals and numbers of more than four digits are not years."""
    results = set()
    for year in years:
        if year.isdigit() and len(year) <= 4:
            for shift in shifts:
                results.add(str(int(year) + shift))
    return results


def usual_years(values: Iterable[str], text: str) -> set[str]:
    """The Gregorian years for those values that are years in the usual calendar of a text."""
    years = set[str]()
    # A shorter number is hardly ever a year.
    numbers = [value for value in values if value.isdigit() and len(value) == 4]
    for letter, of_calendar, shifts in USUAL:
        if letter.search(text):
            # Only years of recent centuries: other numbers
            # of four digits are counts or Gregorian years.
            usual = [value for value in numbers if int(value) in of_calendar]
            years |= shifted(usual, shifts)
    return years
