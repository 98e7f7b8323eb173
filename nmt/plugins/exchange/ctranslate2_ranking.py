"""Ranks the hypotheses of CTranslate2 with nmt's length penalty.

CTranslate2 would rank them by log P / |Y|^alpha, and its scores are not log P(Y|X) in all cases.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nmt.config import DecodeConfig
from nmt.search import Hypothesis, Pair, penalty
from nmt.text import SOURCE


def hypotheses_to_find(config: DecodeConfig) -> int:
    """How many finished hypotheses end a beam search.

    A longer hypothesis could still win thanks to its length penalty, so the number grows with
    alpha; at first, |Y|^alpha grows faster than ((5 + |Y|) / 6)^alpha.
    """
    alpha = config.length_penalty
    if config.length_penalty_kind == "marian":
        alpha *= 4
    per_beam = max(1.0, 0.4 + alpha)
    return math.ceil(config.beam_size * per_beam) + config.n_best - 1


@dataclass(frozen=True)
class Ranking:
    """Corrects the log probabilities of hypotheses, and ranks the hypotheses of each sentence.

    `begun` are the sentences with the prefixes that their translations were forced to begin with.
    `results` are the hypotheses of each sentence, which change in place.
    """

    config: DecodeConfig
    forced_decoding: Callable[[Sequence[Pair]], list[list[float]]]
    """The log probabilities of the tokens and the end symbol of each translation."""
    max_length: Callable[[Pair], int]
    """The maximum length of a sentence's translation, including the end symbol."""

    def rank(
        self,
        begun: Sequence[Pair],
        results: list[list[Hypothesis]],
        rescore_all: bool,
    ) -> None:
        """Set the scores of hypotheses, and sort each sentence's from best to worst.

        `rescore_all` computes all log probabilities anew, because CTranslate2 suppresses symbols
        before the softmax.
        """
        self.add_prefix_scores(begun, results)
        self.rescore(begun, results, rescore_all)
        for row in results:
            for candidate in row:
                length = len(candidate.tokens) + 1  # the penalty counts the end symbol
                candidate.score = candidate.log_probability / penalty(length, self.config)
            row.sort(key=lambda candidate: -candidate.score)

    def add_prefix_scores(
        self,
        begun: Sequence[Pair],
        results: list[list[Hypothesis]],
    ) -> None:
        """Add the log probability of its prefix to each hypothesis.

        CTranslate2 counts forced tokens as 0.
        """
        prefixed = [index for index, (_, prefix) in enumerate(begun) if prefix]
        scored = self.forced_decoding([begun[index] for index in prefixed])
        for index, scores in zip(prefixed, scored, strict=True):
            without_end = sum(scores[:-1])
            for candidate in results[index]:
                candidate.log_probability += without_end

    def rescore(
        self,
        begun: Sequence[Pair],
        results: list[list[Hypothesis]],
        rescore_all: bool,
    ) -> None:
        """Compute the log probability of hypotheses of the maximum length, or of all of them.

        CTranslate2 stops at the maximum length without an end symbol, whose log probability is then
        missing.
        """
        pairs: list[Pair] = []
        candidates = []
        for pair, row in zip(begun, results, strict=True):
            longest = self.max_length(pair)
            for candidate in row:
                if rescore_all or len(candidate.tokens) + 1 == longest:
                    pairs.append((pair[SOURCE], candidate.tokens))
                    candidates.append(candidate)
        scored = self.forced_decoding(pairs)
        for candidate, scores in zip(candidates, scored, strict=True):
            candidate.log_probability = sum(scores)
