"""Models of other programs, and how far these agree with this one: log P of a sample's tokens, and translations."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from torch import Tensor

from nmt.config import DecodeConfig, ModelConfig, require
from nmt.errors import NMTError, one_line
from nmt.files import read_text
from nmt.model import Transformer
from nmt.search import Pair
from nmt.text import Tokenizer
from nmt.translation import Translator, encode_pairs, score_pairs

Weights = dict[str, Tensor]
Scores = Sequence[Sequence[float]]
"""For each pair the log probabilities of the target's tokens and of the end symbol; none for a pair without a score."""
SHOWN_LINES = 2
"""Lines with different translations to print."""


class Program(Protocol):
    """Another program with the same model."""

    name: str

    def scores(self, pairs: Sequence[Pair]) -> Iterable[tuple[str, Scores]]:
        """The log probabilities of pairs of our ids, with whose they are, such as "that of Marian"."""

    def translate(self, lines: Sequence[str]) -> Sequence[str]:
        """The translations of lines; empty if the program has none."""


@dataclass
class Foreign:
    """A model that was read from files of another program, under our names."""

    origin: str
    """What it is, for its card."""
    config: ModelConfig
    weights: Weights
    tokenizer: Tokenizer
    length_penalty: float = 1.0
    """alpha."""
    length_penalty_kind: str = "marian"
    languages: tuple[str, str] = ("und", "und")
    training: dict[str, Any] = field(default_factory=dict)
    """What an exported model says of its training."""
    package: str | None = None
    """The Python module of the program that can be compared with, if there is one."""
    program: Callable[[DecodeConfig], Program] | None = None
    """The program, with the model as it was read."""

    def model(self) -> Transformer:
        model = Transformer(self.config, self.tokenizer.vocabulary_size)
        model.load_state_dict(self.weights)
        return model.eval()


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

    def translate(self, lines: Sequence[str]) -> list[str]:
        return []


def word_scores(text: str, where: str) -> list[list[float]]:
    """The log probabilities in the output of `marian score --word-scores`."""
    try:
        return [[float(word) for word in line.split(" ||| WordScores= ")[1].split()] for line in text.splitlines()]
    except (IndexError, ValueError) as error:
        raise NMTError(f"{where}: not what `marian score --word-scores` prints ({one_line(error)})") from error


def agreement(translator: Translator, program: Program, sample: Sample) -> Iterator[str]:
    """Lines that say how far `program` agrees with the model of `translator`, an engine of torch."""
    ours = [translations[0].text for translations in translator.translate(sample.lines)]
    pairs = list(zip(sample.lines, ours if sample.references is None else sample.references, strict=True))
    expected = [score.token_log_probabilities for score in score_pairs(translator, pairs)]
    for whose, scores in program.scores(encode_pairs(translator.tokenizer, pairs)):
        tokens, largest = largest_difference(expected, scores)
        yield f"log P of {tokens:,} tokens is {whose} within {largest:.1e} a token"
    if theirs := program.translate(sample.lines):
        yield from same_translations(sample, ours, theirs, program.name)


def largest_difference(ours: Scores, theirs: Scores) -> tuple[int, float]:
    """The number of scored tokens, and the largest |difference of log P| of one."""
    rows = [(a, b) for a, b in zip(ours, theirs, strict=False) if len(b)]
    same_tokens = len(ours) == len(theirs) and all(len(a) == len(b) for a, b in rows)
    require(same_tokens, f"the scores are of other lines or tokens: {len(theirs)} of {len(ours)} lines")
    differences = [np.abs(np.subtract(a, b)).max() for a, b in rows]
    return sum(len(a) for a, _ in rows), float(max(differences, default=0.0))


def same_translations(sample: Sample, ours: Sequence[str], theirs: Sequence[str], name: str) -> Iterator[str]:
    """The share of lines that both programs translate alike, and some lines that they do not."""
    different = [row for row in enumerate(zip(sample.lines, theirs, ours, strict=True), 1) if row[1][1] != row[1][2]]
    count, width = len(sample.lines), len(name) + 1
    same = count - len(different)
    yield f"{same:,} of {count:,} lines ({same / max(count, 1):.1%}) are translated as by {name}: {sample.origin}"
    for number, (line, their, our) in different[:SHOWN_LINES]:
        yield f"line {number}: {line}"
        yield f"  {name + ':':{width}} {their}"
        yield f"  {'nmt:':{width}} {our}"
