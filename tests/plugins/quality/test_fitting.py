"""The statistics behind probabilities, against brute force, definitions and identities."""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, strategies as st

from nmt.plugins.quality.fitting import fitted, plausible, risk_and_coverage
from nmt.plugins.quality.isotonic import calibration, isotonic
from nmt.plugins.quality.logistic import PENALTY, logistic

SHARES = st.floats(0, 1, allow_subnormal=False)
WEIGHTED = st.lists(st.tuples(SHARES, st.floats(0.1, 10)), min_size=1, max_size=9)
OUTCOMES = st.lists(st.tuples(st.integers(-9, 9), st.booleans()), min_size=1, max_size=40)


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    path = Path(__file__).parents[3] / "benchmarks/quality.py"
    specification = importlib.util.spec_from_file_location("quality_benchmark", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def mean(pairs: list[tuple[float, float]]) -> float:
    return sum(value * weight for value, weight in pairs) / sum(weight for _, weight in pairs)


@given(WEIGHTED)
def test_isotonic_regression_is_the_largest_least_mean_around_each_value(pairs):
    """The min-max formula (Robertson et al. 1988, theorem 1.4.4), by brute force."""
    result = isotonic([value for value, _ in pairs], [weight for _, weight in pairs])
    count = len(pairs)
    for place in range(count):
        ends = range(place, count)
        least = [min(mean(pairs[first : end + 1]) for end in ends) for first in range(place + 1)]
        assert result[place] == pytest.approx(max(least), abs=1e-9)


@given(OUTCOMES, st.lists(st.floats(-20, 20), min_size=2, max_size=20))
def test_probabilities_rise_with_the_score_and_are_never_certain(lines, scores):
    scores_of_lines = [float(score) for score, _ in lines]
    curve = calibration(scores_of_lines, [good for _, good in lines])
    probabilities = curve.probabilities_of(sorted(scores))
    # Interpolation rounds.
    assert (np.diff(probabilities) >= -1e-12).all()
    if len(set(scores_of_lines)) > 1:
        assert 0 < probabilities[0] <= probabilities[-1] < 1


@given(OUTCOMES)
def test_calibrated_probabilities_have_the_mean_of_the_outcomes(lines):
    """An identity of isotonic regression, here with its two imaginary lines."""
    scores = [float(score) for score, _ in lines]
    outcomes = [good for _, good in lines]
    probabilities = calibration(scores, outcomes).probabilities_of(
        [*scores, min(scores), max(scores)]
    )
    assert probabilities.mean() == pytest.approx((sum(outcomes) + 1) / (len(lines) + 2))


def random_lines(lines: int = 300) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """A feature that decides, one that does not, and outcomes."""
    draw = np.random.default_rng(1)
    features = {"useful": draw.normal(3, 2, lines), "useless": draw.normal(size=lines)}
    is_good = draw.random(lines) < 1 / (1 + np.exp(3 - features["useful"]))
    return features, is_good.astype(float)


def test_the_gradient_of_the_penalized_loss_is_zero():
    features, is_good = random_lines()
    matrix = np.stack([*features.values()], axis=1)
    model = logistic(matrix, is_good)
    residuals = 1 / (1 + np.exp(-model.scores(matrix))) - is_good
    standardized = (matrix - matrix.mean(axis=0)) / matrix.std(axis=0)
    gradient = standardized.T @ residuals + PENALTY * np.array(model.coefficients)
    assert np.abs(gradient).max() < 1e-6
    assert abs(residuals.sum()) < 1e-3


def test_a_fit_is_deterministic_and_finite_without_noise():
    features = {"length": np.arange(20.0), "constant": np.ones(20)}
    is_good = (np.arange(20) >= 10).astype(float)
    fit, curve = fitted(features, ["length", "constant"], is_good)
    assert fitted(features, ["length", "constant"], is_good) == (fit, curve)
    assert fit.model.coefficients[1] == 0
    probabilities = fit.probabilities(features)
    assert probabilities[:8].max() < 0.5 < probabilities[12:].min()


def test_a_line_has_the_same_probability_among_other_lines():
    features, is_good = random_lines()
    fit, _ = fitted(features, ["useful", "useless"], is_good)
    together = fit.probabilities(features)
    for number in range(0, 300, 17):
        alone = {name: values[number : number + 1] for name, values in features.items()}
        assert fit.probabilities(alone)[0] == together[number]


@pytest.mark.parametrize(
    ("sign", "names"), [(1, ["useful", "useless"]), (-1, ["useless"]), (0, ["useful", "useless"])]
)
def test_a_feature_with_the_wrong_sign_is_left_out(sign, names):
    features, is_good = random_lines()
    assert plausible(features, ["useful", "useless"], is_good, {"useful": sign}) == names


def test_a_constant_feature_has_no_effect_on_the_scale():
    # The mean of 500 equal numbers differs from each of them in the last bits.
    constant = np.full((500, 3), 1.79176)
    assert constant.std(axis=0).all()
    is_good = np.arange(500.0) % 2
    assert logistic(constant, is_good).scales == [1.0, 1.0, 1.0]


def test_the_curve_keeps_the_lines_by_falling_score():
    scores = np.array([0.1, 0.9, 0.5, 0.7])
    is_good = np.array([0.0, 1.0, 1.0, 0.0])
    curve = risk_and_coverage(scores, is_good, calibration(scores, is_good))
    assert curve.kept == [0.25, 0.5, 0.75, 1.0]
    assert curve.risk == [0, 0.5, 0.3333, 0.5]


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=30))
def test_auc_is_the_share_of_pairs_in_order(benchmark, lines):
    scores = np.array([score for score, _ in lines], float)
    is_bad = np.array([bad for _, bad in lines])
    pairs = [(bad, other) for bad in scores[is_bad] for other in scores[~is_bad]]
    if not pairs:
        assert np.isnan(benchmark.auc(scores, is_bad))
        return
    right = sum(1.0 if bad < other else 0.5 * (bad == other) for bad, other in pairs)
    assert benchmark.auc(scores, is_bad) == pytest.approx(right / len(pairs))


@given(st.lists(st.tuples(SHARES, st.booleans()), min_size=1, max_size=60))
def test_the_calibration_error_is_the_weighted_distance_in_each_bin(benchmark, lines):
    bins: dict[int, list[tuple[float, bool]]] = {}
    for probability, good in lines:
        number = 9 if probability == 1 else int(probability * 10)
        bins.setdefault(number, []).append((probability, good))
    error = 0.0
    for members in bins.values():
        predicted = sum(probability for probability, _ in members) / len(members)
        observed = sum(good for _, good in members) / len(members)
        error += abs(predicted - observed) * len(members) / len(lines)
    probabilities = np.array([probability for probability, _ in lines])
    is_good = np.array([good for _, good in lines], float)
    assert benchmark.calibration_error(probabilities, is_good) == pytest.approx(error)


def test_the_minimum_of_each_share_keeps_that_share():
    draw = np.random.default_rng(4)
    scores = draw.normal(size=1000)
    is_good = (draw.random(1000) < 1 / (1 + np.exp(-2 * scores))).astype(float)
    calibrated = calibration(scores, is_good)
    curve = risk_and_coverage(scores, is_good, calibrated)
    probabilities = calibrated.probabilities_of(scores).round(4)
    for kept, minimum in zip(curve.kept, curve.minimum, strict=True):
        # Lines with the same probability are kept together.
        assert np.mean(probabilities > minimum) <= kept <= np.mean(probabilities >= minimum)
