"""Code that search engines share: types, the length penalty, and batches of similar length.

This module does not import torch, because CTranslate2 does not need it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from nmt.config import DecodeConfig

if TYPE_CHECKING:
    from torch import Tensor

    from nmt.model import Transformer

CPU_BATCH_TOKENS = 2000  # the smallest batches that are almost as fast as the fastest
GPU_BATCH_TOKENS = 16_000  # a step of a small batch takes as long, and the GPU waits for Python

Pair = tuple[list[int], list[int]]
"""Source and target tokens, without start and end symbols."""


@dataclass
class TokenScores:
    """The scores of the tokens of one translation."""

    log_probabilities: list[float]  # one per token, and one for the end symbol
    # [target tokens, source tokens], both without end symbols
    attention: npt.NDArray[np.float32] | None = None


@dataclass(frozen=True)
class EngineOptions:
    """The options with which an engine loads models and searches."""

    decode: DecodeConfig
    device: str = "auto"
    precision: str = "float32"
    threads: int | None = None  # None: all CPU cores
    scores: bool = True  # False: log probabilities are not used and may be NaN
    target_prefix: str = ""  # the beginning of each translation


@dataclass
class Hypothesis:
    """A translation that a search has found, as tokens."""

    tokens: list[int]  # without the end symbol
    log_probability: float  # log P(Y|X)
    score: float  # determines its rank
    token_scores: TokenScores | None = None


class Constraints(Protocol):
    """Requirements on each sentence's translation, with a search for such translations."""

    @property
    def rows(self) -> Sequence[Sequence[Any]]:
        """The constraints of each sentence."""

    def of(self, indices: Sequence[int]) -> "Constraints":
        """The constraints of the sentences at these indices."""

    def are_met(self, index: int, tokens: Sequence[int]) -> bool:
        """Whether a translation of the sentence at this index contains what it must."""

    def search(
        self,
        models: "Sequence[Transformer]",
        source_BS: "Tensor",
        config: DecodeConfig,
        prefixes: Sequence[list[int]],
    ) -> list[list[Hypothesis]]:
        """Like `beam_search`, but with constraints.

        If a sentence cannot meet all constraints, the search drops its longest constraints.
        """


class Engine(Protocol):
    """A model, or an ensemble, that searches for translations."""

    config: DecodeConfig
    ahead: bool  # whether it searches in its own threads and accepts more work in the meantime
    # Maximum tokens per sentence, including the end symbol. None: limited only by the model.
    longest: int | None

    def with_search(self, config: DecodeConfig) -> "Engine":
        """An engine with the same weights but other search settings.

        Raises NMTError if the engine does not support them.
        """

    def search(
        self,
        sentences: Sequence[list[int]],
        prefixes: Sequence[list[int]],
        constraints: Constraints | None = None,
    ) -> list[list[Hypothesis]]:
        """The n_best hypotheses of each sentence, best first, beginning with its prefix.

        Sentences and prefixes have no start or end symbols. No sentence is empty. A sentence has no
        hypotheses if the model's weights are not finite, or if min_length conflicts with
        no_repeat_ngram_size.
        """

    def token_scores(self, pairs: Sequence[Pair], align: bool = True) -> list[TokenScores]:
        """The scores of given translations.

        With `align`, also the attention of the layer that aligns words.
        """


def penalty(length: Any, config: DecodeConfig) -> Any:
    """lp(Y) = ((5 + |Y|) / 6)^alpha (section 6.1; Wu et al. 2016, equation 14).

    In Marian, it is |Y|^alpha. |Y| is a number or a tensor and includes the end symbol.
    """
    # The same alpha means different penalties: most toolkits' 0.6 is not the paper's 0.6.
    base = length if config.length_penalty_kind == "marian" else (5 + length) / 6
    return base**config.length_penalty


def batch_tokens(config: DecodeConfig, device: str) -> int:
    """Maximum source tokens per batch on a device, whose type is "cpu" or another."""
    if config.batch_tokens is not None:
        return config.batch_tokens
    tokens = CPU_BATCH_TOKENS if device == "cpu" else GPU_BATCH_TOKENS
    # Greedy search has one hypothesis per sentence instead of four by default, so a batch holds
    # four times as many sentences.
    is_greedy = config.beam_size == 1 and not config.do_sample
    return 4 * tokens if is_greedy else tokens


def aligning_layer(layers: int) -> int:
    """Index of the layer that aligns best: the second to last (Garg et al. 2019).

    With up to 3 layers, it is the last.
    """
    return layers - 2 if layers > 3 else layers - 1


def batches_by_length(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Indices of items, longest first, in batches of at most `budget` tokens, including padding.

    An item longer than `budget` gets its own batch. Batch sizes above 16 are multiples of 8,
    because oneDNN builds a kernel for each shape.
    """
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    begin = 0
    while begin < len(order):
        # The first sentence of a batch is its longest, so all rows are padded to this length.
        size = max(1, budget // lengths[order[begin]])
        if size > 16:
            size -= size % 8
        yield order[begin : begin + size]
        begin += size
