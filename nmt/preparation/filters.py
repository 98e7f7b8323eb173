"""Decide which pairs of a corpus are clean."""

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nmt.config import FilterConfig
from nmt.preparation.arrow_files import Numbered, text_block
from nmt.preparation.deduplication import EMPTY, Hashes, first_rows, pair_hashes
from nmt.preparation.fits import fits_of
from nmt.preparation.line_languages import LineLanguages
from nmt.preparation.selection import Rows
from nmt.preparation.sources import Corpus
from nmt.preparation.spools import Place, append_block
from nmt.preparation.suspicions import Sample, Suspicions
from nmt.text import WITHOUT_BLANKS, Normalization, Pair, PairBlock, pairs_of_block, words

SLACK = 1.0
"""The words by which an estimated length may exceed the maximum ratio."""
NO_ROWS = np.empty(0, np.int64)
worker_hashes = lru_cache(maxsize=1)(np.load)
"""Loads a file of hashes once per worker process."""


def has_length_ratio(pair: Pair, max_ratio: float) -> bool:
    """Whether one side of a clean pair has at most `max_ratio` times as many words as the other.

    In scripts without blanks, the number of words is only estimated from the characters, so the
    ratio of short lines is uncertain. Lines of two words or more may exceed it by SLACK words. A
    line that the other side contains, such as a name with an explanation, may have twice the ratio.
    Other lines of one word get no slack, because shifted lines of a corpus often have one word.
    """
    fewest, most = sorted(map(words, pair))
    if most <= max_ratio * fewest:
        return True
    # Words between blanks are counted, not estimated, so the ratio is exact.
    if not any(map(WITHOUT_BLANKS.search, pair)):
        return False
    shorter, longer = sorted(pair, key=words)
    if shorter in longer:
        return most <= 2 * max_ratio * fewest
    return fewest >= 2 and most <= max_ratio * fewest + SLACK


def reason_to_drop(pair: Pair, config: FilterConfig) -> str | None:
    """Why a filter drops a clean pair; None if none does.

    Token limits, languages, similarity and duplicates are checked elsewhere.
    """
    source, target = pair
    # First, because `words` counts at least one word in any line.
    if not source or not target:
        return "empty side"
    fewest, most = sorted(map(words, pair))
    if fewest < config.min_words:
        return "too short"
    if config.max_words is not None and most > config.max_words:
        return "too long (words)"
    if config.max_ratio is not None and not has_length_ratio(pair, config.max_ratio):
        return "length ratio"
    if config.drop_identical and source == target:
        return "identical sides"
    return None


def has_foreign_side(pair: Pair, languages: LineLanguages) -> bool:
    """Whether a side, or half of the target, clearly is in another language than it should be."""
    inspected = languages.inspect(pair)
    return inspected is not None and inspected.kind is not None


def with_similar_sides(pairs: Numbered, least: float) -> Numbered:
    """The pairs of a block whose sides fit each other in meaning."""
    # All pairs of a block together: the last bits of a vector depend on the texts encoded with it,
    # and blocks do not depend on the number of workers.
    values = fits_of(pairs, least).values
    return [pair for pair, value in zip(pairs, values.tolist(), strict=True) if value >= least]


@dataclass(frozen=True)
class Cleaning:
    """The work of a worker process on the training pairs of a source."""

    corpus: Corpus
    normalization: Normalization
    is_unique: bool
    """Whether to drop repeated pairs."""
    given: Path | None
    """A file with the hashes of the pairs of all given held-out sets, ascending and distinct."""
    spool: Path
    """Where the clean blocks are written: the beginning of the names of the workers' files."""

    def __call__(self, part: tuple[PairBlock, Sample]) -> "CleanBlock":
        """Inspect a part of a block of raw pairs, then clean the block."""
        block, sample = part
        skipped = Counter[str]()
        skipped_lines = list[int]()
        raw = list(pairs_of_block(block, self.corpus.data, skipped, skipped_lines))
        suspicions = None
        if sample.pairs:
            suspicions = Suspicions(self.corpus.data)
            # The raw pairs, because notices quote the user's files.
            suspicions.inspect(raw, sample)
        dropped = Counter[str]()
        kept, hashes = self.clean(raw, dropped)
        return CleanBlock(
            place=append_block(text_block(kept), self.spool) if kept else None,
            hashes=hashes if self.is_unique else EMPTY,
            given=rows_among(worker_hashes(self.given), hashes) if self.given else NO_ROWS,
            pairs=len(raw),
            skipped=skipped,
            skipped_lines=skipped_lines,
            dropped=dropped,
            suspicions=suspicions,
        )

    def clean(self, raw: list[Pair], dropped: Counter[str]) -> tuple[Numbered, Hashes]:
        """The clean pairs that are kept, numbered from 0, and their hashes if they are needed."""
        filters = self.corpus.data.filters
        languages = LineLanguages(self.corpus.data.source, self.corpus.data.target)
        kept: Numbered = []
        for line, raw_pair in enumerate(raw):
            pair = self.corpus.as_read(raw_pair, self.normalization)
            reason = reason_to_drop(pair, filters)
            if not reason and filters.languages and has_foreign_side(pair, languages):
                reason = "wrong language"
            if reason:
                dropped[reason] += 1
            else:
                kept.append((line, pair))
        if filters.similarity is not None:
            similar = with_similar_sides(kept, filters.similarity)
            dropped["low similarity"] += len(kept) - len(similar)
            kept = similar
        if not self.is_unique and not self.given:
            return kept, EMPTY
        # Hashes of clean pairs, because pairs that the model cannot distinguish are the same.
        hashes = pair_hashes(pair for _, pair in kept)
        if self.is_unique:
            # Otherwise, a pair that fills much of the corpus would fill the memory when hashes are
            # compared.
            rows = first_rows(hashes)
            kept = [kept[row] for row in rows.tolist()]
            hashes = hashes[rows]
        return kept, hashes


class CleanBlock(NamedTuple):
    """The clean pairs of a block that pass the filters, and what happened to the others.

    Without the pairs of the block that repeat one of its pairs, which are only in `pairs`.
    """

    place: Place | None
    """Where the clean pairs are, with lines that are counted from 0 in the block; None: nowhere."""
    hashes: Hashes
    """Those of the clean pairs if repeated pairs are dropped."""
    given: Rows
    """The places of the clean pairs among the hashes of given held-out sets."""
    pairs: int
    """The number of pairs in the block, without malformed lines."""
    skipped: Counter[str]
    """Malformed lines by reason."""
    skipped_lines: list[int]
    """Their numbers in the file."""
    dropped: Counter[str]
    """Pairs that the filters drop, by reason."""
    suspicions: Suspicions | None
    """Suspicions about the raw pairs, which are counted from 1 in the block, if inspected."""


def rows_among(given: Hashes, hashes: Hashes) -> Rows:
    """The rows of the ascending `given` hashes that are among `hashes`."""
    # A hash above all given ones has the place behind the last one, which is not a valid index.
    places = np.searchsorted(given, hashes).clip(max=len(given) - 1)
    return np.unique(places[given[places] == hashes])
