"""Decide which pairs of a corpus are clean."""

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from nmt.config import FilterConfig
from nmt.preparation.arrow_files import Numbered, text_block
from nmt.preparation.deduplication import EMPTY, Hashes, first_rows, pair_hashes
from nmt.preparation.sources import Corpus
from nmt.preparation.suspicions import Sample, Suspicions
from nmt.text import WITHOUT_BLANKS, Normalization, Pair, PairBlock, pairs_of_block, words

SLACK = 1.0
"""The words by which an estimated length may exceed the maximum ratio."""


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

    Token limits and duplicates are checked elsewhere.
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


@dataclass(frozen=True)
class Cleaning:
    """The work of a worker process on the training pairs of a source."""

    corpus: Corpus
    normalization: Normalization
    is_hashed: bool
    """Whether to compute hashes."""
    is_unique: bool
    """Whether to drop repeated pairs."""

    def __call__(self, part: tuple[PairBlock, Sample]) -> "CleanBlock":
        """Inspect a part of a block of raw pairs, then clean the block."""
        block, sample = part
        skipped = Counter[str]()
        raw = list(pairs_of_block(block, self.corpus.data, skipped))
        suspicions = Suspicions(self.corpus.data)
        # The raw pairs, because notices quote the user's files.
        suspicions.inspect(raw, sample)
        clean = [self.corpus.as_read(pair, self.normalization) for pair in raw]
        dropped = Counter[str]()
        kept: Numbered = []
        for line, pair in enumerate(clean):
            reason = reason_to_drop(pair, self.corpus.data.filters)
            if reason:
                dropped[reason] += 1
            else:
                kept.append((line, pair))
        # Hashes of clean pairs, because pairs that the model cannot distinguish are the same.
        hashes = pair_hashes(pair for _, pair in kept) if self.is_hashed else EMPTY
        if self.is_unique:
            # Otherwise, a pair that fills much of the corpus would fill the memory when hashes are
            # compared.
            rows = first_rows(hashes)
            kept = [kept[row] for row in rows.tolist()]
            hashes = hashes[rows]
        return CleanBlock(
            text=text_block(kept),
            hashes=hashes,
            pairs=len(raw),
            skipped=skipped,
            dropped=dropped,
            suspicions=suspicions,
        )


class CleanBlock(NamedTuple):
    """The clean pairs of a block that pass the filters, and what happened to the others.

    Without the pairs of the block that repeat one of its pairs, which are only in `pairs`.
    """

    text: pa.RecordBatch
    """With the schema TEXT_SCHEMA; lines are counted from 0 in the block."""
    hashes: Hashes
    pairs: int
    """The number of pairs in the block, without malformed lines."""
    skipped: Counter[str]
    """Malformed lines by reason."""
    dropped: Counter[str]
    """Pairs that the filters drop, by reason."""
    suspicions: Suspicions
    """Suspicions about the raw pairs, which are counted from 1 in the block."""
