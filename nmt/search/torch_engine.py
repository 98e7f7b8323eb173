"""Search with PyTorch, on any device."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy
from pathlib import Path
from typing import Any

import torch

from nmt.config import DecodeConfig, NMTError
from nmt.kernels import few_shapes, prepare
from nmt.model import Transformer, load_model
from nmt.search.batches import pad_source
from nmt.search.beam_search import beam_search
from nmt.search.engine import (
    Constraints,
    EngineOptions,
    Hypothesis,
    Pair,
    TokenScores,
    batch_tokens,
    batches_by_length,
)
from nmt.search.forced import forced_decoding


def choose_device(name: str) -> str:
    """Resolve a device name: auto is cuda if available, else cpu.

    Raises NMTError if PyTorch cannot use the device.
    """
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=name)
    # A build of torch without CUDA raises AssertionError.
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise NMTError(f"device={name}: not available here ({reason}); use device=cpu") from error
    return name


@contextmanager
def without_deterministic_mode() -> Iterator[None]:
    """Allow all operations in a block, where training may have turned deterministic mode on.

    In that mode, some operations of a search raise on a GPU, such as cumulative sums (top_p).
    """
    before = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("default")
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before)


def load(
    folders: Sequence[Path],
    options: EngineOptions,
    notice: Callable[[str], None],
) -> "TorchEngine":
    prepare()
    if options.threads:
        torch.set_num_threads(options.threads)
    device = choose_device(options.device)
    dtype = getattr(torch, options.precision)
    models = [load_model(folder, device).to(dtype) for folder in folders]
    # What calls this only translates. A process that trains passes its own models to TorchEngine.
    return TorchEngine(models, options.decode, keeps_kernels=True)


class TorchEngine:
    """A model, or an ensemble of models that share a vocabulary.

    It puts the models in evaluation mode. `keeps_kernels` lets oneDNN keep many kernels; do not use
    it in a process that trains.
    """

    longest: int | None = None
    ahead = False
    # Belongs to the class, so that all engines in a process take turns.
    turn: AbstractContextManager[Any] = threading.Lock()
    """Held for each batch, so that threads take turns."""

    def __init__(
        self,
        models: Sequence[Transformer],
        config: DecodeConfig,
        keeps_kernels: bool = False,
    ) -> None:
        self.models = [model.eval() for model in models]
        self.config = config
        self.keeps_kernels = keeps_kernels

    @property
    def device(self) -> torch.device:
        return next(self.models[0].parameters()).device

    @property
    def batch_tokens(self) -> int:
        return batch_tokens(self.config, self.device.type)

    def with_search(self, config: DecodeConfig) -> "TorchEngine":
        # A shallow copy: both engines share the weights.
        other = copy(self)
        other.config = config
        return other

    def search(
        self,
        sentences: Sequence[list[int]],
        prefixes: Sequence[list[int]],
        constraints: Constraints | None = None,
    ) -> list[list[Hypothesis]]:
        """Search in batches of similar length; see `Engine`."""
        indices = range(len(sentences))
        if constraints is None:
            results = self.search_part(sentences, prefixes, indices, None)
        else:
            # Constrained sentences go into separate batches, so that they do not affect the rest.
            constrained = [index for index in indices if constraints.rows[index]]
            free = [index for index in indices if not constraints.rows[index]]
            results = self.search_part(sentences, prefixes, free, None)
            results |= self.search_part(sentences, prefixes, constrained, constraints)
        # Batches follow lengths; results follow the sentences.
        return [results[index] for index in indices]

    def search_part(
        self,
        sentences: Sequence[list[int]],
        prefixes: Sequence[list[int]],
        part: Sequence[int],
        constraints: Constraints | None,
    ) -> dict[int, list[Hypothesis]]:
        """Index -> hypotheses, for the sentences at the indices in `part`."""
        results: dict[int, list[Hypothesis]] = {}
        lengths = [len(sentences[index]) + 1 for index in part]
        for numbers in batches_by_length(lengths, self.batch_tokens):
            batch = [part[number] for number in numbers]
            sources = [sentences[index] for index in batch]
            source_BS = pad_source(sources, self.device)
            beginnings = [prefixes[index] for index in batch]
            search = constraints.of(batch).search if constraints else beam_search
            kernels = few_shapes() if self.keeps_kernels else nullcontext()
            # The turn comes first: deterministic mode belongs to the process, so only one thread
            # may switch and restore it.
            with self.turn, without_deterministic_mode(), kernels:
                hypotheses = search(self.models, source_BS, self.config, beginnings)
            results.update(zip(batch, hypotheses, strict=True))
        return results

    def token_scores(self, pairs: Sequence[Pair], align: bool = True) -> list[TokenScores]:
        with self.turn, without_deterministic_mode():
            return forced_decoding(self.models, pairs, self.batch_tokens, align)
