"""SubStation Alpha: the text of the dialogue in files of version 4 and 4+ (.ssa, .ass).

Sources: the specification of ASS (http://www.tcax.org/docs/ass-specs.htm) and
https://aegisub.org/docs/latest/ass_tags.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nmt.config import NMTError
from nmt.plugins.documents.cues import Cue, Notation, listed, notice_of_limits
from nmt.plugins.documents.dialogs import line_mark
from nmt.plugins.documents.document import Part
from nmt.plugins.documents.override_blocks import override_insets
from nmt.plugins.documents.string_reader import Kind
from nmt.plugins.documents.subtitle_layout import Markup
from nmt.plugins.documents.subtitle_options import SubtitleText
from nmt.translation import Translated

LINE = re.compile(r"([^\r\n]*)(?:\r\n?|\n|\Z)")
SECTION = re.compile(r"\s*\[([^\]\r\n]{1,60})\]\s*", re.ASCII)
EVENTS = "events"
EVENT_KINDS = ("Comment", "Command", "Movie", "Picture", "Sound")
"""Events without text to translate."""
REMARKS = (";", "!:")
FIELDS = (
    "layer",
    "start",
    "end",
    "style",
    "name",
    "marginl",
    "marginr",
    "marginv",
    "effect",
    "text",
)
"""The fields of an event if no line declares them."""
GENERATED = "fx"
"""The effect of lines that Aegisub generates from comments, such as one for each syllable."""
TIME = re.compile(r"\s*(\d{1,4}):(\d{1,2}):(\d{1,2}(?:\.\d{1,3})?)\s*", re.ASCII)
PARENTHESES = str.maketrans("{}", "()")
"""Braces of a translation would hide the text inside."""
# The reader sees override blocks as masks, and they end sentences at dashes. A mark may follow the
# letter of a line break; behind any other letter, the reader rejects it.
EVENT_MARKUP = re.compile(
    "|".join(
        [
            r"(?P<line>\\[Nn])",
            line_mark("Nn"),
            r"(?P<hard_space>(?:\\h)+)",
        ]
    )
)
NOTATION = Notation(
    Kind(
        markup=EVENT_MARKUP,
        write=lambda text: text.translate(PARENTHESES),
        is_html=False,
        drops_lines=True,
    ),
    Markup(unseen=r"\{[^{}]*+\}", line_break=r"\\[Nn][ \t]*+"),
    timing=re.compile(r"\{(?=[^{}]*\\[kK][fot]?[\d\\}])(?![^{}]*\\p\d)[^{}]*+\}"),
    fixed=re.compile(r"\\(?:pos|move|org|clip|p[1-9])"),
    insets=override_insets,
)


@dataclass(frozen=True)
class Event:
    """A line of dialogue."""

    number: int
    begin: int
    end: int
    """The span of its text."""
    effect: str
    seconds: float


class SubStation(SubtitleText):
    """The texts of the lines that begin with `Dialogue:`."""

    def parts(self, text: str, target: str) -> list[Part]:
        parts = list[Part]()
        generated = list[int]()
        damaged = list[int]()
        for event in events_of(text, damaged):
            span = (event.begin, event.end)
            cue = Cue(text, span, NOTATION, self.options, event.number, event.seconds)
            if cue.lines and event.effect == GENERATED:
                generated.append(event.number)
            elif cue.lines:
                parts.append(cue)
        notices = list[str]()
        if generated:
            numbers = listed(generated, "number")
            notices.append(f"generated effects (fx) left unchanged: {numbers}")
        if damaged:
            lines = listed(damaged, "line")
            notices.append(f"lines that are not valid as events left unchanged: {lines}")
        self.left = "; ".join(notices)
        self.notice = self.left
        return parts

    def join(self, translations: Sequence[Translated]) -> bytes:
        content = super().join(translations)
        notices = [self.left, notice_of_limits(self.text.parts, self.options)]
        self.notice = "; ".join(filter(None, notices))
        return content


def events_of(text: str, damaged: list[int]) -> Iterator[Event]:
    """The lines of dialogue of a file; raise NMTError if it has no section for them.

    The numbers of lines that look like dialogue, but are none, are added to `damaged`.
    """
    section = ""
    fields = list(FIELDS)
    number = 0
    has_events = False
    for place, line in enumerate(LINE.finditer(text), start=1):
        heading = SECTION.fullmatch(line[1])
        if heading:
            section = heading[1].strip().lower()
            has_events = has_events or section == EVENTS
            continue
        if section != EVENTS:
            continue
        kind, _, values = line[1].partition(":")
        kind = kind.strip()
        if kind == "Format":
            fields = [name.strip().lower() for name in values.split(",")]
        elif kind == "Dialogue":
            number += 1
            event = event_of(line, values, fields, number)
            if event:
                yield event
            else:
                damaged.append(place)
        elif is_damaged(kind, line[1]):
            damaged.append(place)
    if not has_events:
        raise NMTError("not SubStation Alpha: it has no line [Events]")


def is_damaged(kind: str, line: str) -> bool:
    """Whether a line has text that no player shows, such as the rest of a broken line."""
    is_other = kind in EVENT_KINDS or line.lstrip().startswith(REMARKS)
    return not is_other and any(map(str.isalpha, line))


def event_of(line: re.Match[str], values: str, fields: list[str], number: int) -> Event | None:
    """The event of a line with these values; None if it lacks a text."""
    if "text" not in fields:
        return None
    place = fields.index("text")
    # Only the last field may contain commas.
    pieces = values.split(",", len(fields) - 1)
    if place >= len(pieces):
        return None
    begin = line.end(1) - len(values) + sum(len(piece) + 1 for piece in pieces[:place])
    named = dict(zip(fields, pieces, strict=False))
    times = (TIME.fullmatch(named.get("start", "")), TIME.fullmatch(named.get("end", "")))
    effect = named.get("effect", "").strip().lower()
    return Event(number, begin, begin + len(pieces[place]), effect, duration(*times))


def duration(start: re.Match[str] | None, end: re.Match[str] | None) -> float:
    """The seconds between two times; 0 if one of them is damaged."""
    if not start or not end:
        return 0
    return max(seconds_of(end) - seconds_of(start), 0)


def seconds_of(time: re.Match[str]) -> float:
    return 3600 * int(time[1]) + 60 * int(time[2]) + float(time[3])
