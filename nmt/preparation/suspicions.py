"""Notices about problems of whole corpora, from a bounded sample of their pairs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nmt.config import DataConfig
from nmt.preparation.shifts import Shifts
from nmt.preparation.side_languages import SideLanguages
from nmt.text import BLOCK_PAIRS, Pair, words

WHOLE_BLOCKS = 4
"""The first blocks are inspected as a whole."""
PART_PAIRS = 400
"""The number of consecutive pairs to inspect in each of the other blocks."""
ALL_BLOCKS = 50
LATER_STEP = 20
"""After ALL_BLOCKS, only one block in this many is inspected."""
SPREAD_GROUPS = 40
"""The maximum number of groups of pairs in a block whose languages are identified."""
SPREAD_BLOCKS = 10
FURTHER_GROUPS = 4
"""The same after SPREAD_BLOCKS, because identifying a language is slow."""
LEAST_PAIRS = 3
SHOWN = 40
"""The maximum number of characters of an example in a notice."""
SENTENCE_WORDS = 4
"""Shorter lines may be names, which are often the same on both sides."""
LEAST_IDENTICAL = 0.1

# Windows-1252 has these where Latin-1 has control characters, at bytes 0x80 to 0x9F.
IN_WINDOWS_1252 = (
    "\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc\u2013-\u203a\u20ac\u2122"
)
CONTINUATION = f"[\u0080-\u00bf{IN_WINDOWS_1252}]"
"""The characters that Windows-1252 or Latin-1 have for the later bytes of UTF-8 sequences."""


@dataclass(frozen=True)
class Damage:
    """Something that a line of clean text does not contain."""

    name: str
    pattern: re.Pattern[str]
    least_share: float  # of the lines of one side
    advice: str


DAMAGES = (
    Damage(
        # A name and its semicolon are needed: AT&T and "R&D;" are text.
        "HTML entities",
        re.compile(
            r"&(?:amp|lt|gt|quot|apos|nbsp|#\d{2,6}|#[xX][0-9a-fA-F]{2,5}|szlig|[lr][sd]quo|hellip"
            r"|[mn]dash|[aeiouAEIOUnNcC](?:acute|grave|uml|circ|tilde|cedil));"
        ),
        0.005,
        "decode them, for example with Python's html.unescape",
    ),
    Damage(
        # {\an8} and \N of SubStation Alpha, and the times of SubRip and WebVTT.
        "subtitle codes",
        re.compile(r"\{\\[a-zA-Z]+\d*[^{}]{0,60}\}|\\N|\d\d:\d\d:\d\d[,.]\d{3} *-->"),
        0.005,
        "remove them",
    ),
    Damage(
        # Only names of HTML elements: 1 < 2 > 0 is text.
        "markup tags",
        re.compile(
            r"</?(?:[abipqsu]|br|em|strong|font|span|div|sub|sup|code|pre|h[1-6]|li|[ou]l|t[dhr]"
            r"|table|seg|img)(?:\s[^<>]{0,200})?/?>",
            re.IGNORECASE,
        ),
        0.02,
        "remove them, unless the model is to learn to translate markup",
    ),
    Damage(
        "characters of a wrong encoding",
        re.compile(
            # UTF-8 that was read as a one-byte encoding. Each alternative begins with lead bytes:
            # C2 to C5 are accented Latin letters, unless a capital precedes them (in IRMÃ”, the
            # letter ends a word before a quotation mark); E2 80 are dashes and quotation marks; D0
            # and D1 are Cyrillic; D8 and D9 are Arabic; E0 to EF begin sequences of three bytes.
            # U+FFFD is what a decoder writes for bytes that it cannot read.
            rf"\ufffd|(?<![A-Z\u00c0-\u00de])[\u00c2\u00c3\u00c4\u00c5]{CONTINUATION}"
            rf"|\u00e2\u20ac{CONTINUATION}|(?:[\u00d0\u00d1]{CONTINUATION}){{2}}"
            rf"|(?:[\u00d8\u00d9]{CONTINUATION}){{2}}|(?:[\u00e0-\u00ef]{CONTINUATION}{{2}}){{2}}"
        ),
        0.005,
        "convert the file from its original encoding again",
    ),
)


class Finding:
    """How often something occurs on each side, and where first."""

    def __init__(self) -> None:
        self.counts = [0, 0]
        self.first = 0  # pair
        self.example = ""

    def add(self, side: int, number: int, example: str) -> None:
        self.counts[side] += 1
        if not self.first:
            self.first = number
            self.example = example

    def merge(self, later: "Finding", shift: int) -> None:
        """Add what was found in later pairs, whose numbers are too low by `shift`."""
        # Blocks are merged in order, so an earlier block has the first one if it has any.
        if later.first and not self.first:
            self.first = later.first + shift
            self.example = later.example
        for side, count in enumerate(later.counts):
            self.counts[side] += count

    def where(self, inspected: int) -> str:
        """Such as "3 of 100 sources and 5 of 100 targets"."""
        sides = []
        for count, name in zip(self.counts, ("sources", "targets"), strict=True):
            if count:
                sides.append(f"{count:,} of {inspected:,} {name}")
        return " and ".join(sides)


class Sample(NamedTuple):
    """The part of a block that is inspected."""

    pairs: int
    """The number of pairs to inspect, from the first pair of the block."""
    groups: int
    """The maximum number of groups of pairs whose languages are identified."""


NO_SAMPLE = Sample(0, 0)


class Suspicions:
    """Problems that many of the inspected pairs of a source have in common.

    Worker processes inspect a block each, with numbers counted from the start of the block. The
    main process merges what they found, in the order of the blocks.
    """

    def __init__(self, data: DataConfig) -> None:
        self.blocks = 0  # counted by `next_sample`
        self.inspected = 0
        self.damages = [Finding() for _ in DAMAGES]
        self.identical = Finding()
        self.sentences = 0  # pairs long enough to count as identical
        self.languages = SideLanguages(data.source, data.target)
        self.shifts = Shifts()

    def next_sample(self) -> Sample:
        """The part of the next block to inspect.

        It depends on no earlier result, so that blocks need not wait.
        """
        number = self.blocks
        self.blocks += 1
        # A corpus that is wrong as a whole shows it in its beginning. Later blocks are sampled for
        # files that change on the way, such as a shift from a missing line on.
        groups = SPREAD_GROUPS if number < SPREAD_BLOCKS else FURTHER_GROUPS
        if number < WHOLE_BLOCKS:
            return Sample(BLOCK_PAIRS, groups)
        if number < ALL_BLOCKS or number % LATER_STEP == 0:
            return Sample(PART_PAIRS, groups)
        return NO_SAMPLE

    def inspect(self, block: Sequence[Pair], sample: Sample, first: int = 1) -> None:
        """Inspect a part of consecutive pairs. `first` is the number of the first one."""
        pairs = block[: sample.pairs]
        if not pairs:
            return
        self.inspected += len(pairs)
        for number, pair in enumerate(pairs, first):
            self.inspect_pair(number, pair)
        self.languages.add(pairs, first, sample.groups)
        self.shifts.add(pairs, first)

    def merge(self, later: "Suspicions", shift: int) -> None:
        """Add what was found in later pairs, whose numbers are too low by `shift`."""
        self.inspected += later.inspected
        self.sentences += later.sentences
        self.identical.merge(later.identical, shift)
        for finding, later_finding in zip(self.damages, later.damages, strict=True):
            finding.merge(later_finding, shift)
        self.languages.merge(later.languages, shift)
        self.shifts.merge(later.shifts, shift)

    def inspect_pair(self, number: int, pair: Pair) -> None:
        for side, line in enumerate(pair):
            for damage, finding in zip(DAMAGES, self.damages, strict=True):
                match = damage.pattern.search(line)
                if match:
                    finding.add(side, number, match[0])
        if min(map(words, pair)) >= SENTENCE_WORDS:
            self.sentences += 1
            source, target = pair
            if source.casefold().split() == target.casefold().split():
                # Counted as side 0, although both sides are the same.
                self.identical.add(0, number, source)

    def notices(self) -> list[str]:
        """One line for each problem: what, in how many pairs, the first one, what to do."""
        notices = list[str]()
        for damage, finding in zip(DAMAGES, self.damages, strict=True):
            # By the worse side, so that clean targets do not hide damaged sources.
            most = max(finding.counts)
            if most >= LEAST_PAIRS and most >= damage.least_share * self.inspected:
                notices.append(
                    f"{finding.where(self.inspected)} contain {damage.name} "
                    f"(first: pair {finding.first:,}, {finding.example[:SHOWN]!r}): {damage.advice}"
                )
        identical = self.identical.counts[0]
        if identical >= LEAST_PAIRS and identical >= LEAST_IDENTICAL * self.sentences:
            notices.append(
                f"{identical:,} of {self.sentences:,} pairs of sentences have the same text on "
                f"both sides (first: pair {self.identical.first:,}, "
                f"{self.identical.example[:SHOWN]!r}): "
                "check the files, or pass data.filters.drop_identical=true"
            )
        if not self.is_wrongly_encoded():  # such text looks like other languages
            notices += self.languages.notices()
        return notices + self.shifts.notices(self.inspected)

    def is_wrongly_encoded(self) -> bool:
        """Whether most lines of a side have characters of a wrong encoding, the last damage."""
        return 2 * max(self.damages[-1].counts) > self.inspected
