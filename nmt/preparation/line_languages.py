"""The languages of single lines, as far as they can be told apart."""

import re
from functools import cache
from math import log
from typing import NamedTuple

from nmt.preparation.kinds import (
    HALF_TRANSLATED,
    SWAPPED,
    UNTRANSLATED,
    WRONG_LANGUAGE,
    Kind,
)
from nmt.text import Pair, are_close, language_identifier, subtags

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
LEAST_SHARED = 0.6
"""The share of the words of an untranslated text that are in the source."""
LEAST_COMMON = 3
"""The number of different words that they must have in common."""
LEAST_OWN_LETTERS = 12
"""With fewer letters in the words that the other side lacks, a line shows no language."""
LETTER = re.compile(r"[^\W\d_]")
WORD = re.compile(r"\w+")
TERM = re.compile(r"\w+(?:[-_./:@]+\w+)+")
"""Names of files, packages and addresses, which translations keep; also compound words."""


class Likely(NamedTuple):
    """How likely languages are for a line: natural logarithms of probabilities."""

    source: float
    target: float
    other: float
    """The most likely language that is like neither side's."""


UNDECIDED = Likely(0.0, 0.0, 0.0)


class PairLanguages(NamedTuple):
    """What the languages of the sides of a pair show."""

    in_languages: int
    """The number of sides that are in one of the two languages."""
    kind: Kind | None
    """The damage; None if there is none."""


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
        for code, probability in language_identifier().rank(line[:MOST_CHARACTERS]):
            # The model divides the probability of a language among those that are close to it.
            if code in like_source:
                source += probability
            elif code in like_target:
                target += probability
            else:
                other = max(other, probability)
        return Likely(log(source), log(target), log(other))

    def inspect(self, pair: Pair) -> PairLanguages | None:
        """What the languages of a pair's sides show; None if they cannot be identified."""
        if not self.is_decidable or not all(map(has_letters, pair)):
            return None
        source, target = map(self.likely, pair)
        in_languages = sum(
            max(likely.source, likely.target) > likely.other for likely in (source, target)
        )
        kind = kind_of_whole(pair, source, target)
        if kind is WRONG_LANGUAGE and not self.is_confirmed(pair):
            kind = None
        return PairLanguages(in_languages, kind or self.kind_of_halves(pair))

    def is_confirmed(self, pair: Pair) -> bool:
        """Whether a side is in a wrong language without the names and terms that both have."""
        # A list of names looks like English, or like any other language.
        source, target = own_words(pair[0], pair[1]), own_words(pair[1], pair[0])
        likely = [
            self.likely(text) if has_letters(text, LEAST_OWN_LETTERS) else UNDECIDED
            for text in (source, target)
        ]
        return kind_of_whole((source, target), *likely) is not None

    def kind_of_halves(self, pair: Pair) -> Kind | None:
        """HALF_TRANSLATED if half of the target is still the source."""
        source, target = pair
        target_words = target.split()
        middle = (len(target_words) + 1) // 2
        parts = [" ".join(target_words[:middle]), " ".join(target_words[middle:])]
        copies = [part for part in parts if is_copied(part, source)]
        if len(copies) != 1:
            return None
        half = self.likely(copies[0])
        return HALF_TRANSLATED if half.source - half.target > LEAST_OF_BOTH else None


@cache
def close_languages(language: str) -> frozenset[str]:
    """The languages of the model that are, or may be mistaken for, a language."""
    return frozenset(code for code in language_identifier().nb_classes if are_close(code, language))


def has_letters(line: str, least: int = LEAST_LETTERS) -> bool:
    """Whether a line has enough letters to identify its language."""
    return len(LETTER.findall(line, 0, MOST_CHARACTERS)) >= least


def own_words(text: str, other: str) -> str:
    """The words of a text that another text lacks."""
    others = set(WORD.findall(other.casefold()))
    return " ".join(word for word in WORD.findall(text) if word.casefold() not in others)


def kind_of_whole(pair: Pair, source: Likely, target: Likely) -> Kind | None:
    """The damage that the languages of whole lines show."""
    for_swap = min(source.target - source.source, target.source - target.target)
    if for_swap > LEAST_OF_BOTH:
        return SWAPPED
    is_foreign = (
        target.source - target.target > LEAST_ODDS,
        source.target - source.source > LEAST_ODDS,
    )
    if any(is_foreign):
        is_copy = is_copied(pair[1], pair[0]) or is_copied(pair[0], pair[1])
        return UNTRANSLATED if is_copy else WRONG_LANGUAGE
    for likely in (source, target):
        if likely.other - max(likely.source, likely.target) > LEAST_ODDS:
            return WRONG_LANGUAGE
    return None


def is_copied(text: str, other: str) -> bool:
    """Whether most words of a text occur in another text."""
    # Without capitals and digits: translations keep names and numbers.
    words = WORD.findall(TERM.sub(" ", text))
    ordinary = [word for word in words if word == word.lower() and word.isalpha()]
    others = set(WORD.findall(other))
    common = [word for word in ordinary if word in others]
    return len(set(common)) >= LEAST_COMMON and len(common) >= LEAST_SHARED * len(ordinary)
