"""Buckets of a test set's lines: by length, and by how rare their words are in the training data."""

import math
from collections import Counter

import numpy as np
import regex

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
IN_KATAKANA = rf"(?:(?={WORD_CHARACTER.pattern}){KATAKANA.pattern})+"
IN_OTHERS = rf"(?:(?!{NO_BLANKS}){WORD_CHARACTER.pattern})+"
WORD = regex.compile(rf"{IN_KATAKANA}|(?={NO_BLANKS})\X|{IN_OTHERS}")
"""A word whose rarity matters. In scripts without blanks, it is a character as readers see it or a
katakana word: rare Chinese characters and foreign names are what models have not learned."""
MOST_LINES = 200_000
"""Words are counted in at most this many training lines, spread evenly over the corpus."""
Division = tuple[str, list[str], list[int]]
"""A title, the labels of its buckets, and the index of each line's bucket."""


def words_of(line: str) -> list[str]:
    """The words of a line whose rarity matters, in lower case."""
    found: list[str] = WORD.findall(line.casefold())
    return found


def divisions(test: TestSet) -> tuple[list[Division], str]:
    """Ways to divide a test set into buckets, and where training words were counted ("" if unknown)."""
    texts, side = (test.sources, "source") if test.sources else (test.references, "reference")
    lengths = [min((math.ceil(words(clean(text))) - 1) // 5, 9) for text in texts]
    labels = [*(f"{fewest}-{fewest + 4}" for fewest in range(1, 46, 5)), "46+"]
    by_length = f"Words in the {side}", labels, lengths
    if test.corpus is None or test.sources is None:
        return [by_length], ""
    tokenizer = load_tokenizer(test.corpus.tokenizer_file)
    split = test.corpus.split("train")
    lines = min(len(split), MOST_LINES)
    chosen = np.unique(np.linspace(0, len(split) - 1, lines).astype(np.int64))
    frequency = Counter[str]()
    for ids in split.rows(chosen)[0].to_pylist():
        frequency.update(words_of(tokenizer.decode(ids, SOURCE)))
    most = max(FREQUENCIES)
    buckets = []
    for text in test.sources:
        rarest = min((frequency[word] for word in words_of(clean(text))), default=most)
        buckets.append(sum(rarest >= bound for bound in FREQUENCIES))
    by_rarity = [*FREQUENCIES.values(), f"{most} times or more"]
    where = f"{len(chosen):,} of the {len(split):,} training source lines in {test.corpus.folder}"
    return [by_length, ("Count of its rarest word in training", by_rarity, buckets)], where
