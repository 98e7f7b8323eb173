"""How far two programs agree on one model: log P of each token of a sample, and the translations."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nmt.errors import NMTError, one_line

Scores = list[list[float]]
"""For each pair the log probabilities of the target's tokens and of the end symbol."""
SHOWN_LINES = 2
"""Lines with different translations to show."""


@dataclass
class Certificate:
    """The agreement of a model's two programs on a sample."""

    engine: str
    """The other program."""
    tokens: int
    largest: float
    """The largest |difference of log P| of a token."""
    note: str = ""
    """What explains it."""

    def __str__(self) -> str:
        told = f"log P of {self.tokens:,} tokens is that of {self.engine} within {self.largest:.1e} a token"
        return told + (f", {self.note}" if self.note else "")


def certificate(engine: str, ours: Scores, theirs: Scores, note: str = "") -> Certificate:
    """The largest difference of the log probabilities; NMTError where they are not of the same tokens."""
    if list(map(len, ours)) != list(map(len, theirs)):
        raise NMTError(f"the scores of {engine} are of other lines or tokens: {len(theirs)} of {len(ours)} lines")
    differences = [np.abs(np.subtract(own, other)).max() for own, other in zip(ours, theirs, strict=True)]
    return Certificate(engine, sum(map(len, ours)), float(max(differences, default=0.0)), note)


def word_scores(text: str, where: str) -> Scores:
    """The log probabilities that `marian score --word-scores` prints; NMTError for another text."""
    try:
        return [[float(word) for word in line.split(" ||| WordScores= ")[1].split()] for line in text.splitlines()]
    except (IndexError, ValueError) as error:
        raise NMTError(f"{where}: not what `marian score --word-scores` prints ({one_line(error)})") from error


def same_translations(lines: list[str], found: dict[str, list[str]], origin: str) -> Iterator[str]:
    """The share of lines that two programs, by name, translate alike, and some lines that they do not."""
    (first, expected), (second, others) = found.items()
    different = [index for index, (one, other) in enumerate(zip(expected, others, strict=True)) if one != other]
    same, width = len(lines) - len(different), max(map(len, found)) + 1
    yield f"{same:,} of {len(lines):,} lines ({same / max(len(lines), 1):.1%}) are translated as by {first}: {origin}"
    for index in different[:SHOWN_LINES]:
        yield f"line {index + 1}: {lines[index]}"
        yield f"  {first + ':':{width}} {expected[index]}"
        yield f"  {second + ':':{width}} {others[index]}"
