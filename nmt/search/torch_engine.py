"""PyTorch search on any device."""

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from pathlib import Path
from typing import Any

import torch

from nmt.config import DecodeConfig, NMTError, require
from nmt.kernels import few_shapes, keep_freed_memory
from nmt.model import Transformer, load_model
from nmt.search.beam_search import beam_search, pad_source
from nmt.search.engine import Constraints, EngineOptions, Hypothesis, Pair, TokenScores, batches_by_length
from nmt.search.forced import forced_decoding


def choose_device(name: str) -> str:
    """Resolve a device name; auto is cuda if available, else cpu. NMTError if PyTorch cannot use the device."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        raise NMTError(f"device={name}: not available here ({str(error).splitlines()[0]}); use device=cpu") from error
    return name


def load(folders: Sequence[Path], options: EngineOptions, notice: Callable[[str], None]) -> "TorchEngine":
    keep_freed_memory()
    if options.threads:
        torch.set_num_threads(options.threads)
    device, dtype = choose_device(options.device), getattr(torch, options.precision)
    models = [load_model(folder, device).to(dtype) for folder in folders]
    return TorchEngine(models, options.decode, keeps_kernels=True)


class TorchEngine:
    """A model, or an ensemble of models that share a vocabulary; puts the models in evaluation mode.

    `keeps_kernels` lets oneDNN keep many kernels; do not use it in a process that trains.
    """

    longest: int | None = None
    ahead = False
    turn: AbstractContextManager[Any] = threading.Lock()  # held for each batch, so that threads take turns

    def __init__(self, models: Sequence[Transformer], config: DecodeConfig, keeps_kernels: bool = False) -> None:
        self.models, self.config, self.keeps_kernels = [model.eval() for model in models], config, keeps_kernels

    def with_search(self, config: DecodeConfig) -> "TorchEngine":
        other = copy(self)
        other.config = config
        return other

    def search(
        self, sentences: Sequence[list[int]], prefixes: Sequence[list[int]], constraints: Constraints | None = None
    ) -> list[list[Hypothesis]]:
        """Search in batches of similar length; see `Engine`. Raises NMTError if a sentence has no translation."""
        results: list[list[Hypothesis]] = [[] for _ in sentences]
        rows = constraints.rows if constraints else [()] * len(sentences)
        device = next(self.models[0].parameters()).device
        # Search constrained sentences separately, so that they do not affect the other sentences.
        for part in ([n for n, row in enumerate(rows) if not row], [n for n, row in enumerate(rows) if row]):
            for batch in batches_by_length([len(sentences[n]) + 1 for n in part], self.config.batch_tokens):
                batch = [part[n] for n in batch]
                source_BS = pad_source([sentences[n] for n in batch], device)
                arguments = self.models, source_BS, self.config, [prefixes[n] for n in batch]
                search = constraints.of(batch).search if constraints and rows[batch[0]] else beam_search
                with self.turn, few_shapes() if self.keeps_kernels else nullcontext():
                    for index, hypotheses in zip(batch, search(*arguments), strict=True):
                        results[index] = hypotheses
        causes = "the model has non-finite weights, or min_length conflicts with no_repeat_ngram_size"
        require(all(results), f"a line has no translation: {causes}")
        return results

    def token_scores(self, pairs: Sequence[Pair], align: bool = True) -> list[TokenScores]:
        with self.turn:
            return forced_decoding(self.models, pairs, self.config.batch_tokens, align)
