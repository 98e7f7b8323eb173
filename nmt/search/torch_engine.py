"""Search by torch, on any device."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from nmt.config import DecodeConfig
from nmt.errors import NMTError
from nmt.kernels import few_shapes
from nmt.model import Transformer
from nmt.plugins.protection.constrained_search import constrained_search
from nmt.plugins.protection.constraints import Constraints
from nmt.search.beam_search import beam_search, pad_source
from nmt.search.engine import Hypothesis, Pair, TokenScores, batches_by_length
from nmt.search.forced_decoding import forced_decoding, next_log_probabilities
from nmt.search.workers import FORKS, WORTH_SHARING, Workers, forked

Result = TypeVar("Result")


def search_batch(
    models: Sequence[Transformer],
    config: DecodeConfig,
    keeps_kernels: bool,
    sentences: Sequence[list[int]],
    prefixes: Sequence[list[int]],
    constraints: Constraints | None,
) -> list[list[Hypothesis]]:
    """The n_best hypotheses of each sentence of a batch, with constraints for all of them or for none."""
    source_BS = pad_source(sentences, next(models[0].parameters()).device)
    with few_shapes() if keeps_kernels else nullcontext():
        if constraints:
            return constrained_search(models, source_BS, config, prefixes, constraints)
        return beam_search(models, source_BS, config, prefixes)


class TorchEngine:
    """A model, or an ensemble of models with one vocabulary, in evaluation mode from now on.

    `keeps_kernels`: oneDNN may keep many kernels in this process, because nothing is trained in it.
    """

    def __init__(self, models: Sequence[Transformer], config: DecodeConfig, keeps_kernels: bool = False) -> None:
        self.models, self.config, self.keeps_kernels = [model.eval() for model in models], config, keeps_kernels
        self.workers: Workers | None = None

    def with_search(self, config: DecodeConfig) -> "TorchEngine":
        other = copy(self)
        other.config = config
        return other

    @contextmanager
    def sharing(self, threads: int | None) -> Iterator[None]:
        """Within the block, use so many cores of a processor, None: all, each by a process where work is enough."""
        before = torch.get_num_threads()
        count = threads or before
        torch.set_num_threads(count)
        shared = count > 1 and FORKS and next(self.models[0].parameters()).device.type == "cpu"
        try:
            with forked(self.models, count) if shared else nullcontext() as self.workers:
                yield
        finally:
            self.workers = None
            torch.set_num_threads(before)

    def batches(self, lengths: Sequence[int]) -> list[list[int]]:
        """Indices of items in batches of similar length; if there is enough for all workers, as many for each."""
        tokens, budget = sum(lengths), self.config.batch_tokens
        if self.workers and tokens >= WORTH_SHARING * self.workers.count:
            rounds = math.ceil(tokens / budget / self.workers.count)
            budget = math.ceil(tokens / rounds / self.workers.count)
        return list(batches_by_length(lengths, budget))

    def run(self, task: Callable[..., Result], each: Sequence[tuple[Any, ...]]) -> list[Result]:
        """The results of a task on the models for each of these arguments, by the workers where they are of use."""
        if self.workers and len(each) > 1:
            return self.workers.run(task, each)
        return [task(self.models, *arguments) for arguments in each]

    def search(
        self, sentences: Sequence[list[int]], prefixes: Sequence[list[int]], constraints: Constraints | None = None
    ) -> list[list[Hypothesis]]:
        """The n_best hypotheses of each sentence, searched in batches of similar length.

        Where no translation has all constraints, the last ones are given up. Raises NMTError if a sentence has none.
        """
        results: list[list[Hypothesis]] = [[] for _ in sentences]
        every, rows = range(len(sentences)), constraints.rows if constraints else [()] * len(sentences)
        # Sentences without constraints are apart, so that they are searched as if there were no others.
        parts = [[i for i in every if bool(rows[i]) is constrained] for constrained in (False, True)]
        batches = [
            [part[i] for i in batch] for part in parts for batch in self.batches([len(sentences[i]) + 1 for i in part])
        ]
        how = self.config, self.keeps_kernels
        each = [
            (
                *(*how, [sentences[i] for i in batch], [prefixes[i] for i in batch]),
                constraints.of(batch) if constraints and rows[batch[0]] else None,
            )
            for batch in batches
        ]
        for batch, found in zip(batches, self.run(search_batch, each), strict=True):
            for index, hypotheses in zip(batch, found, strict=True):
                results[index] = hypotheses
        if not all(results):
            raise NMTError(
                "a line has no translation at all: the model's weights are not all finite numbers, or "
                "decode.min_length and decode.no_repeat_ngram_size exclude each other"
            )
        return results

    def token_scores(self, pairs: Sequence[Pair]) -> list[TokenScores]:
        scores: dict[int, TokenScores] = {}
        batches = self.batches([max(map(len, pair)) + 1 for pair in pairs])
        each = [([pairs[index] for index in batch], self.config.batch_tokens, True) for batch in batches]
        for batch, found in zip(batches, self.run(forced_decoding, each), strict=True):
            scores.update(zip(batch, found, strict=True))
        return [scores[index] for index in range(len(pairs))]

    def next_token(self, pair: Pair) -> npt.NDArray[np.float32]:
        return next_log_probabilities(self.models, pair).cpu().numpy()
