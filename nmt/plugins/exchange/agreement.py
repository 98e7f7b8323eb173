"""How far another program agrees with this one on a model: log P of each token of a sample, and the translations."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from nmt.config import require
from nmt.errors import NMTError, one_line
from nmt.files import read_text
from nmt.search import Pair
from nmt.translation import Translator, encode_pairs, score_pairs

Scores = Sequence[Sequence[float]]
"""For each pair the log probabilities of the target's tokens and of the end symbol; none for a pair without a score."""
SHOWN_LINES = 2
"""Lines with different translations to print."""


class Program(Protocol):
    """Another program with the same model."""

    name: str

    def scores(self, pairs: Sequence[Pair]) -> Iterable[tuple[str, Scores]]:
        """The log probabilities of pairs of our ids, with how they were computed, such as "that of Marian"."""

    def translate(self, lines: Sequence[str]) -> Sequence[str | None]:
        """The translations of lines; None where the program stopped at the limit of length. Empty if it has none."""


@dataclass
class Sample:
    """Lines on which two programs are compared."""

    lines: list[str]
    origin: str
    references: list[str] | None = None
    """Translations to score; None for our own."""


@dataclass
class PrintedScores:
    """What `marian score --word-scores` printed for the pairs of a sample."""

    path: str
    name: str = "Marian"

    def scores(self, pairs: Sequence[Pair]) -> Iterator[tuple[str, Scores]]:
        yield "that of Marian", word_scores(read_text(Path(self.path)), self.path)

    def translate(self, lines: Sequence[str]) -> list[str | None]:
        return []


def word_scores(text: str, where: str) -> list[list[float]]:
    """The log probabilities in the output of `marian score --word-scores`."""
    try:
        return [[float(word) for word in line.split(" ||| WordScores= ")[1].split()] for line in text.splitlines()]
    except (IndexError, ValueError) as error:
        raise NMTError(f"{where}: not what `marian score --word-scores` prints ({one_line(error)})") from error


def agreement(translator: Translator, program: Program, sample: Sample) -> Iterator[str]:
    """Lines that say how far `program` agrees with the model of `translator`, an engine of torch."""
    lines = sample.lines
    ours = [translations[0].text for translations in translator.translate(lines)]
    pairs = list(zip(lines, ours if sample.references is None else sample.references, strict=True))
    expected = [score.token_log_probabilities for score in score_pairs(translator, pairs)]
    for which, scores in program.scores(encode_pairs(translator.tokenizer, pairs)):
        tokens, largest = largest_difference(expected, scores)
        yield f"log P of {tokens:,} tokens is {which} within {largest:.1e} a token"
    if theirs := program.translate(lines):
        yield from same_translations(lines, ours, theirs, program.name, sample.origin)


def largest_difference(ours: Scores, theirs: Scores) -> tuple[int, float]:
    """The number of scored tokens, and the largest |difference of log P| of one."""
    pairs = [(own, other) for own, other in zip(ours, theirs, strict=False) if len(other)]
    same_tokens = len(ours) == len(theirs) and all(len(own) == len(other) for own, other in pairs)
    require(same_tokens, f"the scores are of other lines or tokens: {len(theirs)} of {len(ours)} lines")
    differences = [np.abs(np.subtract(own, other)).max() for own, other in pairs]
    return sum(len(own) for own, _ in pairs), float(max(differences, default=0.0))


def same_translations(
    lines: Sequence[str], ours: Sequence[str], theirs: Sequence[str | None], name: str, origin: str
) -> Iterator[str]:
    """The share of lines that both programs translate alike, and some lines that they do not."""
    ended = [index for index, text in enumerate(theirs) if text is not None]
    different = [index for index in ended if ours[index] != theirs[index]]
    same, unfinished = len(ended) - len(different), len(lines) - len(ended)
    rest = f", without {unfinished:,} that {name} does not end within the limit of length" if unfinished else ""
    share = f"{same:,} of {len(ended):,} lines ({same / max(len(ended), 1):.1%})"
    yield f"{share} are translated as by {name}: {origin}{rest}"
    width = max(len(name), len("nmt")) + 1
    for index in different[:SHOWN_LINES]:
        yield f"line {index + 1}: {lines[index]}"
        yield f"  {name + ':':{width}} {theirs[index]}"
        yield f"  {'nmt:':{width}} {ours[index]}"
