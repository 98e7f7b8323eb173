"""Search by torch, on any device."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

import torch
from torch import Tensor

from nmt.config import EOS, PAD, DecodeConfig
from nmt.errors import NMTError
from nmt.kernels.linear import few_shapes
from nmt.model import Transformer
from nmt.search.beam_search import beam_search
from nmt.search.engine import Hypothesis, batches_by_length


def pad_source(sentences: Sequence[list[int]], device: torch.device) -> Tensor:
    """Token ids -> [B, S], each sentence closed by the end symbol, then padding."""
    longest = max(map(len, sentences)) + 1
    rows = [ids + [EOS] + [PAD] * (longest - len(ids) - 1) for ids in sentences]
    return torch.tensor(rows, device=device)


@contextmanager
def evaluating(models: Sequence[Transformer]) -> Iterator[None]:
    """Turn dropout off; afterwards models that were training go on."""
    training = [model for model in models if model.training]
    for model in training:
        model.eval()
    try:
        yield
    finally:
        for model in training:
            model.train()


class TorchEngine:
    """A model, or an ensemble of models of one vocabulary.

    `keeps_kernels`: oneDNN keeps many kernels in this process, as it does where nothing is trained.
    """

    def __init__(self, models: Sequence[Transformer], config: DecodeConfig, keeps_kernels: bool = False) -> None:
        self.models, self.config, self.keeps_kernels = models, config, keeps_kernels

    def search(self, sentences: Sequence[list[int]], prefixes: Sequence[list[int]]) -> list[list[Hypothesis]]:
        """The n_best hypotheses of each sentence, in batches of sentences of similar length.

        Raises NMTError where a sentence has none.
        """
        results: list[list[Hypothesis]] = [[] for _ in sentences]
        device = next(self.models[0].parameters()).device
        with evaluating(self.models), few_shapes() if self.keeps_kernels else nullcontext():
            for batch in batches_by_length([len(ids) + 1 for ids in sentences], self.config.batch_tokens):
                source_BS = pad_source([sentences[index] for index in batch], device)
                found = beam_search(self.models, source_BS, self.config, [prefixes[index] for index in batch])
                for index, hypotheses in zip(batch, found, strict=True):
                    if not hypotheses:
                        raise NMTError(
                            "a line has no translation at all: the model's weights are not all finite numbers, or "
                            "decode.min_length and decode.no_repeat_ngram_size exclude each other"
                        )
                    results[index] = hypotheses
        return results
