"""Search by torch, on any device."""

from collections.abc import Sequence
from contextlib import nullcontext

import numpy as np
import numpy.typing as npt

from nmt.config import DecodeConfig
from nmt.errors import NMTError
from nmt.kernels.linear import few_shapes
from nmt.model import Transformer
from nmt.search.beam_search import beam_search, pad_source
from nmt.search.engine import Hypothesis, Pair, TokenScores, batches_by_length
from nmt.search.forced_decoding import forced_decoding, next_log_probabilities


class TorchEngine:
    """A model, or an ensemble of models with one vocabulary, in evaluation mode from now on.

    `keeps_kernels`: oneDNN may keep many kernels in this process, because nothing is trained in it.
    """

    def __init__(self, models: Sequence[Transformer], config: DecodeConfig, keeps_kernels: bool = False) -> None:
        self.models, self.config, self.keeps_kernels = [model.eval() for model in models], config, keeps_kernels

    def with_search(self, config: DecodeConfig) -> "TorchEngine":
        return TorchEngine(self.models, config, self.keeps_kernels)

    def search(self, sentences: Sequence[list[int]], prefixes: Sequence[list[int]]) -> list[list[Hypothesis]]:
        """The n_best hypotheses of each sentence, searched in batches of similar length.

        Raises NMTError if a sentence has none.
        """
        results: list[list[Hypothesis]] = [[] for _ in sentences]
        device = next(self.models[0].parameters()).device
        with few_shapes() if self.keeps_kernels else nullcontext():
            for batch in batches_by_length([len(ids) + 1 for ids in sentences], self.config.batch_tokens):
                source_BS = pad_source([sentences[index] for index in batch], device)
                found = beam_search(self.models, source_BS, self.config, [prefixes[index] for index in batch])
                for index, hypotheses in zip(batch, found, strict=True):
                    results[index] = hypotheses
        if not all(results):
            raise NMTError(
                "a line has no translation at all: the model's weights are not all finite numbers, or "
                "decode.min_length and decode.no_repeat_ngram_size exclude each other"
            )
        return results

    def token_scores(self, pairs: Sequence[Pair]) -> list[TokenScores]:
        return forced_decoding(self.models, pairs, self.config.batch_tokens, align=True)

    def next_token(self, pair: Pair) -> npt.NDArray[np.float32]:
        return next_log_probabilities(self.models, pair).cpu().numpy()
