"""Patterns that find items in translations, with other digits, widths and neighbors."""

import re

from nmt.items.measures import MEASURE, MONEY, UNCONTINUED, same_digit
from nmt.items.patterns import PLACEHOLDER, URL
from nmt.items.times import pattern_of_time
from nmt.text import LATIN, folded, single_blanks

PART_OF = r"A-Za-z\d_/@\\"
"""If one of these adjoins a letter, digit or underscore at an item's edge, the item is a part."""
NUMERIC = re.compile(r"[\d.:/-]+")
"""Times, dates and versions, which other scripts may write with their own digits."""
NARROW_MARKS = {
    "\uff0e": ".",
    "\uff0c": ",",
    "\uff1a": ":",
    "\uff0d": "-",
}
"""The ASCII forms of full-width marks."""
FULL_WIDTH = re.compile("[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]")
WIDE_DIGIT = "[\uff10-\uff19]"
FULL_WIDTH_MARK = re.compile(
    f"(?<={WIDE_DIGIT})[\uff0e\uff0c\uff1a](?={WIDE_DIGIT})|\uff0d(?={WIDE_DIGIT})"  # minus
)
"""Full-width marks of numbers; elsewhere, they are punctuation."""
ENDING_OF_FILES = re.compile(r"\.\w+")
JOINED_DIRECTIVE = r"(?![A-Za-z\d_-]{0,60}%)"
"""A lookahead after %d where words need no blanks: %dKB is %d and KB, but not %name%."""
Span = tuple[int, int]


def pattern_of(text: str) -> str:
    """A pattern for an item that is not a measurement.

    Times, dates and versions may have the digits of any script.
    """
    time = pattern_of_time(text)
    if time:
        return time
    if NUMERIC.fullmatch(text):
        return "".join(map(pattern_of_sign, text))
    return re.escape(text)


def pattern_of_sign(sign: str) -> str:
    return same_digit(sign) if sign.isdecimal() else re.escape(sign)


def with_narrow_numbers(text: str) -> str:
    """The text with ASCII forms of full-width numbers and letters, such as \uff0d\uff11."""
    if text.isascii() or not FULL_WIDTH.search(text):
        return text
    return folded(FULL_WIDTH_MARK.sub(lambda mark: NARROW_MARKS[mark[0]], text))


def edge(text: str, character: str, neighbor: str) -> str:
    """The characters that an item may not adjoin at an edge with this character.

    The result is part of a character class. `neighbor` is what it adjoins in the source, or empty.
    """
    if not re.match(r"[A-Za-z\d_]", character):
        return re.escape(character)
    if neighbor.isalpha() and PLACEHOLDER.fullmatch(text):
        # Where other letters adjoin it, Latin ones may in the translation: %1ファイル, %1file.
        return r"\d"
    if ENDING_OF_FILES.fullmatch(text):
        return PART_OF.replace("/", "")  # as in .odt/.ods
    return PART_OF


def edges(line: str, stretch: Span) -> tuple[str, str]:
    """Lookarounds that reject an item inside something longer.

    They are empty on a side where the item is inside something longer in the source.
    """
    start, end = stretch
    text = single_blanks(line[start:end])
    left_neighbor = line[start - 1 : start]
    right_neighbor = line[end : end + 1]
    before = f"(?<![{edge(text, line[start], left_neighbor)}])"
    after = f"(?!\\.?[{edge(text, line[end - 1], right_neighbor)}])"
    if text.endswith(")"):
        after = ""  # the text may enclose it in parentheses
    if text.startswith("--") or URL.fullmatch(text):
        # https://a.org/api does not match in https://a.org/api-Server.
        after += rf"(?!-[{LATIN}\d_])"
    begins = re.compile(before).match(line, start)
    ends = re.compile(after).match(line, end)
    return before if begins else "", after if ends else ""


def is_measure(line: str, stretch: Span) -> bool:
    """Whether an item is a measurement that is not part of something longer."""
    start, end = stretch
    match = MEASURE.match(line, start) or MONEY.match(line, start)
    if match is None or match.end() != end:
        return False
    return bool(UNCONTINUED.match(line, end))
