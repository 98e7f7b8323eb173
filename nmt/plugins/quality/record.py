"""quality.json: how the features of a model's translations become probabilities."""

import json
import math
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from nmt.config import NMTError, build
from nmt.files import (
    SMALL,
    check_version,
    parse_json,
    read_mapping,
    remembered_sha256,
    write_file,
)
from nmt.plugins.quality.features import ALL, ALWAYS
from nmt.plugins.quality.fitting import Curve, Fit
from nmt.plugins.quality.isotonic import Calibration
from nmt.plugins.quality.logistic import SMALLEST_SCALE, Logistic

NAME = "quality.json"
WEIGHTS = "model.safetensors"
VERSION = 1
CALIBRATE = "nmt calibrate"
LARGEST = 1e6
"""The largest absolute value of a number; real ones are below 1,000."""


@dataclass
class StoredFit:
    """A fit and its curve, as flat lists."""

    features: list[str]
    means: list[float]
    scales: list[float]
    coefficients: list[float]
    intercept: float
    scores: list[float]
    probabilities: list[float]
    kept: list[float]
    risk: list[float]
    minimum: list[float] = field(default_factory=list)
    """Empty in files of older versions."""


@dataclass
class Record:
    """The content of quality.json."""

    weights: str
    """SHA-256 of the weights for which the probabilities hold."""
    threshold: float
    """A translation with at least this sentence chrF is good."""
    metric: str
    """The signature of the sentence scores."""
    lines: int
    """The number of validation lines."""
    good: int
    """The number of validation lines whose translation is good."""
    fits: list[StoredFit]
    """With similarity, if an encoder was there, and without."""
    decode: dict[str, Any] = field(default_factory=dict)
    """The search settings of the validation translations."""
    nmt: str = ""
    """The version of nmt."""
    precision: str = "float32"
    source: str | None = None
    reference: str | None = None
    prepared: str | None = None
    """The validation lines, as in the options of `nmt calibrate`."""
    text: str = ""
    """SHA-256 of the validation lines and their references."""

    def stored_fit(self, has_similarity: bool) -> StoredFit:
        """The fit for a translator that has an encoder, or has none."""
        allowed = ALL if has_similarity else ALWAYS
        return next(fit for fit in self.fits if set(fit.features) <= set(allowed))


def stored(fit: Fit, curve: Curve) -> StoredFit:
    return StoredFit(fit.features, **asdict(fit.model), **asdict(fit.calibration), **asdict(curve))


def fit_of(stored_fit: StoredFit) -> Fit:
    model = Logistic(
        stored_fit.means, stored_fit.scales, stored_fit.coefficients, stored_fit.intercept
    )
    calibration = Calibration(stored_fit.scores, stored_fit.probabilities)
    return Fit(stored_fit.features, model, calibration)


def write_record(folder: Path, record: Record) -> Path:
    path = folder / NAME
    tree = {"format_version": VERSION, **asdict(record)}
    write_file(path, json.dumps(tree, indent=1) + "\n")
    return path


def read_record(folder: Path, run: str) -> Record:
    """Read quality.json, which anyone may have written; NMTError if it does not fit the model.

    `run` is the user's name for the model.
    """
    path = folder / NAME
    if not path.exists() and not path.is_symlink():
        raise NMTError(f"{run} is not calibrated; run `{CALIBRATE} {run}`")
    tree = read_mapping(path, parse_json, SMALL)
    again = f"run `{CALIBRATE}` again"
    check_version(path, tree.pop("format_version", None), VERSION, again)
    try:
        record = build(Record, {**tree, "fits": []})
        fits = tree.get("fits")
        if not isinstance(fits, list):
            raise NMTError("fits: must be a list")
        record.fits = [build(StoredFit, fit) for fit in fits]
    except NMTError as error:
        raise NMTError(f"{path}: {error}; {again}") from error
    check_fits(path, record)
    if record.weights != remembered_sha256(folder / WEIGHTS):
        raise NMTError(f"{path}: was calibrated for other weights than {WEIGHTS}; {again}")
    return record


def check_fits(path: Path, record: Record) -> None:
    """Raise NMTError for lists that cannot be those of a fit."""
    problem = problem_of_counts(record)
    if not any(set(fit.features) <= set(ALWAYS) for fit in record.fits):
        problem = problem or "fits: none works without a sentence encoder"
    for fit in record.fits:
        problem = problem or problem_of_model(fit) or problem_of_points(fit)
    if problem:
        raise NMTError(f"{path}: {problem}; run `{CALIBRATE}` again")


def problem_of_counts(record: Record) -> str:
    """Why the threshold or the numbers of lines are impossible; empty if they are not."""
    if not 0 < record.threshold <= 100:
        return "threshold: must be more than 0 and at most 100"
    if not 0 <= record.good <= record.lines or record.lines == 0:
        return "good: must be a number of the validation lines"
    return ""


def problem_of_model(fit: StoredFit) -> str:
    """Why the lists of a logistic model are impossible; empty if they are not."""
    lists = (fit.means, fit.scales, fit.coefficients)
    if {len(numbers) for numbers in lists} != {len(fit.features)}:
        return "fits: a feature lacks a number"
    if not fit.features or not set(fit.features) <= set(ALL):
        return "fits: has an unknown feature"
    if len(set(fit.features)) < len(fit.features):
        return "fits: has a feature twice"
    numbers = [*fit.means, *fit.scales, *fit.coefficients, *fit.scores, fit.intercept]
    # False for NaN, too.
    if not all(abs(number) <= LARGEST for number in numbers):
        return "fits: a number is too large"
    # A feature divided by a number near 0 would overflow.
    if min(fit.scales) < SMALLEST_SCALE:
        return f"scales: must be at least {SMALLEST_SCALE:g}"
    return ""


def problem_of_points(fit: StoredFit) -> str:
    """Why the points of a calibration or a curve are impossible; empty if they are not."""
    if not fit.scores or len(fit.scores) != len(fit.probabilities):
        return "scores: needs one for each probability"
    if not is_rising(fit.scores, strictly=True) or not is_rising(fit.probabilities):
        return "scores and probabilities: must rise"
    if len(fit.kept) != len(fit.risk):
        return "kept: needs a risk for each share"
    if len(fit.minimum) not in (0, len(fit.kept)):
        return "minimum: needs one for each share"
    if not all(map(is_share, [*fit.probabilities, *fit.kept, *fit.risk, *fit.minimum])):
        return "probabilities: must be between 0 and 1"
    return ""


def is_share(number: float) -> bool:
    return math.isfinite(number) and 0 <= number <= 1


def is_rising(numbers: list[float], strictly: bool = False) -> bool:
    if strictly:
        return all(before < after for before, after in pairwise(numbers))
    return all(before <= after for before, after in pairwise(numbers))
