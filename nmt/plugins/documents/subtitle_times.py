"""Lines with the times of a subtitle, including times damaged by people or optical readers."""

import re

from nmt.plugins.documents.string_markup import COMMENT

ARROW = "-->"
COMMENTS = re.compile(COMMENT)
FORMATTING = re.compile(r"</?[a-zA-Z][^<>]{0,99}>|\{\\[^{}]{0,99}\}")

# Valid times. Players are lenient about their form.
TIME = r"-?\d{1,4}(?:[ \t]*[:.,][ \t]*\d{1,4}){1,4}"
ARROWS = r"[ \t]*(?:-+|[\u2013\u2014])>[ \t]*"
SETTING = r"[A-Za-z][\w-]*[:=][^\s<>]*"
"""A coordinate of SubRip, such as X1:40, or a setting of WebVTT, such as align:start."""
TIMES = re.compile(rf"[ \t\ufeff]*{TIME}{ARROWS}{TIME}(?:[ \t]+{SETTING})*[ \t]*")

CLOCKS = re.compile(rf"({TIME}){ARROWS}({TIME})")
DIGITS = re.compile(r"\d+")

# Damaged times. People and optical readers confuse digits with letters, and break arrows.
NUMBER = r"[-\u2212]?[\dOolI]{1,7}"
COLON = r"[ \t]{0,3}[:;\uff1a][ \t]{0,3}"
POINT = r"[ \t]{0,3}[:;.,\uff1a\uff0c\uff0e][ \t]{0,3}"
HAS_DIGITS = r"(?=[^\r\n]*\d)"
MINUTES = rf"{NUMBER}{COLON}{NUMBER}"
CLOCK = rf"{MINUTES}(?:{POINT}{NUMBER}){{0,6}}"
SECONDS = rf"{MINUTES}(?:{POINT}{NUMBER}){{1,6}}"
EXACT = rf"(?:{MINUTES}{COLON}{NUMBER}{POINT}{NUMBER}|{MINUTES}[ \t]?[.,][ \t]?\d{{3}})"
"""A time with its thousandths, which nobody says."""
# An entity may stand for the point of an arrow.
SIGN = r"(?:&(?:\w{2,8}|#\w{2,6});|[^\w\r\n])"
ARROWS_OF_UNICODE = "\u2190-\u21ff\u2794-\u27bf\u27f0-\u27ff\u2900-\u297f"
POINTED = rf"(?:[>\uff1e{ARROWS_OF_UNICODE}]|&gt;|&\w?arr;|&#(?:62|x3[eE]);)"
ARROW_LIKE = rf"{SIGN}{{0,20}}?{POINTED}{SIGN}{{0,20}}"
LEAD = r"[^\w\r\n]{0,8}(?:\d{1,6}[.:)]?[ \t]+)?"
REST = rf"(?:[ \t]+{SETTING}){{0,20}}[^\w\r\n]*"
DAMAGED_TIMES = re.compile(
    rf"{HAS_DIGITS}{LEAD}(?:"
    rf"{CLOCK}{ARROW_LIKE}{CLOCK}{REST}"
    rf"|{SECONDS}{ARROW_LIKE}"  # one of the times is lost
    rf"|{ARROW_LIKE}{SECONDS}{REST}"
    rf"|{SECONDS}{SIGN}{{1,20}}{SECONDS}{REST}"
    rf"|{EXACT}(?:[^\d\r\n]{{1,12}}{EXACT}.*)?{REST}"
    r")"
)
CLOCK_TIMES = re.compile(
    rf"{HAS_DIGITS}{LEAD}(?:"
    rf"{CLOCK}{SIGN}{{1,20}}{CLOCK}"
    rf"|{SECONDS}[^\d\r\n]{{1,12}}{SECONDS}"
    rf"){REST}"
)
"""Damaged times, or times of a day. A subtitle may contain these, but does not begin with them."""


def is_valid(line: str) -> bool:
    return TIMES.fullmatch(line) is not None


def is_timing(line: str, begins_subtitle: bool) -> bool:
    """Whether a line has times, valid or damaged. Text may not contain an arrow."""
    # Usual, and worth the speed.
    if not any(map(str.isdigit, line)) and ARROW not in line:
        return False
    # WebVTT allows "-->" only in times, but it also ends a comment of HTML.
    if ARROW in line and ARROW in COMMENTS.sub("", line):
        return True
    if is_valid(line):
        return True
    # Programs may put formatting around times that they did not recognize.
    text = FORMATTING.sub("", line)
    if DAMAGED_TIMES.fullmatch(text):
        return True
    return begins_subtitle and CLOCK_TIMES.fullmatch(text) is not None


def duration(line: str) -> float:
    """How many seconds the times of a line last; 0 if they are damaged."""
    clocks = CLOCKS.search(line)
    if not clocks:
        return 0
    return max(seconds(clocks[2]) - seconds(clocks[1]), 0)


def seconds(time: str) -> float:
    """A time with thousandths in seconds, such as 00:00:01,500; 0 for other times."""
    numbers = DIGITS.findall(time)
    if len(numbers) < 3 or len(numbers[-1]) != 3:
        return 0
    *units, thousandths = map(int, numbers)
    total = 0
    for unit in units:
        total = 60 * total + unit
    return total + thousandths / 1000
