"""Readings above words (ruby), which a translation lacks: they show how to pronounce the source."""

import re

READINGS = frozenset(["rt", "rp"])
"""The elements of readings, and of the parentheses around them."""
BASES = frozenset(["ruby", "rb"])
"""The elements around the words with readings."""
RUBY = BASES | READINGS | {"rtc"}
READING = re.compile(r"<rt[\s/>]", re.IGNORECASE)
RUBY_MARKUP = re.compile(
    r"</?(?:ruby|rb)\b[^<>]*>|<(rtc?|rp)\b[^<>]*>.*?</\1\s*>",
    re.IGNORECASE | re.DOTALL,
)
"""The tags of bases, and whole readings."""
# The closing tags of readings are optional. These tags imply them.
ENDED_BY_OPENING = READINGS | {"rb", "rtc"}
ENDED_BY_CLOSING = frozenset(["ruby", "rtc"])
READINGS_LEFT_OUT = "readings (ruby) left out"


def lost_readings(before: str, after: str) -> int:
    """The number of readings in a file that its translation lacks."""
    return len(READING.findall(before)) - len(READING.findall(after))
