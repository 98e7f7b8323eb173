"""`nmt score qe=true`: the probability that given translations are good, without references."""

import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from nmt.commands.score import ScoreConfig, Suspicions
from nmt.config import NMTError
from nmt.plugins.judge.judge import JudgeConfig
from nmt.text import Pair, parallel, read_texts

if TYPE_CHECKING:
    from nmt.plugins.quality.features import Judged
    from nmt.translation import PairScore, Translator

BUFFER = 2000
"""Number of pairs held in memory, to be sorted by length and scored in batches."""
NOT_FINITE = "no log probability: the model has non-finite weights"


@dataclass
class EstimationConfig:
    """Options for estimating the quality of translations without references."""

    qe: bool = False
    """run: print the probability that each hypothesis is good; needs source=FILE and
    `nmt calibrate`."""

    def takes_over(self, config: ScoreConfig) -> bool:
        """Write the probabilities and return True; without `qe`, return False."""
        if not self.qe:
            return False
        judge = config.plugins["judge"]
        check_options(config, judge)
        write_probabilities(config, judge)
        return True

    def findings(self, *arguments: Any) -> dict[str, list[Any]]:
        """Nothing: probabilities are printed by `takes_over`."""
        return {}


def check_options(config: ScoreConfig, judge: JudgeConfig) -> None:
    """Raise NMTError for options that exclude the estimation, or that it lacks."""
    if len(judge.run) != 1:
        raise NMTError("qe=true: needs one calibrated model; pass run=RUN")
    if not config.source:
        raise NMTError("qe=true: needs the source lines; pass source=FILE")
    unused = {
        "reference": config.reference,
        "examples": config.examples or None,
        "flags": judge.flags or None,
        "output": judge.output,
        "input": judge.input,
    }
    if judge.minimum is not None:
        problem = "filters pairs by log P per token; omit it with qe=true"
        raise NMTError(f"minimum={judge.minimum:.10g}: {problem}")
    for key, value in unused.items():
        if value is not None:
            raise NMTError(f"{key}={value}: omit it with qe=true")


def write_probabilities(config: ScoreConfig, judge: JudgeConfig) -> None:
    """Write a row for each pair of lines to standard output, and a summary to standard error."""
    from nmt.files import find_model_directory
    from nmt.plugins.quality.record import read_record
    from nmt.translation import warn

    record = read_record(find_model_directory(judge.run[0]), judge.run[0])
    probabilities = list[float | None]()
    known = list[float]()
    suspicions = Suspicions()
    for source, hypothesis, probability in estimates(config, judge):
        suspicions.add(hypothesis, expected=source)
        probabilities.append(probability)
        # A blank line says nothing about a system.
        if probability is not None and not is_blank(source, hypothesis):
            known.append(probability)
        if config.format != "json":
            row = formatted(len(probabilities), probability, config.format)
            sys.stdout.write(f"{row}\n")
    mean = sum(known) / len(known) if known else None
    if config.format == "json":
        tree = {
            "mean_probability": mean,
            "metric": record.metric,
            "threshold": record.threshold,
            "probabilities": probabilities,
        }
        print(json.dumps(tree, indent=2))
    suspicions.report()
    left_out = probabilities.count(None)
    if left_out == 1:
        warn("1 line has no probability, because it is too long for the model")
    elif left_out:
        warn(f"{left_out:,} lines have no probability, because they are too long for the model")
    if mean is not None:
        warn(
            f"lines: {len(known):,}, mean probability {mean:.4f}: the expected share of lines with "
            f"chrF2 >= {record.threshold:g}"
        )


def is_blank(source: str, hypothesis: str) -> bool:
    """Whether a pair has no text, and is certainly good."""
    return not source.strip() and not hypothesis.strip()


def formatted(number: int, probability: float | None, format: str) -> str:
    """The row of a line, whose number counts from 1."""
    if format == "jsonl":
        return json.dumps({"line": number, "probability": probability})
    text = "" if probability is None else f"{probability:.4f}"
    return f"{number}\t{text}" if format == "tsv" else text


def estimates(config: ScoreConfig, judge: JudgeConfig) -> Iterator[tuple[str, str, float | None]]:
    """Each pair and its probability; None if it is too long for the model."""
    from nmt.plugins.quality.features import Features
    from nmt.plugins.quality.record import fit_of, read_record
    from nmt.translation import RefusedLine, load_translator, score_short_pairs, warn

    assert config.source is not None
    names = (config.source, config.hypothesis)
    pairs = parallel(names, [read_texts(name, warn) for name in names])
    translator = load_translator(judge.options, warn)
    assert translator.models
    features = Features(translator.models, translator.direction)
    record = read_record(translator.models.folders[0], judge.run[0])
    fit = fit_of(record.stored_fit(features.has_similarity))
    first = 0
    while block := list(islice(pairs, BUFFER)):
        try:
            scores = score_short_pairs(translator, block)
            judged = judged_pairs(translator, block, scores)
        except RefusedLine as error:
            raise RefusedLine(first + error.index, error.problem) from error
        first += len(block)
        values = features.compute(judged, fit.features)
        probabilities = iter(fit.probabilities(values).tolist() if judged else [])
        for (source, hypothesis), score in zip(block, scores, strict=True):
            probability = None if score is None else round(next(probabilities), 4)
            # As in a translation, in which the model has nothing to do.
            yield source, hypothesis, 1.0 if is_blank(source, hypothesis) else probability


def judged_pairs(
    translator: "Translator", pairs: Sequence[Pair], scores: "Sequence[PairScore | None]"
) -> "list[Judged]":
    """What there is to judge: the pairs with a score.

    Raises RefusedLine, with the index of the pair, for one whose score is not finite.
    """
    from nmt.plugins.quality.features import judged_pair
    from nmt.translation import RefusedLine

    judged = []
    for index, ((source, hypothesis), score) in enumerate(zip(pairs, scores, strict=True)):
        if score is None:
            continue
        tokens = len(score.token_log_probabilities)
        log_probability = score.log_probability
        if not math.isfinite(log_probability):
            raise RefusedLine(index, NOT_FINITE)
        judged.append(judged_pair(translator, source, hypothesis, log_probability, tokens))
    return judged
