"""Chooses the language to translate a text from, if the client does not name one."""

from collections.abc import Mapping
from typing import NamedTuple

from nmt.plugins.serve.detection import COVERED, MOST_CHARACTERS, identified, rank
from nmt.plugins.serve.scripts import coverage, letter_counts
from nmt.text import subtags

CONFUSED = ("bs hr sr", "id ms")
"""Groups of languages that py3langid confuses even in long texts."""
SURE = 0.8
"""The probability from which a language counts as certain."""
ENOUGH_LETTERS = 12
"""The minimum number of letters of a text that is refused because of its language."""
ENOUGH_OF_A_SCRIPT = 4.0
"""The minimum number of letters, weighted or not, of a text refused because of its script."""


class Unserved(Exception):
    """No model translates a text's language into the target language; it is "" if unknown."""

    def __init__(self, language: str) -> None:
        super().__init__(language)
        self.language = language


class Guess(NamedTuple):
    """A language that a text may be in; "" for no language."""

    language: str
    probability: float


def choose(text: str, sources: list[str], target: str, codes: list[str]) -> Guess:
    """The language to translate a text from.

    It is the target language if the text is already in it. `sources` are the languages with a model
    into `target`, `codes` are all served languages. Raises Unserved if another language is certain:
    its probability is more than `SURE` and the text is long enough, or no source has its script.
    Otherwise, the likeliest source is chosen, since short texts are often taken for other
    languages.
    """
    # As many characters as `rank` reads, so that letters are counted in the same text.
    text = text[:MOST_CHARACTERS]
    # All languages, to distinguish text that no model translates from text that a model translates.
    ranked = rank(text, [*sources, target, *codes])
    if not ranked and number_of_letters(text) >= ENOUGH_OF_A_SCRIPT:
        raise Unserved("")  # in a script of no known language
    likeliest = Guess(*ranked[0]) if ranked else Guess("", 0.0)
    probabilities = dict(ranked)
    source = likeliest_source(sources, probabilities)
    in_target = Guess(target, probabilities.get(target, 0.0))
    # Relative to the source: only these two matter for the decision between them.
    both = in_target.probability + source.probability
    if likeliest.language == target and in_target.probability > SURE * both:
        return in_target
    if likeliest.language not in (source.language, target):
        check_served(text, likeliest, source, sources)
    if in_target.probability > 0.0 and not in_script_of(target, text, sources):
        return in_target  # a few letters, such as OK, that no source is written in
    if not source.language:
        raise Unserved(likeliest.language if likeliest.probability > SURE else "")
    return source


def likeliest_source(sources: list[str], probabilities: Mapping[str, float]) -> Guess:
    source = max(sources, key=lambda language: probabilities.get(language, 0.0), default="")
    return Guess(source, probabilities.get(source, 0.0))


def check_served(text: str, likeliest: Guess, source: Guess, sources: list[str]) -> None:
    """Raise Unserved if a text is certainly in its likeliest language, which no model translates.

    `source` is the likeliest one of the `sources`.
    """
    if may_be_meant(likeliest.language, text, sources):
        return
    is_certain = likeliest.probability > SURE and number_of_letters(text) >= ENOUGH_LETTERS
    # The script of the text rules all sources out, so fewer letters suffice.
    is_foreign = source.probability == 0.0 and has_enough_of_script(text, likeliest.language)
    if is_certain or is_foreign:
        raise Unserved(likeliest.language)


def number_of_letters(text: str) -> int:
    return sum(map(str.isalpha, text))


def has_enough_of_script(text: str, language: str) -> bool:
    """Whether a text has enough letters of a language's scripts to be refused because of them."""
    in_script = coverage(letter_counts(text, [language]), language)
    # Latin letters have a small weight, but a word of them is a word.
    return max(in_script, number_of_letters(text)) >= ENOUGH_OF_A_SCRIPT


def may_be_meant(detected: str, text: str, sources: list[str]) -> bool:
    """Whether a text could be in a source although another language was detected.

    The identifier does not know the source, or confuses it with the detected language.
    """
    languages = {subtags(code).language for code in in_script_of(detected, text, sources)}
    # A language that the identifier does not know is always mistaken for another language.
    if not languages <= identified():
        return True
    for group in CONFUSED:
        confused = group.split()
        if detected in confused and not languages.isdisjoint(confused):
            return True
    return False


def in_script_of(detected: str, text: str, sources: list[str]) -> list[str]:
    """The sources whose script a text in the detected language is in."""
    counts = letter_counts(text, [detected, *sources])
    least = COVERED * coverage(counts, detected)
    return [code for code in sources if coverage(counts, code) >= least]
