"""How often the words of a test set's sources occur in training."""

from collections import Counter
from itertools import islice

from nmt.plugins.compare.lines import words
from nmt.plugins.compare.systems import TestSet
from nmt.text import read_texts

MOST_LINES = 200_000
"""Training lines that are counted; of a larger prepared corpus, as many that are spread over it evenly."""


def training_words(test: TestSet, training: str | None) -> tuple[Counter[str], str] | None:
    """The counts of words, and a phrase that says where; None where nothing is known of the training text.

    `training` is a file of source lines. NMTError where a file or corpus cannot be read.
    """
    if training is not None:
        lines = list(islice(read_texts(training), MOST_LINES))
        return count_words(lines), f"the first {len(lines):,} lines of {training}"
    if test.corpus is None or test.sources is None:
        return None
    lines, whole = sample(test)
    return count_words(lines), f"{len(lines):,} of the {whole:,} training sources of {test.corpus.folder}"


def count_words(lines: list[str]) -> Counter[str]:
    return Counter(word for line in lines for word in words(line))


def sample(test: TestSet) -> tuple[list[str], int]:
    """Source lines of the prepared corpus, decoded from subwords, and how many it has."""
    import numpy as np

    from nmt.text import SOURCE, load_tokenizer

    assert test.corpus is not None
    tokenizer = load_tokenizer(test.corpus.tokenizer_file)
    split = test.corpus.split("train")
    chosen = np.unique(np.linspace(0, len(split) - 1, min(len(split), MOST_LINES)).astype(np.int64))
    ids = split.table[chosen].column("source").to_pylist()
    return [tokenizer.decode(line, SOURCE) for line in ids], len(split)
