"""Buckets of a test set's lines: by length, and by how rare their words are in training."""

import math
from collections import Counter

import numpy as np
import regex

from nmt import data
from nmt.plugins.results.test_set import TestSet
from nmt.text import (
    KATAKANA,
    SOURCE,
    WITHOUT_BLANKS,
    WORD_CHARACTER,
    clean,
    load_tokenizer,
    words,
)

FREQUENCIES = {1: "never", 10: "1 to 9 times", 100: "10 to 99 times"}
"""Maps upper bounds of buckets to their labels."""
NO_BLANKS = WITHOUT_BLANKS.pattern
KATAKANA_LETTERS = rf"(?:(?={WORD_CHARACTER.pattern}){KATAKANA.pattern})+"
OTHER_LETTERS = rf"(?:(?!{NO_BLANKS}){WORD_CHARACTER.pattern})+"
WORD = regex.compile(rf"{KATAKANA_LETTERS}|(?={NO_BLANKS})\X|{OTHER_LETTERS}")
"""A word whose rarity matters. In scripts without blanks, it is a character as readers see it or a
katakana word: rare Chinese characters and foreign names are what models have not learned."""
MOST_LINES = 200_000
"""Words are counted in at most this many training lines, spread evenly over the corpus."""
Division = tuple[str, list[str], list[int]]
"""A title, the labels of its buckets, and the index of each line's bucket."""


def words_of(line: str) -> list[str]:
    """The words of a line whose rarity matters, in lower case."""
    matches: list[str] = WORD.findall(line.casefold())
    return matches


def divisions(test: TestSet) -> tuple[list[Division], str]:
    """Ways to divide a test set into buckets, and where training words were counted.

    The latter is "" if unknown. Rarity needs the sources and the training corpus.
    """
    by_length = division_by_length(test)
    if test.corpus is None or test.sources is None:
        return [by_length], ""
    # Takes longest, so only if its result can be used.
    frequency, where = count_words(test.corpus)
    return [by_length, division_by_rarity(test.sources, frequency)], where


def division_by_length(test: TestSet) -> Division:
    """Buckets of five words: 1-5, 6-10 and so on, up to 46+."""
    side = "source" if test.sources else "reference"
    labels = [f"{fewest}-{fewest + 4}" for fewest in range(1, 46, 5)]
    labels.append("46+")
    buckets = []
    for text in test.sources or test.references:
        # Estimated from the characters in scripts without blanks, so it may be a fraction.
        length = math.ceil(words(clean(text)))
        bucket = (length - 1) // 5
        buckets.append(min(bucket, len(labels) - 1))
    return f"Words in the {side}", labels, buckets


def division_by_rarity(sources: list[str], frequency: Counter[str]) -> Division:
    """Buckets by the training count of a line's rarest word.

    A line without words is in the bucket of the most frequent words.
    """
    most = max(FREQUENCIES)
    labels = [*FREQUENCIES.values(), f"{most} times or more"]
    buckets = []
    for text in sources:
        counts = [frequency[word] for word in words_of(clean(text))]
        # The rarest word and not the mean, because every line has frequent words.
        rarest = min(counts, default=most)
        bounds_reached = [bound for bound in FREQUENCIES if rarest >= bound]
        buckets.append(len(bounds_reached))
    return "Count of its rarest word in training", labels, buckets


def count_words(corpus: "data.PreparedCorpus") -> tuple[Counter[str], str]:
    """The count of each word in the training sources, and where the words were counted."""
    # The corpus holds token ids, which have to be decoded first.
    tokenizer = load_tokenizer(corpus.tokenizer_file)
    split = corpus.split("train")
    lines = min(len(split), MOST_LINES)
    # Spread evenly, because sources of a corpus may stand one after the other.
    chosen = np.unique(np.linspace(0, len(split) - 1, lines).astype(np.int64))
    frequency: Counter[str] = Counter()
    source_ids = split.rows(chosen)[0].to_pylist()
    for ids in source_ids:
        line = tokenizer.decode(ids, SOURCE)
        frequency.update(words_of(line))
    where = f"{len(chosen):,} of the {len(split):,} training source lines in {corpus.folder}"
    return frequency, where
