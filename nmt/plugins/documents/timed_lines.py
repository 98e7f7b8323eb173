"""Subtitles and lyrics in simple formats: MicroDVD, SubViewer, YouTube's captions, and LRC.

Sources: https://en.wikipedia.org/wiki/MicroDVD, https://en.wikipedia.org/wiki/SubViewer and
https://en.wikipedia.org/wiki/LRC_(file_format).
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nmt.config import NMTError
from nmt.plugins.documents.cues import Cue, Notation, notice_of_limits
from nmt.plugins.documents.dialogs import BEGINS_TURN, SIGNS, SPEAKER, line_mark
from nmt.plugins.documents.document import Part
from nmt.plugins.documents.string_markup import DASH, STYLE_OVERRIDE
from nmt.plugins.documents.string_reader import Kind
from nmt.plugins.documents.subtitle_layout import Markup
from nmt.plugins.documents.subtitle_options import SubtitleText
from nmt.plugins.documents.subtitles import IN_SUBRIP
from nmt.translation import Translated

CLOCK = r"\d{1,3}:\d\d:\d\d[.:]\d{1,3}"
CLOCKS = re.compile(
    rf"^[ \t]*({CLOCK})[ \t]*,[ \t]*({CLOCK})[ \t]*(?:\r?\n|\Z)", re.MULTILINE | re.ASCII
)
"""The line of times before the text of a subtitle of YouTube or of SubViewer."""
FRAMES = re.compile(r"^\{(\d{1,9})\}\{(\d{0,9})\}", re.MULTILINE | re.ASCII)
"""The first and the last frame of a subtitle of MicroDVD, which is one line."""
RATE = re.compile(r"\d{1,3}(?:[.,]\d{1,4})?", re.ASCII)
"""The text of the first subtitle of MicroDVD, if it declares the frames per second."""
LYRICS = re.compile(r"^(?:[ \t]*\[\d{1,3}:\d\d(?:[.:]\d{1,3})?\])+", re.MULTILINE | re.ASCII)
"""The times at which a line of a song begins."""
LINE = re.compile(r"[^\r\n]*")
CODES = r"(?:\{[a-zA-Z]:[^{}|]{0,99}\}|/(?=\S))*+"
"""Formatting at the beginning of a line of MicroDVD; a slash is for italic text."""
BEGINS_DIALOG = rf"{CODES}[ \t]*{SIGNS}"
FRAME_MARKUP = re.compile(
    rf"(?P<line>\|{CODES})(?P<paragraph>(?={BEGINS_DIALOG}|\|))?"
    rf"|{line_mark('|}/')}"
    r"|\A/(?=\S)|\{[a-zA-Z]:[^{}|]{0,99}\}"
)
IN_FRAMES = Notation(
    Kind(markup=FRAME_MARKUP, is_html=False, drops_lines=True),
    Markup(unseen=r"\{[a-zA-Z]:[^{}|]{0,99}\}", line_break=rf"\|{CODES}"),
)
MARKED_BEHIND = r"\n\r\]>}"
CAPTION_MARKUP = re.compile(
    rf"(?P<line>\[br ?/?\]|\r\n?|\n)(?P<paragraph>(?={BEGINS_TURN}|\[br))?"
    rf"|{line_mark(MARKED_BEHIND)}|(?P<speaker>{SPEAKER})"
    rf"|</?(?P<name>[a-zA-Z]\w*)[^<>]*+>|{STYLE_OVERRIDE}"
)
IN_CAPTIONS = Notation(
    Kind(markup=CAPTION_MARKUP, is_html=False, drops_lines=True),
    Markup(unseen=IN_SUBRIP.markup.unseen, line_break=r"(?:\r\n?|\n|\[br ?/?\])[ \t]*+"),
)
IN_LYRICS = Notation(
    Kind(markup=re.compile(DASH), is_html=False),
    Markup(unseen=r"<\d{1,3}:\d\d[.:]\d{1,3}>", line_break=r"\r\n?|\n"),
    timing=re.compile(r"<\d{1,3}:\d\d[.:]\d{1,3}>"),
)


class Place(NamedTuple):
    """The text of a subtitle, and how many seconds a player shows it; 0: unknown."""

    begin: int
    end: int
    seconds: float = 0


class Timed(SubtitleText):
    """A file whose subtitles begin with times."""

    notation = IN_CAPTIONS
    times = CLOCKS
    name = "a file with subtitles"

    def places(self, text: str) -> Iterator[Place]:
        """The texts: each is between its times and the next ones."""
        clocks = [*self.times.finditer(text)]
        ends = [match.start() for match in clocks[1:]]
        for match, end in zip(clocks, [*ends, len(text)], strict=True):
            yield Place(match.end(), end, seconds(match[2]) - seconds(match[1]))

    def parts(self, text: str, target: str) -> Sequence[Part]:
        if not self.times.search(text):
            raise NMTError(f"not {self.name}: no line has times; convert it to SRT")
        parts = list[Part]()
        for number, place in enumerate(self.places(text), start=1):
            span = (place.begin, place.end)
            cue = Cue(text, span, self.notation, self.options, number, place.seconds)
            if cue.lines:
                parts.append(cue)
        return parts

    def join(self, translations: Sequence[Translated]) -> bytes:
        content = super().join(translations)
        self.notice = notice_of_limits(self.text.parts, self.options)
        return content


class Captions(Timed):
    """The captions of YouTube (SBV)."""

    name = "a file with YouTube's captions (SBV)"


class Lyrics(Timed):
    """The lines of a song; [ar:NAME] and other facts stay."""

    notation = IN_LYRICS
    times = LYRICS
    name = "a file with lyrics (LRC)"

    def places(self, text: str) -> Iterator[Place]:
        for match in self.times.finditer(text):
            line = LINE.match(text, match.end())
            assert line
            yield Place(*line.span())


class Frames(Lyrics):
    """The subtitles of MicroDVD or of SubViewer, which have the same suffix."""

    notation = IN_FRAMES
    times = FRAMES
    name = "a file of MicroDVD or SubViewer"

    def parts(self, text: str, target: str) -> Sequence[Part]:
        if CLOCKS.search(text):
            self.notation = IN_CAPTIONS
            self.times = CLOCKS
        return super().parts(text, target)

    def places(self, text: str) -> Iterator[Place]:
        if self.times is CLOCKS:
            yield from Timed.places(self, text)
            return
        rate = 0.0
        for place, frames in zip(super().places(text), self.times.finditer(text), strict=True):
            declared = RATE.fullmatch(text[place.begin : place.end].strip())
            if declared and not rate:
                rate = float(declared[0].replace(",", "."))
            shown = int(frames[2] or frames[1]) - int(frames[1])
            yield place._replace(seconds=shown / rate if rate else 0)


def seconds(clock: str) -> float:
    hours, minutes, rest = clock.split(":", 2)
    return 3600 * int(hours) + 60 * int(minutes) + float(rest.replace(":", "."))
