"""Types that the search engines share, the length penalty, and batches of similar length. No torch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from nmt.config import DecodeConfig

if TYPE_CHECKING:
    from torch import Tensor

    from nmt.model import Transformer

Pair = tuple[list[int], list[int]]  # source and target tokens, without start and end symbols


@dataclass
class TokenScores:
    """The scores that a model gives to a translation, token by token."""

    log_probabilities: list[float]  # of each token, and of the end symbol
    attention: npt.NDArray[np.float32] | None = None  # [target tokens, source tokens], both without end symbols


@dataclass(frozen=True)
class EngineOptions:
    """What an engine is loaded for."""

    decode: DecodeConfig
    device: str = "auto"
    precision: str = "float32"
    threads: int | None = None  # processor cores; None: all
    scores: bool = True  # False: nobody looks at log probabilities, which may then be nan
    target_prefix: str = ""  # of every translation
    constraints: bool = False  # translations must have given words


@dataclass
class Hypothesis:
    """A finished translation: its tokens without the end symbol, log P(Y|X), and the score it is ranked by."""

    tokens: list[int]
    log_probability: float
    score: float
    token_scores: TokenScores | None = None


class Constraints(Protocol):
    """What the translations of some sentences must have, and the search for it on tensors."""

    @property
    def rows(self) -> Sequence[Sequence[Any]]:
        """The constraints of each sentence."""

    def of(self, indices: Sequence[int]) -> "Constraints":
        """Those of some of the sentences."""

    def search(
        self, models: "Sequence[Transformer]", source_BS: "Tensor", config: DecodeConfig, prefixes: Sequence[list[int]]
    ) -> list[list[Hypothesis]]:
        """As `beam_search`; what no translation of a sentence can have is given up."""


class Engine(Protocol):
    """A model, or an ensemble, that searches for translations."""

    config: DecodeConfig
    ahead: bool  # while it searches, it leaves the thread to others, and takes further work
    longest: int | None  # most tokens of a sentence, with the end symbol; None: the model's positions alone decide

    def with_search(self, config: DecodeConfig) -> "Engine":
        """The same weights, searched in another way; NMTError for a search that the engine does not have."""

    def search(
        self, sentences: Sequence[list[int]], prefixes: Sequence[list[int]], constraints: Constraints | None = None
    ) -> list[list[Hypothesis]]:
        """The n_best hypotheses of each sentence, best first, each beginning with the sentence's prefix.

        They have what `constraints` demand. Sentences and prefixes hold no start or end symbols; no sentence is empty.
        """

    def token_scores(self, pairs: Sequence[Pair]) -> list[TokenScores]:
        """Forced decoding: the scores of given translations, with attention where the model has what aligns words."""


def penalty(length: Any, config: DecodeConfig) -> Any:
    """lp(Y) = ((5 + |Y|) / 6)^alpha (section 6.1; Wu et al. 2016, equation 14), or |Y|^alpha, Marian's kind.

    |Y| counts the end symbol; it is a number, or a tensor of numbers.
    """
    return (length if config.length_penalty_kind == "marian" else (5 + length) / 6) ** config.length_penalty


def aligning_layer(layers: int) -> int:
    """Index of the layer whose attention aligns best: the last but one (Garg et al. 2019), or the last of up to 3."""
    return layers - 2 if layers > 3 else layers - 1


def batches_by_length(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Indices of items, longest first, in batches of at most `budget` tokens with padding, at least one item each.

    Above 16, batch sizes are multiples of 8: oneDNN builds a kernel for each shape, and so there are few shapes.
    """
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    while order:
        size = max(1, budget // lengths[order[0]])
        size = size - size % 8 if size > 16 else size
        yield order[:size]
        order = order[size:]
