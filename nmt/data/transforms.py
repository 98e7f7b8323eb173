"""Changes of training pairs on their way into a micro-batch, such as noise; plugins register them as "transform"."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nmt.config import SourceConfig
from nmt.data.planning import MicroBatch
from nmt.data.prepared import Batch, PreparedSplit, padded_batch
from nmt.data.shuffling import Ints
from nmt.registry import entries_of

IdPair = tuple[list[int], list[int]]
"""Source and target ids, without end symbols."""


class Transform(Protocol):
    """What a factory `(tokenizer_file, sources, seed) -> Transform | None` makes, None where no source asks for it.

    The factory raises NMTError where the vocabulary cannot do what is asked. Arrays are [sources].
    """

    growth: NDArray[np.float64]
    """Sentences may get this many times longer, in tokens: they are planned with these lengths."""

    def __call__(self, pairs: list[IdPair], sources: Ints, planned: MicroBatch) -> list[IdPair]:
        """The pairs of a micro-batch after the change, of which the seed and the numbers in `planned` decide."""


def transforms_for(tokenizer_file: Path, sources: Sequence[SourceConfig], seed: int) -> list[Transform]:
    """All registered transforms that a source asks for."""
    made = (entry.load()(tokenizer_file, sources, seed) for entry in entries_of("transform").values())
    return [transform for transform in made if transform is not None]


class TransformedSplit:
    """A split whose micro-batches pass through transforms."""

    def __init__(self, split: PreparedSplit, bounds: Ints, transforms: list[Transform]) -> None:
        self.split, self.bounds, self.transforms = split, bounds, transforms

    def batch(self, planned: MicroBatch) -> Batch:
        """The sentences of a micro-batch. A pair that would get longer than was planned for stays as it was."""
        rows = self.split.table[planned.indices]
        pairs = list(zip(*(rows.column(side).to_pylist() for side in ("source", "target")), strict=True))
        sources = np.searchsorted(self.bounds, planned.indices, side="right") - 1
        for transform in self.transforms:
            changed = transform(pairs, sources, planned)
            fits = [all(len(ids) < width for ids, width in zip(pair, planned.widths, strict=True)) for pair in changed]
            pairs = [new if fit else old for old, new, fit in zip(pairs, changed, fits, strict=True)]
        return padded_batch(*(pa.array(side, pa.list_(pa.int32())) for side in zip(*pairs, strict=True)))
