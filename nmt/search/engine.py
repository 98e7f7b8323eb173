"""The interface of the search engines: hypotheses, token scores, batches. No torch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Pair = tuple[list[int], list[int]]
"""Source and target tokens, without start and end symbols."""


@dataclass
class Hypothesis:
    """A finished translation: its tokens without the end symbol, log P(Y|X), and the score it is ranked by."""

    tokens: list[int]
    log_probability: float
    score: float


@dataclass
class TokenScores:
    """The scores that a model gives to a translation, token by token."""

    log_probabilities: list[float]
    """Of each token, the end symbol last."""
    attention: npt.NDArray[np.float32] | None = None
    """Weights from each target token to each source token, both without end symbols."""


class Engine(Protocol):
    """A model, or several, that can be searched for translations."""

    def search(self, sentences: Sequence[list[int]], prefixes: Sequence[list[int]]) -> list[list[Hypothesis]]:
        """The n_best hypotheses of each sentence, best first, each beginning with the sentence's prefix.

        Neither sentences, none of which is empty, nor prefixes hold start or end symbols.
        """


class Scorer(Protocol):
    """A model, or several, that scores given translations."""

    def __call__(self, pairs: Sequence[Pair]) -> list[TokenScores]: ...


def length_penalty(length: float, alpha: float) -> float:
    """lp(Y) = ((5 + |Y|) / 6)^alpha (section 6.1; Wu et al. 2016, equation 14); |Y| counts the end symbol."""
    return float(((5 + length) / 6) ** alpha)


def batches_by_length(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Indices of items, longest first, in batches of at most `budget` tokens with padding, at least one item each.

    Batches of more than 16 hold a multiple of 8: a oneDNN kernel belongs to one shape, and so few shapes come up.
    """
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    while order:
        size = max(1, budget // lengths[order[0]])
        size = size - size % 8 if size > 16 else size
        yield order[:size]
        order = order[size:]
