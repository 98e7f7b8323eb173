"""The kinds of damage that single pairs can have."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A kind of damage."""

    name: str
    least_share: float
    """The share of the judged pairs that is reported: more than clean corpora have."""


UNTRANSLATED = Kind("untranslated", 0.012)
SWAPPED = Kind("swapped sides", 0.003)
WRONG_LANGUAGE = Kind("wrong language", 0.012)
SHIFTED = Kind("shifted by some lines", 0.008)
HALF_TRANSLATED = Kind("half-translated", 0.015)
UNRELATED = Kind("unrelated", 0.008)
KINDS = (UNTRANSLATED, SWAPPED, WRONG_LANGUAGE, SHIFTED, HALF_TRANSLATED, UNRELATED)
OF_LANGUAGE = (UNTRANSLATED, SWAPPED, WRONG_LANGUAGE)
