"""Fit the probability that a translation is good to features of lines with known outcomes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from nmt.plugins.quality.isotonic import Calibration, Numbers, calibration
from nmt.plugins.quality.logistic import Logistic, logistic

Signs = Mapping[str, int]
"""Feature -> 1 if it can only raise the probability, -1 if it can only lower it."""
FOLDS = 5
CURVE_POINTS = 50
"""The number of points of a risk-coverage curve."""


@dataclass
class Fit:
    """How the features of a line become a probability."""

    features: list[str]
    model: Logistic
    calibration: Calibration

    def probabilities(self, features: dict[str, Numbers]) -> Numbers:
        """The probabilities of lines, given the values of each feature."""
        scores = self.model.scores(columns(features, self.features))
        return self.calibration.probabilities_of(scores)


@dataclass
class Curve:
    """Risk and coverage: the lines are kept by falling probability."""

    kept: list[float]
    """Shares of all lines."""
    risk: list[float]
    """The shares of the kept lines that are not good."""
    minimum: list[float]
    """The lowest probability among the kept lines."""


def columns(features: dict[str, Numbers], names: Sequence[str]) -> Numbers:
    return np.stack([features[name] for name in names], axis=1)


def scores_out_of_fold(features_LF: Numbers, is_good_L: Numbers) -> Numbers:
    """The score of each line by a model that was fitted to the lines of the other folds."""
    folds = np.arange(len(is_good_L)) % FOLDS
    scores = np.zeros(len(is_good_L))
    for fold in range(FOLDS):
        model = logistic(features_LF[folds != fold], is_good_L[folds != fold])
        scores[folds == fold] = model.scores(features_LF[folds == fold])
    return scores


def plausible(
    features: dict[str, Numbers], names: Sequence[str], is_good: Numbers, signs: Signs
) -> list[str]:
    """The features without those whose coefficient has the wrong sign.

    Few lines have a flag. If these happen to be good, flags would raise the probability of failures
    in another domain.
    """
    kept = [*names]
    while len(kept) > 1:
        model = logistic(columns(features, kept), is_good)
        contrary = []
        for name, coefficient in zip(kept, model.coefficients, strict=True):
            if coefficient * signs.get(name, 0) < 0:
                contrary.append((abs(coefficient), name))
        if not contrary:
            break
        # One at a time, because the signs of the others may change.
        kept.remove(max(contrary)[1])
    return kept


def fitted(
    features: dict[str, Numbers],
    names: Sequence[str],
    is_good: Numbers,
    signs: Signs = MappingProxyType({}),
) -> tuple[Fit, Curve]:
    """Fit the named features to the outcomes of lines, at least FOLDS.

    The calibration and the curve use scores of lines that the scoring model has not seen. The model
    itself is then fitted to all lines.
    """
    names = plausible(features, names, is_good, signs)
    matrix = columns(features, names)
    scores = scores_out_of_fold(matrix, is_good)
    model = logistic(matrix, is_good)
    calibrated = calibration(scores, is_good)
    curve = risk_and_coverage(scores, is_good, calibrated)
    return Fit([*names], model, calibrated), curve


def risk_and_coverage(scores: Numbers, is_good: Numbers, calibrated: Calibration) -> Curve:
    """The curve of lines with these scores, at CURVE_POINTS coverages."""
    order = np.argsort(-scores, kind="stable")
    bad = np.cumsum(1 - is_good[order])
    counts = np.arange(1, len(scores) + 1)
    places = np.unique(np.linspace(0, len(scores) - 1, CURVE_POINTS + 1).round().astype(int)[1:])
    kept = counts[places] / len(scores)
    risk = bad[places] / counts[places]
    # Rounded as the probabilities of translations, which the user's minimum is compared with.
    minimum = calibrated.probabilities_of(scores[order][places])
    return Curve(kept.round(4).tolist(), risk.round(4).tolist(), minimum.round(4).tolist())
