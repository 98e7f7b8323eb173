"""Notices about problems of whole corpora, from a bounded sample of their pairs."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from nmt.config import DataConfig
from nmt.preparation.damage import DamageNotice, damage_notice
from nmt.preparation.kinds import OF_LANGUAGE, SHIFTED, SWAPPED, UNRELATED, UNTRANSLATED, Kind
from nmt.preparation.meanings import Inspected, Meanings
from nmt.preparation.places import Where, in_words
from nmt.preparation.shifts import Shifts
from nmt.preparation.side_languages import SideLanguages
from nmt.text import BLOCK_PAIRS, Pair, words

WHOLE_BLOCKS = 4
"""The first blocks are inspected as a whole."""
PART_PAIRS = 400
"""The number of consecutive pairs to inspect in each of the other blocks."""
ALL_BLOCKS = 50
"""The number of blocks at the beginning of which each one is inspected."""
LATER_STEP = 20
"""After ALL_BLOCKS, only one block in this many is inspected."""
SPREAD_GROUPS = 40
"""The maximum number of groups of pairs in a block whose languages are identified."""
SPREAD_BLOCKS = 10
"""The number of blocks at the beginning with up to SPREAD_GROUPS."""
FURTHER_GROUPS = 4
"""The same as SPREAD_GROUPS in later blocks, because identifying a language is slow."""
LEAST_PAIRS = 3
"""Fewer pairs with a problem are not reported, because the corpus as a whole is not wrong."""
SHOWN = 40
"""The maximum number of characters of an example in a notice."""
SENTENCE_WORDS = 4
"""Shorter lines may be names, which are often the same on both sides."""
NEAR = 10
"""The number of lines around a pair in which shifted pairs show that it may be shifted, too."""
LEAST_NEAR = 2
"""The number of such pairs; a single one may be a repeated sentence."""
LEAST_IDENTICAL = 0.1
"""The share of pairs of sentences with the same text on both sides that is reported."""

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
    least_share: float
    """The share of the lines of one side that is reported."""
    advice: str


HTML_ENTITIES = Damage(
    name="HTML entities",
    pattern=re.compile(
        # A name and its semicolon are needed: AT&T and "R&D;" are text.
        r"&(?:amp|lt|gt|quot|apos|nbsp|#\d{2,6}|#[xX][0-9a-fA-F]{2,5}|szlig|[lr][sd]quo|hellip"
        r"|[mn]dash|[aeiouAEIOUnNcC](?:acute|grave|uml|circ|tilde|cedil));"
    ),
    least_share=0.005,
    advice="decode them, for example with Python's html.unescape",
)
SUBTITLE_CODES = Damage(
    name="subtitle codes",
    # {\an8} and \N of SubStation Alpha, and the times of SubRip and WebVTT.
    pattern=re.compile(r"\{\\[a-zA-Z]+\d*[^{}]{0,60}\}|\\N|\d\d:\d\d:\d\d[,.]\d{3} *-->"),
    least_share=0.005,
    advice="remove them",
)
MARKUP_TAGS = Damage(
    name="markup tags",
    pattern=re.compile(
        # Only names of HTML elements: 1 < 2 > 0 is text.
        r"</?(?:[abipqsu]|br|em|strong|font|span|div|sub|sup|code|pre|h[1-6]|li|[ou]l|t[dhr]"
        r"|table|seg|img)(?:\s[^<>]{0,200})?/?>",
        re.IGNORECASE,
    ),
    least_share=0.02,
    advice="remove them, unless the model is to learn to translate markup",
)
WRONG_ENCODING = Damage(
    name="characters of a wrong encoding",
    pattern=re.compile(
        # UTF-8 that was read as a one-byte encoding. Each alternative begins with lead bytes:
        # C2 to C5 are accented Latin letters, unless a capital precedes them (in IRMÃ”, the
        # letter ends a word before a quotation mark); E2 80 are dashes and quotation marks; D0
        # and D1 are Cyrillic; D8 and D9 are Arabic; E0 to EF begin sequences of three bytes.
        # U+FFFD is what a decoder writes for bytes that it cannot read.
        rf"\ufffd|(?<![A-Z\u00c0-\u00de])[\u00c2\u00c3\u00c4\u00c5]{CONTINUATION}"
        rf"|\u00e2\u20ac{CONTINUATION}|(?:[\u00d0\u00d1]{CONTINUATION}){{2}}"
        rf"|(?:[\u00d8\u00d9]{CONTINUATION}){{2}}|(?:[\u00e0-\u00ef]{CONTINUATION}{{2}}){{2}}"
    ),
    least_share=0.005,
    advice="convert the file from its original encoding again",
)
DAMAGES = (HTML_ENTITIES, SUBTITLE_CODES, MARKUP_TAGS, WRONG_ENCODING)


class Finding:
    """How often something occurs on each side, and where first."""

    def __init__(self) -> None:
        self.counts = [0, 0]
        """The number of source lines and of target lines that have it."""
        self.first = 0
        """The number of the first pair that has it, counted from 1; 0: none has it."""
        self.example = ""
        """Of the first pair: the part of the line that matched, or the whole line."""

    def add(self, side: int, number: int, example: str) -> None:
        """Count a line of pair `number`; `side` is 0 for the source, 1 for the target."""
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

    def first_in_words(self, where: Where) -> str:
        """Such as "first: pair 7, '&amp;'"."""
        return f"first: {where(self.first)}, {self.example[:SHOWN]!r}"

    def where(self, inspected: int) -> str:
        """Such as "3 of 100 sources and 5 of 100 targets"; without a side that lacks it."""
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
        self.where: Where = in_words
        """Says where pairs are."""
        self.remark = ""
        """What to add about their numbers."""
        self.blocks = 0  # counted by `next_sample`
        self.inspected = 0  # pairs
        self.damages = {damage.name: Finding() for damage in DAMAGES}
        self.identical = Finding()
        """Pairs of sentences with the same text on both sides, counted as sources."""
        self.sentences = 0
        """Pairs of sentences: both lines are long enough to be one."""
        self.languages = SideLanguages(data.source, data.target)
        self.drops_languages = data.filters.languages
        self.shifts = Shifts()
        self.meanings = Meanings(data.source, data.target)
        """Of pairs that are spread over the corpus; `inspect` adds none."""

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
        for name, finding in self.damages.items():
            finding.merge(later.damages[name], shift)
        self.languages.merge(later.languages, shift)
        self.shifts.merge(later.shifts, shift)

    def inspect_pair(self, number: int, pair: Pair) -> None:
        for side, line in enumerate(pair):
            for damage in DAMAGES:
                match = damage.pattern.search(line)
                if match:
                    self.damages[damage.name].add(side, number, match[0])
        if min(map(words, pair)) >= SENTENCE_WORDS:
            self.sentences += 1
            source, target = pair
            if source.casefold().split() == target.casefold().split():
                # On one side only, because this counts pairs, not lines.
                self.identical.add(0, number, source)

    def notices(self) -> list[str]:
        """What is wrong with the corpus: one line for each problem, empty if there is none.

        A line says what is wrong, in how many pairs, where first, and what to do. Swapped sides in
        a part of the corpus are left to `notice_of_swapped_part`.
        """
        notices = [*self.notices_of_damages(), *self.notices_of_identical_sides()]
        # Text with characters of a wrong encoding looks like text in other languages.
        if not self.is_wrongly_encoded():
            notices += self.languages.notices(self.where)
        return notices + self.shifts.notices(self.inspected, self.where)

    def notice_of_swapped_part(self, damage: DamageNotice | None, is_filtered: bool) -> str:
        """A notice about swapped sides in a part of the corpus; empty if there is none.

        `damage` is the notice about single pairs, which is more precise if it has swapped sides.
        """
        is_named = damage is not None and SWAPPED in damage.kinds
        if is_named or self.is_wrongly_encoded():
            return ""
        advice = "swap the sides of these pairs"
        if is_filtered and self.drops_languages:
            advice = f"data.filters.languages=true drops these pairs; to keep them, {advice}"
        elif is_filtered and self.languages.is_filterable:
            advice += ", or pass data.filters.languages=true, which drops them"
        return self.languages.notice_of_swapped_part(self.where, advice)

    def damage_notice(self, pairs: int | None) -> DamageNotice | None:
        """A notice about single damaged pairs; None if there are few.

        `pairs` is the number of all pairs if filters apply to them.
        """
        return damage_notice(
            self.other_meanings(), pairs, self.known_kinds(), self.meanings, self.where
        )

    def other_meanings(self) -> Meanings:
        """The pairs of the sample that no notice about the whole corpus covers."""
        others = list(self.meanings.pairs)
        if any(self.notices_of_identical_sides()):
            others = [pair for pair in others if pair.kind is not UNTRANSLATED]
        if self.shifts.are_frequent:
            others = self.not_shifted(others)
        return replace(self.meanings, pairs=others)

    def not_shifted(self, pairs: list[Inspected]) -> list[Inspected]:
        """The pairs that are far from the shifted ones."""
        numbers = np.array([pair.number for pair in pairs], np.int64)
        is_shifted = [pair.kind is SHIFTED for pair in pairs]
        # Single pairs show a shift that is too short for a chunk, or whose chunk hides it.
        places = numbers[np.array(is_shifted, np.bool_)]
        near = np.searchsorted(places, numbers + NEAR) - np.searchsorted(places, numbers - NEAR)
        may_be_shifted = self.shifts.may_be_shifted(numbers) | (near >= LEAST_NEAR)
        return [pair for pair, is_near in zip(pairs, may_be_shifted, strict=True) if not is_near]

    def known_kinds(self) -> set[Kind]:
        """The kinds of damage of single pairs that `notices` reports for the whole corpus."""
        kinds = set[Kind]()
        if self.languages.notices() or self.is_wrongly_encoded():
            kinds.update(OF_LANGUAGE)
        if any(self.notices_of_identical_sides()):
            kinds.add(UNTRANSLATED)
        if self.shifts.notices(self.inspected):
            kinds.add(SHIFTED)
            # Otherwise, the notice says that the sides of all pairs have nothing in common.
            if not self.shifts.are_frequent:
                kinds.add(UNRELATED)
        return kinds

    def notices_of_damages(self) -> Iterator[str]:
        """A line for each damage that is frequent enough on one of the sides."""
        for damage in DAMAGES:
            finding = self.damages[damage.name]
            # By the worse side, so that clean targets do not hide damaged sources.
            most = max(finding.counts)
            if most >= LEAST_PAIRS and most >= damage.least_share * self.inspected:
                yield (
                    f"{finding.where(self.inspected)} contain {damage.name} "
                    f"({finding.first_in_words(self.where)}): {damage.advice}"
                )

    def notices_of_identical_sides(self) -> Iterator[str]:
        """A line if many pairs of sentences are not translated."""
        identical = self.identical.counts[0]
        if identical >= LEAST_PAIRS and identical >= LEAST_IDENTICAL * self.sentences:
            yield (
                f"{identical:,} of {self.sentences:,} pairs of sentences have the same text on "
                f"both sides ({self.identical.first_in_words(self.where)}): "
                "check the files, or pass data.filters.drop_identical=true"
            )

    def is_wrongly_encoded(self) -> bool:
        """Whether most lines of a side have characters of a wrong encoding."""
        most = max(self.damages[WRONG_ENCODING.name].counts)
        return 2 * most > self.inspected
