"""Subtitles of any format: their text, the times of their syllables, and the limits of lines."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from nmt.plugins.documents.document import Part, Spliced
from nmt.plugins.documents.string_reader import Inset, Kind, Reader
from nmt.plugins.documents.subtitle_layout import (
    Flat,
    Layout,
    Markup,
    column_width,
    rewrapped,
    shown_lines,
)
from nmt.plugins.documents.subtitle_options import NO_LIMITS, SubtitlesConfig
from nmt.translation import Translated

NAMED = 5
"""The maximum number of lines or subtitles that a notice lists."""
BESIDE = 200
"""The number of characters beside a sentence in which the rest of its lines is searched."""


@dataclass(frozen=True)
class Notation:
    """How a format writes a subtitle."""

    kind: Kind
    markup: Markup
    timing: re.Pattern[str] | None = None
    """Matches the time of a word or syllable, which must stay in order."""
    fixed: re.Pattern[str] | None = None
    """Matches in a subtitle whose line breaks belong to its layout."""
    insets: Callable[[str], Sequence[Inset]] | None = None
    """Finds the markup that a pattern cannot find."""


class Wrapped(Part):
    """A sentence of a subtitle, whose translation is wrapped again."""

    def __init__(self, part: Part, text: str, markup: Markup, limit: int) -> None:
        super().__init__(part.begin, part.end, part.lines)
        self.part = part
        self.source = text[part.begin : part.end]
        self.markup = markup
        self.limit = limit
        # What is on the same lines, such as a dash.
        beside = slice(max(part.begin - BESIDE, 0), part.begin)
        before = shown_lines(text[beside] + "x", markup)[-1]
        after = shown_lines("x" + text[part.end : part.end + BESIDE], markup)[0]
        self.edges = (column_width(before) - 1, column_width(after) - 1)

    def render(self, translations: Sequence[Translated]) -> str:
        written = self.part.render(translations)
        if written == self.source:
            return written
        return rewrapped(written, self.source, self.markup, self.limit, self.edges)


class Subtitle(Part):
    """What a player shows at a time."""

    number: int
    seconds: float
    """How long a player shows it; 0: unknown."""
    markup: Markup
    written: str
    """Its text in the file, which is that of the translation after `render`."""

    @property
    def shown(self) -> list[str]:
        """The lines that a player shows."""
        return shown_lines(self.written, self.markup)


class Cue(Subtitle):
    """A subtitle at a span of a file."""

    def __init__(
        self,
        text: str,
        span: tuple[int, int],
        notation: Notation,
        limits: SubtitlesConfig = NO_LIMITS,
        number: int = 0,
        seconds: float = 0,
    ) -> None:
        self.notation = notation
        self.markup = notation.markup
        self.number = number
        self.seconds = seconds
        self.source = text[slice(*span)]
        self.written = self.source
        # The model must read whole words, even if each syllable has a time.
        timing = notation.timing
        self.bare = timing.sub("", self.source) if timing else self.source
        insets = notation.insets(self.bare) if notation.insets else ()
        parts = Reader(self.bare, 0, notation.kind, insets).parts
        is_timed = self.bare != self.source
        is_fixed = notation.fixed is not None and notation.fixed.search(self.bare)
        if limits.max_line and not is_timed and not is_fixed:
            markup = notation.markup
            parts = [Wrapped(part, self.bare, markup, limits.max_line) for part in parts]
        self.inner = Spliced(self.bare, parts)
        super().__init__(*span, self.inner.lines)

    def render(self, translations: Sequence[Translated]) -> str:
        written = self.inner.render(translations)
        if written == self.bare:
            written = self.source
        elif self.bare != self.source:
            written = self.with_times(written)
        self.written = written
        return written

    def with_times(self, written: str) -> str:
        """A translation with the times of the source, in order, at the beginnings of its words."""
        flat = Flat(written, self.markup, keeps_breaks=True)
        layout = Layout(flat)
        if not layout.begins:
            return self.source
        places = [0, *layout.gaps]
        columns = [layout.begins[token] for token in places]
        pieces = list[str]()
        at = 0
        for share, tag in self.times():
            # The word that begins nearest to the same share of the text.
            word = bisect_right(columns, share * layout.last)
            if word == len(columns) or closer(columns, word - 1, share * layout.last):
                word -= 1
            offset = layout.offset_of(places[max(word, 0)])
            pieces += [flat.text[at:offset], tag]
            at = offset
        return "".join([*pieces, flat.text[at:]])

    def times(self) -> list[tuple[float, str]]:
        """The times of syllables, and how much of the text precedes each, from 0 to 1."""
        timing = self.notation.timing
        assert timing
        times = list[tuple[int, str]]()
        column = 0
        at = 0
        for match in timing.finditer(self.source):
            column += self.columns(self.source[at : match.start()])
            times.append((column, match[0]))
            at = match.end()
        column += self.columns(self.source[at:])
        return [(before / max(column, 1), tag) for before, tag in times]

    def columns(self, text: str) -> int:
        return column_width(self.markup.pattern.sub("", text))


def closer(columns: Sequence[int], index: int, column: float) -> bool:
    """Whether a column of a list is nearer to a column than the next one of the list."""
    return column - columns[index] <= columns[index + 1] - column


def notice_of_limits(parts: Iterable[Part], limits: SubtitlesConfig) -> str:
    """A notice about subtitles that exceed the limits in a translation."""
    wide = list[int]()
    fast = list[int]()
    for cue in parts:
        if not isinstance(cue, Subtitle):
            continue
        widths = [column_width(line) for line in cue.shown]
        if limits.max_line and max(widths, default=0) > limits.max_line:
            wide.append(cue.number)
        size = sum(map(len, cue.shown))
        if limits.max_cps and cue.seconds and size / cue.seconds > limits.max_cps:
            fast.append(cue.number)
    notices = list[str]()
    if wide:
        notices.append(f"subtitles wider than max_line={limits.max_line}: {listed(wide, 'number')}")
    if fast:
        notices.append(
            f"subtitles faster than max_cps={limits.max_cps:g}: {listed(fast, 'number')}"
        )
    return "; ".join(notices)


def listed(numbers: Sequence[int], what: str) -> str:
    """How many lines or subtitles there are, and the numbers of the first ones."""
    names = ", ".join(map(str, numbers[:NAMED]))
    if len(numbers) > NAMED:
        names += ", ..."
    return f"{len(numbers):,} ({what} {names})"
