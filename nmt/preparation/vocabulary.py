"""Learn the vocabulary of a corpus from a sample of its pairs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nmt.preparation.arrow_files import arrow_rows, text_pairs
from nmt.preparation.reading import blocks
from nmt.preparation.selection import Rows
from nmt.text import Pair, Tokenizer, train_tokenizer


def learn_vocabulary(
    samples: list[tuple[Path, Rows]],
    sides: tuple[int, ...],
    *options: Any,
) -> Tokenizer:
    """Train a tokenizer on the given sides of the sampled rows of each text file."""
    # An iterator: the library reads the lines one by one, and no list of the sample is kept here.
    return train_tokenizer(sampled_lines(samples, sides), *options)


def sampled_lines(samples: list[tuple[Path, Rows]], sides: tuple[int, ...]) -> Iterator[str]:
    """The lines of the sampled pairs: in each block of pairs, one side after the other."""
    for block in blocks(sampled_pairs(samples)):
        for side in sides:
            for pair in block:
                yield pair[side]


def sampled_pairs(samples: list[tuple[Path, Rows]]) -> Iterator[Pair]:
    for text, rows in samples:
        for block in arrow_rows(text, rows):
            yield from text_pairs(block)
