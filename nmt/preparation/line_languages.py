"""The languages of single lines, as far as they can be told apart."""

import re
from functools import cache
from math import log
from typing import NamedTuple

from nmt.preparation.side_languages import are_close, identifier
from nmt.text import subtags

LEAST_LETTERS = 20
"""The language of a line with fewer letters is not identified."""
LEAST = 1e-9
"""Replaces lower probabilities, whose logarithms would be large or infinite."""
LEAST_ODDS = 2.0
"""The natural logarithm of how much more likely another language must be than the expected one."""
LEAST_OF_BOTH = 1.0
"""The same if both sides show it, as after a swap."""
MOST_CHARACTERS = 1000
"""The beginning of a line shows its language."""
LETTER = re.compile(r"[^\W\d_]")


class Likely(NamedTuple):
    """How likely languages are for a line: natural logarithms of probabilities."""

    source: float
    target: float
    other: float
    """The most likely language that is like neither side's."""


class LineLanguages:
    """Identifies the languages of lines, for a direction of translation."""

    def __init__(self, source: str, target: str) -> None:
        self.source = subtags(source).language
        self.target = subtags(target).language
        # Dialects, scripts and close languages cannot be told apart in single lines.
        self.is_decidable = not are_close(self.source, self.target)

    def likely(self, line: str) -> Likely:
        """How likely the languages of both sides, and any other language, are for a line."""
        like_source = close_languages(self.source)
        like_target = close_languages(self.target)
        source = LEAST
        target = LEAST
        other = LEAST
        for code, probability in identifier().rank(line[:MOST_CHARACTERS]):
            # The model divides the probability of a language among those that are close to it.
            if code in like_source:
                source += probability
            elif code in like_target:
                target += probability
            else:
                other = max(other, probability)
        return Likely(log(source), log(target), log(other))


@cache
def close_languages(language: str) -> frozenset[str]:
    """The languages of the model that are, or may be mistaken for, a language."""
    return frozenset(code for code in identifier().nb_classes if are_close(code, language))


def has_letters(line: str) -> bool:
    """Whether a line has enough letters to identify its language."""
    return len(LETTER.findall(line, 0, MOST_CHARACTERS)) >= LEAST_LETTERS
