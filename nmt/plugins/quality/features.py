"""What is known about a translation without a reference: the features of its probability."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nmt.items import readable
from nmt.plugins.quality.isotonic import Numbers
from nmt.text import encodes_languages, has_encoder, similarities
from nmt.translation import (
    Direction,
    Line,
    Models,
    Translation,
    Translator,
    flagger,
    untagged,
)

LOG_PROBABILITY = "log_probability_per_token"
SIMILARITY = "similarity"
FLAGS = "flags"
LENGTH = "length"
ALWAYS = (LOG_PROBABILITY, FLAGS, LENGTH)
"""The features that need no encoder."""
ALL = (*ALWAYS, SIMILARITY)
SIGNS = {LOG_PROBABILITY: 1, SIMILARITY: 1, FLAGS: -1}
"""Whether a feature can only raise or lower the probability; long lines may be either."""
LOW_CONFIDENCE = "low_confidence"
"""The flag that only repeats LOG_PROBABILITY."""
DECIMALS = 5
"""The last digits of a feature depend on the lines that are computed together, and are dropped."""


@dataclass
class Judged:
    """A translation whose probability is asked for."""

    source: str
    translation: str
    log_probability: float
    tokens: int
    """The number of tokens, with the end symbol."""
    tag: str = ""
    """The tag of the source line, and a space."""


def judged_pair(
    translator: Translator, source: str, translation: str, log_probability: float, tokens: int
) -> Judged:
    """A line, which may begin with a tag of the model, and its translation."""
    line = untagged(source, translator.tokenizer, default=translator.direction)
    # A line with an unknown tag has been refused before.
    assert isinstance(line, Line)
    return Judged(line.text, translation, log_probability, tokens, line.tag)


def computes_similarity(direction: Direction) -> bool:
    """Whether the encoder is installed and knows both languages."""
    return has_encoder() and encodes_languages(*direction)


FindFlags = Callable[[str, Translation], list[str]]


class Features:
    """Computes the features of translations by a model in one direction."""

    def __init__(self, models: Models, direction: Direction) -> None:
        self.flags_of: FindFlags = flagger(models, direction)
        self.has_similarity = computes_similarity(direction)

    @property
    def names(self) -> tuple[str, ...]:
        return ALL if self.has_similarity else ALWAYS

    def compute(self, lines: Sequence[Judged], names: Sequence[str]) -> dict[str, Numbers]:
        """The values of features for each line."""
        values: dict[str, list[float]] = {name: [] for name in ALWAYS}
        for line in lines:
            tokens = max(line.tokens, 1)
            values[LOG_PROBABILITY].append(line.log_probability / tokens)
            values[FLAGS].append(self.count_flags(line))
            values[LENGTH].append(math.log(tokens))
        features = {name: np.array(values[name], float) for name in ALWAYS if name in names}
        if SIMILARITY in names:
            pairs = [(readable(line.source), readable(line.translation)) for line in lines]
            features[SIMILARITY] = similarities(pairs).astype(float)
        return {name: numbers.round(DECIMALS) for name, numbers in features.items()}

    def count_flags(self, line: Judged) -> int:
        text = readable(line.translation)
        flags = self.flags_of(line.tag + readable(line.source), Translation(text, 0.0, 0.0))
        return len([flag for flag in flags if flag != LOW_CONFIDENCE])
