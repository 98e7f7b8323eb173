"""Logistic regression with a little L2 regularization, by Newton's method."""

from dataclasses import dataclass

import numpy as np

from nmt.plugins.quality.isotonic import Numbers

PENALTY = 1.0
"""Half of this times the sum of squared coefficients is added to the loss of all lines."""
MOST_STEPS = 50
SMALL_STEP = 1e-9
"""The largest change of a coefficient at which Newton's method has converged."""
SMALLEST_SCALE = 1e-9
"""Features are rounded to five decimals, so a smaller deviation is a rounding error of the mean."""


@dataclass
class Logistic:
    """A linear score of features, which grows with the probability that a line is good."""

    means: list[float]
    scales: list[float]
    coefficients: list[float]
    """For features from which the mean is subtracted, and which are divided by the scale."""
    intercept: float

    def scores(self, features_LF: Numbers) -> Numbers:
        """The scores of lines, [lines], given their features, [lines, features]."""
        standardized = (features_LF - np.array(self.means)) / np.array(self.scales)
        # Summed feature by feature: the order of a matrix product depends on the number of lines,
        # and a resumed job must find the same probabilities.
        scores = np.full(len(features_LF), self.intercept)
        for column, coefficient in enumerate(self.coefficients):
            scores += standardized[:, column] * coefficient
        return scores


def logistic(features_LF: Numbers, is_good_L: Numbers) -> Logistic:
    """Fit the features of lines to their outcomes (1: good, 0: not good)."""
    means = features_LF.mean(axis=0)
    scales = features_LF.std(axis=0)
    # A constant feature becomes 0 everywhere.
    scales[scales < SMALLEST_SCALE] = 1.0
    lines = len(features_LF)
    # The last column is the intercept, which is not penalized.
    design = np.hstack([(features_LF - means) / scales, np.ones((lines, 1))])
    penalty = np.full(design.shape[1], PENALTY)
    penalty[-1] = 1e-6  # keeps it finite if all lines are good
    weights = np.zeros(design.shape[1])
    for _ in range(MOST_STEPS):
        # Clipped, because exp overflows above 709.
        probabilities = 1 / (1 + np.exp(np.clip(-design @ weights, -500, 500)))
        gradient = design.T @ (probabilities - is_good_L) + penalty * weights
        curvature = (design.T * (probabilities * (1 - probabilities))) @ design
        step = np.linalg.solve(curvature + np.diag(penalty), gradient)
        # Far from the optimum, whole steps may overshoot.
        weights = weights - step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < SMALL_STEP:
            break
    return Logistic(means.tolist(), scales.tolist(), weights[:-1].tolist(), float(weights[-1]))
