"""Notices about damaged pairs, from a sample that is spread over a corpus."""

from dataclasses import dataclass, field

import numpy as np

from nmt.preparation.arrow_files import Numbered
from nmt.preparation.fits import Fits, fits_of
from nmt.preparation.kinds import (
    HALF_TRANSLATED,
    OF_LANGUAGE,
    SHIFTED,
    Kind,
)
from nmt.preparation.line_languages import LineLanguages, PairLanguages
from nmt.preparation.selection import Rows
from nmt.text import Pair, encodes_languages, has_encoder

SAMPLED = 2000
"""The number of pairs that are inspected, which takes some seconds."""
HELD_OUT_SAMPLED = 500
"""The same for a validation or test set."""
RUN_PAIRS = 20
"""The number of consecutive pairs in the sample: enough to see a shift."""
PART_PAIRS = 500
"""The pairs that are compared together, regardless of the number of workers."""
LEAST_SAMPLED = 100
"""A corpus with fewer pairs is not judged: a few free translations would decide."""
SHOWN_CHARACTERS = 400
"""The beginning of a line that is kept to be shown."""

LEAST_ADVANTAGE = 0.1
"""By how much a neighbor or a half must fit better than the whole line."""
TRANSLATION = 0.5
"""The similarity above which a neighbor or a half is taken for a translation."""
LEAST_IN_LANGUAGES = 1 / 3
"""If fewer lines are in one of the two languages, the encoder does not know the text."""
LEAST_ADVISED = 0.3
"""The lowest advised value of `data.filters.similarity`."""


@dataclass
class Inspected:
    """A pair of the sample."""

    number: int
    """Counted from 1."""
    pair: Pair
    """The beginnings of its lines."""
    similarity: float
    fit: float
    """The value that `data.filters.similarity` is compared with."""
    kind: Kind | None
    """Its damage; None if there is none. Only all pairs together show which are UNRELATED."""
    is_foreign: bool
    """Whether `data.filters.languages` drops it."""
    has_languages: bool
    """Whether the languages of its sides can be identified."""
    has_halves: bool
    """Whether its sides are long enough to be compared in halves."""
    place: str = ""
    """Where it is, in words; only for pairs that are shown."""
    damage: str = ""
    """The name of its damage; only for pairs that are shown."""

    def is_judged(self, kind: Kind) -> bool:
        """Whether it would have been found to have this kind of damage."""
        if kind in OF_LANGUAGE:
            return self.has_languages
        return self.has_halves or kind is not HALF_TRANSLATED


@dataclass
class Meanings:
    """The inspected pairs of a corpus."""

    source: str
    target: str
    pairs: list[Inspected] = field(default_factory=list)
    shuffled: list[float] = field(default_factory=list)
    """Similarities of unrelated sides."""

    def __post_init__(self) -> None:
        self.languages = LineLanguages(self.source, self.target)
        self.with_letters = 0
        """The lines whose language can be identified."""
        self.in_languages = 0
        """Those in one of the two languages."""

    def is_possible(self) -> bool:
        """Whether the encoder is installed and knows both languages."""
        return has_encoder() and encodes_languages(self.source, self.target)

    def inspect(self, numbered: Numbered) -> None:
        """Inspect runs of consecutive pairs. Raises NMTError if the encoder is not installed."""
        languages = [self.languages_of(pair) for _, pair in numbered]
        least = max(1, LEAST_IN_LANGUAGES * self.with_letters)
        # Similar languages cannot be told apart, so the text is taken to be in them.
        if self.languages.is_decidable and self.in_languages < least:
            return
        fits = fits_of(numbered, LEAST_ADVISED)
        self.shuffled += fits.shuffled.tolist()
        for row, (number, pair) in enumerate(numbered):
            beginnings = (pair[0][:SHOWN_CHARACTERS], pair[1][:SHOWN_CHARACTERS])
            of_pair = languages[row]
            kind = of_pair.kind if of_pair else None
            inspected = Inspected(
                number,
                beginnings,
                float(fits.cosines[row]),
                float(fits.values[row]),
                kind or kind_by_fit(fits, row),
                is_foreign=kind is not None,
                has_languages=of_pair is not None,
                has_halves=bool(fits.is_long[row]),
            )
            self.pairs.append(inspected)

    def languages_of(self, pair: Pair) -> PairLanguages | None:
        """What the languages of the sides show, which is also counted."""
        languages = self.languages.inspect(pair)
        if languages:
            self.with_letters += 2
            self.in_languages += languages.in_languages
        return languages

    def merge(self, other: "Meanings") -> None:
        """Add the pairs of another part of the corpus."""
        self.pairs += other.pairs
        self.shuffled += other.shuffled


def kind_by_fit(fits: Fits, row: int) -> Kind | None:
    """The damage that a better fit of a neighbor or a half shows."""
    cosine = fits.cosines[row]
    for advantage, kind in ((fits.neighbors[row], SHIFTED), (fits.halves[row], HALF_TRANSLATED)):
        if advantage > LEAST_ADVANTAGE and cosine + advantage > TRANSLATION:
            return kind
    return None


def inspect_pairs(numbered: Numbered, source: str, target: str) -> Meanings:
    """Inspect runs of consecutive pairs, in a worker process."""
    meanings = Meanings(source, target)
    meanings.inspect(numbered)
    return meanings


def spread_rows(count: int, sampled: int = SAMPLED) -> Rows:
    """The ascending rows of runs of consecutive pairs that are spread over `count` pairs."""
    if count <= sampled:
        return np.arange(count)
    runs = sampled // RUN_PAIRS
    begins = np.linspace(0, count - RUN_PAIRS, runs).astype(np.int64)
    return np.unique(begins[:, None] + np.arange(RUN_PAIRS))
