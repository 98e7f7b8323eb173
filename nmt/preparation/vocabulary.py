"""Learn the vocabulary of a corpus from a sample of its pairs."""

from collections.abc import Iterator
from typing import Any

from nmt.preparation.arrow_files import text_pairs
from nmt.preparation.reading import blocks
from nmt.preparation.selection import Rows
from nmt.preparation.spools import Place, parts_of_rows
from nmt.text import Pair, Tokenizer, train_tokenizer

Sample = tuple[list[Place], Rows]
"""The blocks of a source, and the ascending rows of all blocks to learn from."""


def learn_vocabulary(
    samples: list[Sample],
    sides: tuple[int, ...],
    *options: Any,
) -> Tokenizer:
    """Train a tokenizer on the given sides of the sampled rows of each source."""
    # An iterator: the library reads the lines one by one, and no list of the sample is kept here.
    return train_tokenizer(sampled_lines(samples, sides), *options)


def sampled_lines(samples: list[Sample], sides: tuple[int, ...]) -> Iterator[str]:
    """The lines of the sampled pairs: in each block of pairs, one side after the other."""
    for block in blocks(sampled_pairs(samples)):
        for side in sides:
            for pair in block:
                yield pair[side]


def sampled_pairs(samples: list[Sample]) -> Iterator[Pair]:
    for places, rows in samples:
        for part in parts_of_rows(places, rows):
            yield from text_pairs(part.block())
