"""Durations, such as 15m, as the key `trainer.max_time` accepts them."""

import re

from nmt.config.values import shown
from nmt.errors import SettingError

WITH_UNITS = re.compile(
    "(?:([0-9]{1,6})d)?"  # days
    "(?:([0-9]{1,6})h)?"
    "(?:([0-9]{1,6})m)?"
    "(?:([0-9]{1,6})s)?"
)
"""A duration, such as 15m or 1d12h."""
WITH_COLONS = re.compile("([0-9]{1,6}):([0-9]{1,6}):([0-9]{1,6}):([0-9]{1,6})")
"""DD:HH:MM:SS, as in Lightning."""


def parse_duration(key: str, value: str) -> int:
    """The seconds of a duration, such as 15m, 2h, 1d12h or DD:HH:MM:SS.

    NMTError for anything else, and for 0 seconds.
    """
    form = WITH_COLONS if ":" in value else WITH_UNITS
    match = form.fullmatch(value)
    total = 0
    if match:
        days, hours, minutes, seconds = (int(number or 0) for number in match.groups())
        total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    # The pattern also matches an empty string.
    if total == 0:
        raise SettingError(
            "must be a duration, such as 15m, 2h, 1d12h, or '00:02:30:00' for 2.5 hours",
            key=key,
            value=shown(value),
        )
    return total


def lightning_duration(total: int) -> str:
    """Seconds as DD:HH:MM:SS."""
    minutes, seconds = divmod(total, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"{days:02}:{hours:02}:{minutes:02}:{seconds:02}"
