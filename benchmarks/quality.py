"""Measure on test sets how exact and how useful the probabilities of `nmt calibrate` are.

    python benchmarks/quality.py RUN SOURCE REFERENCE [SOURCE REFERENCE ...] [--prepared FOLDER]
    python benchmarks/quality.py RUN SOURCE REFERENCE [SOURCE REFERENCE ...] --valid SOURCE REFERENCE

Each row has one set of features, fitted and calibrated on the validation set as `nmt calibrate`
does. ECE is the expected calibration error in 10 bins of equal width, Brier the mean squared
distance of probability and outcome, and AUC the probability that a line of the worst tenth by
sentence chrF2 gets a lower probability than another line. Intervals are those of 95% of bootstrap
resamples of the test set's lines. A second table has what `minimum=` keeps.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console

from nmt.config import TranslatorOptions, build
from nmt.plugins.quality.calibrating import held_out_lines, scores_of, translate
from nmt.plugins.quality.command import CalibrateConfig
from nmt.plugins.quality.features import (
    ALL,
    FLAGS,
    LENGTH,
    LOG_PROBABILITY,
    SIGNS,
    SIMILARITY,
    Features,
)
from nmt.plugins.quality.fitting import fitted
from nmt.translation import Translator, load_translator, warn

SETS = {
    "all features": ALL,
    "without similarity": (LOG_PROBABILITY, FLAGS, LENGTH),
    "log P per token": (LOG_PROBABILITY,),
    "flags": (FLAGS,),
    "similarity": (SIMILARITY,),
    "log P per token, length": (LOG_PROBABILITY, LENGTH),
    "log P per token, similarity": (LOG_PROBABILITY, SIMILARITY),
}
"""Row of the table -> its features; a fit drops features with the wrong sign."""
BINS = 10
WORST = 0.1
RESAMPLES = 1000
MINIMA = (0.5, 0.7, 0.8, 0.9)
Numbers = np.ndarray


def calibration_error(probabilities: Numbers, is_good: Numbers) -> float:
    """The expected calibration error."""
    bins = np.minimum((probabilities * BINS).astype(int), BINS - 1)
    differences = np.bincount(bins, probabilities - is_good, minlength=BINS)
    return float(np.abs(differences).sum() / len(probabilities))


def brier(probabilities: Numbers, is_good: Numbers) -> float:
    return float(np.mean((probabilities - is_good) ** 2))


def auc(scores: Numbers, is_bad: Numbers) -> float:
    """The probability that a bad line has a lower score than another; ties count half.

    NaN if all lines are of one kind.
    """
    _, groups, counts = np.unique(scores, return_inverse=True, return_counts=True)
    # The mean rank of equal scores, from 1.
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[groups]
    bad = is_bad.sum()
    good = len(is_bad) - bad
    if not bad or not good:
        return float("nan")
    above = ranks[~is_bad].sum() - good * (good + 1) / 2
    return float(above / (bad * good))


def is_worst(scores: Numbers) -> Numbers:
    """Whether each line is in the worst tenth; equal scores in the order of the lines."""
    order = np.argsort(scores, kind="stable")
    worst = np.zeros(len(scores), bool)
    worst[order[: max(1, round(WORST * len(scores)))]] = True
    return worst


def with_interval(measure: Callable[..., float], *columns: Numbers) -> str:
    """A measure of lines with its bootstrap interval."""
    generator = np.random.default_rng(1)
    lines = len(columns[0])
    values = []
    for _ in range(RESAMPLES):
        rows = generator.integers(lines, size=lines)
        values.append(measure(*(column[rows] for column in columns)))
    low, high = np.nanpercentile(values, [2.5, 97.5])
    return f"{measure(*columns):.3f} ({low:.3f} to {high:.3f})"


def open_run(config: CalibrateConfig) -> tuple[Translator, Features]:
    options = build(TranslatorOptions, {}, base=replace(config.translator, run=[config.run]))
    translator = load_translator(options, warn)
    return translator, Features(translator.models, translator.direction)


def table(config: CalibrateConfig, tests: list[tuple[str, str]]) -> None:
    translator, features = open_run(config)
    console = Console(stderr=True)

    def measured(config: CalibrateConfig) -> tuple[dict[str, Numbers], Numbers]:
        sources, references = held_out_lines(config, config.run)
        judged = translate(translator, sources, console)
        _, scores = scores_of(judged, references)
        return features.compute(judged, features.names), scores

    values, scores = measured(config)
    is_good = (scores >= config.threshold).astype(float)
    fits = {}
    for name, chosen in SETS.items():
        usable = [feature for feature in chosen if feature in features.names]
        if len(usable) == len(chosen):
            fits[name], _ = fitted(values, usable, is_good, SIGNS)
    print(f"validation: {len(scores):,} lines, {is_good.mean():.1%} good")
    for source, reference in tests:
        values, scores = measured(replace(config, source=source, reference=reference))
        is_good = (scores >= config.threshold).astype(float)
        print(f"\n{Path(source).name}: {len(scores):,} lines, {is_good.mean():.1%} good\n")
        print("| features | used | mean probability | ECE | Brier | AUC, worst tenth |")
        print("|---|---|---|---|---|---|")
        for name, fit in fits.items():
            probabilities = fit.probabilities(values)
            # Scores, because calibration makes many of them equal.
            chosen = np.stack([values[feature] for feature in fit.features], axis=1)
            cells = [
                name,
                ", ".join(fit.features),
                f"{probabilities.mean():.3f}",
                with_interval(calibration_error, probabilities, is_good),
                with_interval(brier, probabilities, is_good),
                with_interval(auc, fit.model.scores(chosen), is_worst(scores)),
            ]
            print("| " + " | ".join(cells) + " |", flush=True)
        # As `nmt calibrate` does without the package of the encoder.
        best = fits.get("all features", fits["without similarity"])
        print_kept(best.probabilities(values), is_good)


def print_kept(probabilities: Numbers, is_good: Numbers) -> None:
    """Print what `minimum=` keeps: the share of lines, and of good lines among them."""
    print("\n| minimum | kept | good |")
    print("|---|---|---|")
    for minimum in MINIMA:
        is_kept = probabilities >= minimum
        good = f"{is_good[is_kept].mean():.1%}" if is_kept.any() else ""
        print(f"| {minimum:g} | {is_kept.mean():.1%} | {good} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("texts", nargs="+", help="SOURCE REFERENCE ...")
    parser.add_argument("--prepared", help="the corpus with the validation set")
    parser.add_argument("--valid", nargs=2, default=(None, None), help="or its two files")
    parser.add_argument("--threshold", type=float, default=CalibrateConfig.threshold)
    parser.add_argument("--threads", type=int)
    arguments = parser.parse_args()
    if len(arguments.texts) % 2:
        parser.error("each source needs a reference")
    tests = list(zip(arguments.texts[::2], arguments.texts[1::2], strict=True))
    tree = {
        "run": arguments.run,
        "prepared": arguments.prepared,
        "source": arguments.valid[0],
        "reference": arguments.valid[1],
        "threshold": arguments.threshold,
        "threads": arguments.threads,
    }
    table(build(CalibrateConfig, tree), tests)


if __name__ == "__main__":
    main()
