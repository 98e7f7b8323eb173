"""What changes training pairs, for example by adding noise. Imports neither torch nor Lightning."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nmt.config import SourceConfig
from nmt.data.lengths import Ints
from nmt.data.planning import MicroBatch
from nmt.extensions import TransformEntry
from nmt.registry import entries_of

IdPair = tuple[list[int], list[int]]
"""The ids of source and target, without end symbols."""


class Transform(Protocol):
    """Changes training pairs, for example by adding noise.

    A plugin adds a `TransformEntry`, whose function makes the transform for a corpus.
    """

    growth: NDArray[np.float64]
    """The factor by which this transform is expected to lengthen sentences, [sources]."""

    def __call__(self, pairs: list[IdPair], sources: Ints, planned: MicroBatch) -> list[IdPair]:
        """Change the pairs of a micro-batch.

        Random choices depend only on the seed and the numbers in `planned`.
        """


def transforms_for(
    tokenizer_file: Path, sources: Sequence[SourceConfig], seed: int
) -> list[Transform]:
    """The transforms that the options of these sources ask for."""
    transforms = []
    for entry in entries_of(TransformEntry).values():
        transform: Transform | None = entry.load()(tokenizer_file, sources, seed)
        if transform is not None:
            transforms.append(transform)
    return transforms
