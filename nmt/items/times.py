# ruff: noqa: RUF001 - letters of other scripts look like Latin ones
"""Times of day, such as 12:30, in the forms that languages write them."""

import re

from nmt.items.measures import ascii_digits, same_digit

TIME = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?")
BLANK = r"[ \u00a0\u202f]?"
HOUR = "(?:[時时点點시]|час(?:а|ов)?|ч\\.?|годин[аиу]?|год\\.?)"
"""The word after an hour in Japanese, Chinese, Korean, Russian and Ukrainian."""
HALF = "[半반]"
MINUTE = "(?:[分분]|минут[аы]?|мин\\.?|хвилин[аиу]?|хв\\.?)"
SECOND = "[秒초]"
COLON = "[:.\uff1ahH]"
"""The separator of hours and minutes; 12.30 and 12h30 are times, too."""
NUMBERS = re.compile(r"\d+")


def same_number(digits: str) -> str:
    """A pattern for a number of one or two digits in any script, with or without a leading zero."""
    pattern = "".join(map(same_digit, digits.lstrip("0") or "0"))
    if int(digits) < 10:
        return f"{same_digit('0')}?{pattern}"
    return pattern


def pattern_of_time(text: str) -> str | None:
    """A pattern for the forms of a time; None for text that is not a time.

    Only numbers of whole hours may lack their minutes.
    """
    time = TIME.fullmatch(text)
    if not time:
        return None
    hour, minute, second = time.groups()
    digits = "".join(map(same_digit, minute))
    international = f"{same_number(hour)}{BLANK}{COLON}{BLANK}{digits}"
    in_words = f"{same_number(hour)}{BLANK}{HOUR}"
    minutes = f"{BLANK}{same_number(minute)}{BLANK}{MINUTE}"
    if second:
        international += f"{COLON}{''.join(map(same_digit, second))}"
        in_words += f"{minutes}{BLANK}{same_number(second)}{BLANK}{SECOND}"
    elif minute == "30":
        in_words += f"(?:{minutes}|{BLANK}{HALF})"
    elif minute == "00":
        in_words += rf"(?:{minutes}|(?<=[時时点點시])(?!{BLANK}(?:\d|{HALF})))"
    else:
        in_words += minutes
    return rf"(?<!\d[.:])(?:{international}|{in_words})"


def standard_time(text: str) -> str:
    """The form that all forms of a time share; for other text, its numbers."""
    digits = NUMBERS.findall(ascii_digits(text))
    numbers = [str(int(number)) for number in digits]
    if len(numbers) == 1:  # a whole or a half hour
        numbers.append("30" if re.search(HALF, text) else "0")
    return ":".join(numbers)
