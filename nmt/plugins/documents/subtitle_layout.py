"""The lines of a subtitle as they are shown: their widths, and where they may break."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from unicodedata import category, east_asian_width

import regex

from nmt.plugins.documents.words import DIALOG_MARK, NEVER, Tokens
from nmt.text import blank_between

ENDS_PHRASE = regex.compile(r"[\p{Terminal_Punctuation}…—\u2013][\p{Pe}\p{Pf}\"']*$")
WITHOUT_WIDTH = ("Mn", "Me", "Cf")
"""The categories of accents and of invisible characters."""
BESIDE = 20
"""The number of characters beside a line break that decide whether a blank replaces it."""
CLOSING_TAGS = re.compile(r"(?:</[^<>]*+>)*+")
BONUS = 6
"""How many columns a break may move to fall behind punctuation."""
UNLIMITED = 1_000_000_000
MOST_BREAKS = 10
"""The number of line breaks beyond which a text is no subtitle, and keeps its lines."""


@dataclass(frozen=True)
class Markup:
    """What a format writes into its subtitles besides text."""

    unseen: str
    """A pattern for what players do not show, such as tags; it must not backtrack badly."""
    line_break: str
    """A pattern for a line break, with the markup that must directly follow it."""

    @property
    def pattern(self) -> re.Pattern[str]:
        return markup_pattern(self.unseen, self.line_break)


@cache
def markup_pattern(unseen: str, line_break: str) -> re.Pattern[str]:
    return re.compile(rf"(?P<break>{line_break})|(?:{unseen})")


def column_width(text: str) -> int:
    """The number of columns of a text in a monospaced font: wide characters count as 2."""
    if text.isascii():
        return len(text)
    width = 0
    for character in text:
        if category(character) not in WITHOUT_WIDTH:
            width += 2 if east_asian_width(character) in "WF" else 1
    return width


def shown_lines(text: str, markup: Markup) -> list[str]:
    """The lines that a player shows, without empty ones."""
    lines = list[str]()
    pieces = list[str]()
    at = 0
    for match in markup.pattern.finditer(text):
        pieces.append(text[at : match.start()])
        at = match.end()
        if match["break"]:
            lines.append("".join(pieces).strip())
            pieces = []
    pieces.append(text[at:])
    lines.append("".join(pieces).strip())
    return [line for line in lines if line]


class Flat:
    """A text on one line: `plain` is what a player shows, and `offsets` are its places in `text`.

    `text` has the tags and, with `keeps_breaks`, also the line breaks.
    """

    def __init__(self, text: str, markup: Markup, keeps_breaks: bool = False) -> None:
        self.breaks = list[str]()
        self.offsets = list[int]()
        self.pieces = list[str]()
        self.shown = list[str]()
        self.size = 0
        at = 0
        for match in markup.pattern.finditer(text):
            self.add(text[at : match.start()])
            at = match.end()
            if match["break"]:
                self.breaks.append(match[0])
                blank = self.blank_before(text[at : at + BESIDE])
                if keeps_breaks and blank:
                    # The end of the line break stands for the blank.
                    self.offsets.append(self.size + len(match[0]) - 1)
                    self.shown.append(blank)
                elif not keeps_breaks:
                    self.add(blank)
            if not match["break"] or keeps_breaks:
                self.pieces.append(match[0])
                self.size += len(match[0])
        self.add(text[at:])
        self.text = "".join(self.pieces)
        self.plain = "".join(self.shown)

    def add(self, text: str) -> None:
        """Add text that a player shows."""
        if text:
            self.offsets += range(self.size, self.size + len(text))
            self.size += len(text)
            self.pieces.append(text)
            self.shown.append(text)

    def blank_before(self, following: str) -> str:
        """The blank that stands for a line break, if the script has blanks."""
        preceding = "".join(self.shown[-2:])[-BESIDE:]
        if preceding[-1:].isspace() or following[:1].isspace():
            return ""
        return blank_between(preceding, following)


class Layout:
    """The tokens of a text on one line, and the columns at which its lines may break."""

    def __init__(self, flat: Flat, before: int = 0, after: int = 0) -> None:
        """`before` and `after` are the columns beside the text, such as those of a dash."""
        self.flat = flat
        self.tokens = Tokens(flat.plain)
        widths = [column_width(character) for character in flat.plain]
        columns = [*accumulate(widths, initial=before)]
        self.begins = [columns[start] for start in self.tokens.starts]
        self.ends = [columns[end] for end in self.tokens.ends]
        self.last = (self.ends[-1] if self.ends else before) + after
        self.gaps = list[int]()
        for gap in range(1, len(self.begins)):
            if self.tokens.detour(gap) < NEVER and not DIALOG_MARK.match(self.tokens.of(gap)):
                self.gaps.append(gap)

    def widest(self, gaps: Sequence[int]) -> int:
        """The columns of the widest line if lines break at these gaps."""
        edges = [0, *gaps, len(self.begins)]
        return max(self.width(begin, end) for begin, end in pairwise(edges))

    def width(self, begin: int, end: int) -> int:
        """The columns of a line with the tokens from one index to another."""
        left = self.begins[begin] if begin else 0
        right = self.ends[end - 1] if end < len(self.begins) else self.last
        return right - left

    def balanced(self, count: int, limit: int) -> list[int]:
        """The gaps at which to break a text into at most `count` lines of similar widths."""
        gaps = self.spread(count, limit)
        if self.widest(gaps) <= limit:
            return gaps
        # Where breaks between phrases do not leave enough room for the last line.
        filled = self.filled(limit)
        if len(filled) < count and self.widest(filled) <= limit:
            return filled
        return self.spread(count, UNLIMITED)

    def spread(self, count: int, limit: int) -> list[int]:
        """The gaps at which to break a text, one line after the other."""
        gaps = list[int]()
        for line in range(count - 1):
            begin = gaps[-1] if gaps else 0
            share = self.width(begin, len(self.begins)) / (count - line)
            gap = self.best_gap(begin, share, limit)
            if gap is None:
                break
            gaps.append(gap)
        return gaps

    def best_gap(self, begin: int, share: float, limit: int) -> int | None:
        """The best end of a line that begins at a token and should have `share` columns."""
        best: int | None = None
        least = float("inf")
        for index in range(bisect_left(self.gaps, begin + 1), len(self.gaps)):
            gap = self.gaps[index]
            width = self.width(begin, gap)
            if best is not None and (width > limit or width - share > least):
                break
            cost = abs(width - share) + self.tokens.detour(gap)
            if not ENDS_PHRASE.search(self.tokens.of(gap - 1)):
                cost += BONUS
            if cost < least:
                best = gap
                least = cost
        return best

    def filled(self, limit: int) -> list[int]:
        """The gaps at which to break a text whose lines are as full as possible."""
        gaps = list[int]()
        begin = 0
        previous: int | None = None
        for gap in [*self.gaps, len(self.begins)]:
            if previous is not None and self.width(begin, gap) > limit:
                gaps.append(previous)
                begin = previous
            previous = gap
        return gaps

    def lines(self, gaps: Sequence[int]) -> list[str]:
        """The lines of a text without markup if they break at these gaps."""
        edges = [0, *gaps, len(self.begins)]
        lines = list[str]()
        for begin, end in pairwise(edges):
            start = self.tokens.starts[begin]
            lines.append(self.flat.plain[start : self.tokens.ends[end - 1]])
        return lines

    def broken(self, gaps: Sequence[int], breaks: Sequence[str]) -> str:
        """The text with these line breaks before the tokens at these gaps."""
        flat = self.flat
        pieces = list[str]()
        at = 0
        for gap, line_break in zip(gaps, breaks, strict=False):
            end = flat.offsets[self.tokens.ends[gap - 1] - 1] + 1
            start = flat.offsets[self.tokens.starts[gap]]
            left, right = self.sides(gap, end, start)
            pieces += [flat.text[at:end], left, line_break, right]
            at = start
        pieces.append(flat.text[at:])
        return "".join(pieces)

    def offset_of(self, token: int) -> int:
        """Where a token begins in the text with its tags, including those that begin there."""
        flat = self.flat
        start = self.tokens.starts[token]
        if start == 0:
            return flat.offsets[0]
        before = flat.offsets[start - 1] + 1
        closing = CLOSING_TAGS.match(flat.text, before, flat.offsets[start])
        return closing.end() if closing else before

    def sides(self, gap: int, end: int, start: int) -> tuple[str, str]:
        """The tags on both sides of a line break in a gap, which is at this span of the text."""
        flat = self.flat
        before = self.tokens.ends[gap - 1]
        # The break replaces the blank between the words.
        if before < self.tokens.starts[gap]:
            blank = flat.offsets[before]
            return flat.text[end:blank], flat.text[blank + 1 : start]
        closing = CLOSING_TAGS.match(flat.text, end, start)
        middle = closing.end() if closing else end
        return flat.text[end:middle], flat.text[middle:start]


def rewrapped(
    text: str,
    source: str,
    markup: Markup,
    limit: int,
    edges: tuple[int, int] = (0, 0),
) -> str:
    """A translation in lines of at most `limit` columns, and in no more lines than its source.

    It has fewer lines if it needs fewer, unless the source has more than it needs, too. `edges` are
    the columns beside the text.
    """
    original = Flat(source, markup)
    breaks = original.breaks
    layout = Layout(Flat(text, markup), *edges)
    if not breaks or len(breaks) > MOST_BREAKS or not layout.begins:
        return text
    count = 1 + len(breaks)
    if len(Layout(original, *edges).filled(limit)) >= len(breaks):
        count = min(count, 1 + len(layout.filled(limit)))
    return layout.broken(layout.balanced(count, limit), breaks)
