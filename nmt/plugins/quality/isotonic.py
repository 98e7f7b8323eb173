"""Isotonic regression: the non-decreasing function of a score that is nearest to the outcomes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.float64]


@dataclass
class Block:
    """Neighboring values that have the same mean in the result."""

    mean: float
    weight: float
    count: int

    def with_next(self, other: "Block") -> "Block":
        weight = self.weight + other.weight
        mean = (self.mean * self.weight + other.mean * other.weight) / weight
        return Block(mean, weight, self.count + other.count)


def isotonic(values: ArrayLike, weights: ArrayLike) -> Numbers:
    """The non-decreasing sequence with the least weighted squared distance from `values`.

    Pools adjacent violators (Barlow et al. 1972). Weights are positive.
    """
    blocks = list[Block]()
    pairs = zip(np.asarray(values, float), np.asarray(weights, float), strict=True)
    for value, weight in pairs:
        last = Block(float(value), float(weight), 1)
        while blocks and blocks[-1].mean >= last.mean:
            last = blocks.pop().with_next(last)
        blocks.append(last)
    means = [block.mean for block in blocks]
    return np.repeat(np.array(means, float), [block.count for block in blocks])


@dataclass
class Calibration:
    """A non-decreasing function from scores to probabilities, linear between its points."""

    scores: list[float]
    """The scores of the points, in ascending order."""
    probabilities: list[float]
    """The probability at each point."""

    def probabilities_of(self, scores: Numbers) -> Numbers:
        """The probabilities of scores; beyond the points, that of the nearest point."""
        return np.asarray(np.interp(scores, self.scores, self.probabilities), np.float64)


def calibration(
    scores: Sequence[float] | Numbers, is_good: Sequence[bool] | Numbers
) -> Calibration:
    """Calibrate scores by the outcomes of their lines.

    One imaginary good line at the lowest score and one imaginary bad line at the highest score keep
    all probabilities between 0 and 1: a few good lines in a row do not prove that all are.
    """
    assert len(scores) > 0
    all_scores = np.concatenate([scores, [np.min(scores), np.max(scores)]])
    outcomes = np.concatenate([np.asarray(is_good, float), [1.0, 0.0]])
    # Lines with the same score have the same probability.
    points, groups = np.unique(all_scores, return_inverse=True)
    weights = np.bincount(groups).astype(float)
    means = np.bincount(groups, outcomes) / weights
    fitted = isotonic(means, weights)
    # The first and last point of each block suffice: all points between them are on the line.
    is_corner = np.ones(len(points), bool)
    is_corner[1:-1] = (fitted[1:-1] != fitted[:-2]) | (fitted[1:-1] != fitted[2:])
    return Calibration(points[is_corner].tolist(), fitted[is_corner].tolist())
