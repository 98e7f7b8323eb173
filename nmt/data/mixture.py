"""Mixtures of corpora: the sources of each stage of a training, and how often their pairs occur.

A stage is a stretch of updates in which the same sources are used. The rows of a prepared corpus are those of its first
source, then those of its second one, and so on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nmt.config import SourceConfig
from nmt.errors import NMTError

MOST_COPIES = 64
"""The most sentences in a pass, for each pair of the corpus."""


@dataclass
class Stage:
    """A stretch of updates with the same sources."""

    start: int
    """Its first update, counted from 0."""
    copies: NDArray[np.float64]
    """For each source, the occurrences of each of its pairs in a pass, mostly 1 or more; 0 for one that is not used."""


def shares(sources: Sequence[SourceConfig], sizes: Sequence[int], temperature: float) -> list[float]:
    """The share of each source in the sentences of an update: its own, or by its size (Arivazhagan et al. 2019).

    What the sources with a `share` leave is divided in proportion to (weight x pairs)^(1 / temperature).
    """
    own = [source.share for source in sources]
    parts = [
        0.0 if source.share is not None else (source.weight * size) ** (1 / temperature)
        for source, size in zip(sources, sizes, strict=True)
    ]
    left = 1 - sum(share for share in own if share is not None) if any(parts) else 0.0
    total = sum(parts) or 1.0
    found = [left * part / total if share is None else share for share, part in zip(own, parts, strict=True)]
    return [share / sum(found) for share in found]


def last_stage(sources: Sequence[SourceConfig]) -> int:
    """The first update of the last stage, counted from 0."""
    return max(bound for source in sources for bound in (source.start, source.stop or 0))


def is_used(source: SourceConfig, update: int) -> bool:
    return source.start <= update and (source.stop is None or update < source.stop)


def stages(sources: Sequence[SourceConfig], sizes: Sequence[int], temperature: float) -> list[Stage]:
    """The stages of a training, first to last."""
    starts = sorted({0, *(bound for source in sources for bound in (source.start, source.stop) if bound is not None)})
    found = []
    for start in starts:
        used = [number for number, source in enumerate(sources) if is_used(source, start)]
        if not used:
            raise NMTError(f"data.sources: none of them is used from update {start:,} on; raise stop of one")
        own = np.array([sizes[number] for number in used])
        chosen = np.array(shares([sources[number] for number in used], own.tolist(), temperature))
        # Every pair occurs once in a pass, or more often, unless that would make passes too long.
        taken = chosen * min(np.max(own / np.maximum(chosen, 1e-12)), MOST_COPIES * own.sum())
        if taken.min() < 1:
            name = sources[used[int(taken.argmin())]].name
            raise NMTError(
                f"data.sources: the shares and weights leave {name} less than a sentence in {taken.sum():,.0f}"
            )
        copies = np.zeros(len(sources))
        copies[used] = taken / own
        found.append(Stage(start, copies))
    return found
