"""What a search is asked for and what it gives, whichever engine runs it. No torch."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt


@dataclass
class Hypothesis:
    """A finished translation: its tokens without the end symbol, log P(Y|X), and the score it is ranked by."""

    tokens: list[int]
    log_probability: float
    score: float


class Engine(Protocol):
    """A model, or several, that can be searched for translations."""

    def search(self, sentences: Sequence[list[int]], prefixes: Sequence[list[int]]) -> list[list[Hypothesis]]:
        """The n_best hypotheses of each sentence, best first, each beginning with the sentence's prefix.

        Neither sentences, none of which is empty, nor prefixes hold start or end symbols.
        """


@dataclass
class Judgement:
    """What a model thinks of a given translation."""

    log_probabilities: list[float]
    """Of each of its tokens, the end symbol last."""
    attention: npt.NDArray[np.float32] | None = None
    """How much each of its tokens looks at each source token, both without end symbols."""


Judge = Callable[[Sequence[tuple[list[int], list[int]]]], list[Judgement]]
"""What is thought of pairs of source and target tokens, which hold no start or end symbols."""


def length_penalty(length: float, alpha: float) -> float:
    """lp(Y) = ((5 + |Y|) / 6)^alpha (section 6.1; Wu et al. 2016, equation 14); |Y| counts the end symbol."""
    return float(((5 + length) / 6) ** alpha)


def batches_by_length(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Places of items, longest first, in batches of at most `budget` tokens with padding, at least one item each.

    Batches of more than 16 hold a multiple of 8: kernels belong to a shape, and so few shapes come up.
    """
    order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
    while order:
        size = max(1, budget // lengths[order[0]])
        size = size - size % 8 if size > 16 else size
        yield order[:size]
        order = order[size:]
