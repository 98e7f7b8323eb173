"""Measure activations, for the factors by which the engine multiplies them before it rounds."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from nmt import search
from nmt.config import DecodeConfig
from nmt.model import Transformer
from nmt.plugins.bergamot.container import EMBEDDING, SCALE, Array
from nmt.plugins.exchange.parameters import layer_parameters

LINES_PER_BATCH = 32
"""Lines per batch when activations are measured, as in Mozilla's pipeline."""
DEVIATIONS = 1.1
"""Largest activation to represent: the mean of the batches' largest plus this many standard
deviations (Mozilla's)."""
GREEDY = DecodeConfig(beam_size=1)


# A dispatch mode sees every operation, so the model needs no hooks.
class Largest(TorchDispatchMode):
    """Records the largest activation of each product with a weight, by Marian's names.

    Recognizes a weight by its address: nmt may multiply by a part of a matrix, or by several of
    Marian's matrices at once.
    """

    def __init__(self, model: Transformer) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.values: defaultdict[str, list[float]] = defaultdict(list)
        self.addresses = {EMBEDDING: model.output.weight.data_ptr()}
        state = model.state_dict()
        for row in layer_parameters(model.config):
            is_matrix = len(row.shape) == 2
            if not is_matrix:
                continue
            # Queries, keys and values are one matrix of nmt, but three of Marian's.
            rows = row.shape[0] // len(row.marian)
            for number, name in enumerate(row.marian):
                part = state[row.ours][number * rows :]
                self.addresses[name] = part.data_ptr()

    def __torch_dispatch__(
        self,
        function: Any,
        types: Any,
        arguments: Any = (),
        options: Any = None,
    ) -> Any:
        # A bias has one dimension, so `addmm` has two such arguments, too.
        factors = [x for x in arguments if may_be_factor(x)]
        if len(factors) == 2:
            left, right = factors
            # Which factor is the weight depends on the operation, so both are tried.
            self.record(left, right)
            self.record(right, left)
        return function(*arguments, **(options or {}))

    def record(self, x: Tensor, weight: Tensor) -> None:
        """Record the largest activation in x for all of Marian's matrices in a weight."""
        begin = weight.data_ptr()
        end = begin + weight.nbytes
        names = [name for name, address in self.addresses.items() if begin <= address < end]
        for name in names:
            self.values[name].append(float(x.abs().max()))


def may_be_factor(x: Any) -> bool:
    """Whether an argument of an operation may be a factor of a matrix product."""
    return isinstance(x, Tensor) and x.dim() >= 2 and x.is_floating_point()


def scales(model: Transformer, sources: Sequence[list[int]], is_shared: bool) -> dict[str, Array]:
    """The factor by which to multiply the activations of each product before rounding to int8.

    `is_shared` says whether source and target have the same embeddings.
    """
    engine = search.TorchEngine([model], GREEDY)
    largest = Largest(model)
    for start in range(0, len(sources), LINES_PER_BATCH):
        batch = sources[start : start + LINES_PER_BATCH]
        # Around the search alone, which is greedy as in the engine.
        with largest:
            engine.search(batch, [[]] * len(batch))
    alphas = {}
    for name, values in largest.values.items():
        place = name
        if name == EMBEDDING and not is_shared:
            # The output product multiplies by the target's matrix.
            place = f"decoder_{EMBEDDING}"
        represented = np.mean(values) + DEVIATIONS * np.std(values)
        # Larger activations are cut off, so that a single outlier does not coarsen all others.
        alphas[place + SCALE] = 127 / represented
    if is_shared:
        alphas[f"none{SCALE}"] = alphas[EMBEDDING + SCALE]
    return {name: np.array([[alpha]], np.float32) for name, alpha in alphas.items()}
