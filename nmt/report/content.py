"""All that a page tells, and the words for it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from nmt.report.markup import Markup, tag
from nmt.report.quality import Quality
from nmt.report.run import Facts, Run
from nmt.report.scales import compact, number


@dataclass
class Content:
    """All that a page tells."""

    run: Run
    facts: Facts | None
    """Of the model directory, or of the last checkpoint."""
    parameters: int | None
    defaults: dict[str, Any]
    """The configuration that `nmt train` has without options."""
    quality: Quality | None
    translated: str
    """Which lines were translated, with which model and search; or why none were."""
    now: datetime


def duration(seconds: float) -> str:
    """42 s, 12 min, 3 h 05 min, 2 d 04 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours < 48 else f"{hours // 24} d {hours % 24:02} h"


def in_words(value: Any) -> str:
    """A configuration's value as one would type it."""
    if isinstance(value, list):
        return f"[{', '.join(map(in_words, value))}]"
    if value is None or isinstance(value, bool):
        return str({None: "null", True: "true", False: "false"}[value])
    return str(value)


def in_short(count: int) -> str:
    """12,345 or 1.896 M."""
    return f"{count:,}" if count < 100_000 else compact(count) if count < 1_000_000 else f"{number(count / 1e6)} M"


def signature(text: str) -> Markup:
    """A score's signature, which may be broken behind each bar."""
    *fields, end = text.split("|")
    return tag("code", *(part for field in fields for part in (f"{field}|", tag("wbr"))), end)
