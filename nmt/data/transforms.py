"""Changes of training pairs on their way into a micro-batch, such as noise; plugins register them as "transform"."""

from collections.abc import Sequence
from dataclasses import dataclass
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
    """Made by a factory `(tokenizer_file, sources, seed) -> Transform | None`; None where no source asks for it.

    The factory raises NMTError where the vocabulary does not suffice. Arrays are [sources].
    """

    growth: NDArray[np.float64]
    """Sentences may get this many times longer, in tokens: they are planned with these lengths."""

    def __call__(self, pairs: list[IdPair], sources: Ints, planned: MicroBatch) -> list[IdPair]:
        """The pairs of a micro-batch after the change, a function of the seed and the numbers in `planned`."""


def transforms_for(tokenizer_file: Path, sources: Sequence[SourceConfig], seed: int) -> list[Transform]:
    """All registered transforms that a source asks for."""
    made = (entry.load()(tokenizer_file, sources, seed) for entry in entries_of("transform").values())
    return [transform for transform in made if transform is not None]


@dataclass
class PlannedBatches:
    """The batches of planned micro-batches: pairs of a split, after all transforms."""

    split: PreparedSplit
    bounds: Ints | None = None
    """The first row of each source, and the end of the last one; None without transforms."""
    transforms: Sequence[Transform] = ()

    def batch(self, planned: MicroBatch) -> Batch:
        """The sentences of a micro-batch. A pair that would get longer than planned for stays as it was."""
        return self.sentences(planned)._replace(
            update=planned.update, micro_batch=planned.micro_batch, size=planned.size
        )

    def sentences(self, planned: MicroBatch) -> Batch:
        if self.bounds is None:
            return self.split.batch(planned.indices)
        rows = self.split.table[planned.indices]
        pairs = list(zip(*(rows.column(side).to_pylist() for side in ("source", "target")), strict=True))
        sources = np.searchsorted(self.bounds, planned.indices, side="right") - 1
        for transform in self.transforms:
            changed = transform(pairs, sources, planned)
            fits = [all(len(ids) < width for ids, width in zip(pair, planned.widths, strict=True)) for pair in changed]
            pairs = [new if fit else old for old, new, fit in zip(pairs, changed, fits, strict=True)]
        return padded_batch(*(pa.array(side, pa.list_(pa.int32())) for side in zip(*pairs, strict=True)))
