"""The languages that a text could be in.

py3langid ranks about 140 languages by the bytes of a text. It does not look at scripts, and ranks
rare languages like common ones, so a short text such as "ok" could be in any of them. Here, only
languages of the text's script remain, and each has a prior probability. The constants were fitted
to 14,000 translations of Django's user interface (median: 12 characters), so that of the languages
with a confidence of 80%, about 80% are right.
"""

import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from nmt.plugins.serve.han import han_fits
from nmt.plugins.serve.scripts import coverage, letter_counts, script_of_text
from nmt.text import match_language, subtags

MOST_CHARACTERS = 2000
"""A text's language is detected from at most this many leading characters."""
SHARPNESS = 1.7
"""Exponent of py3langid's probabilities, which are too even for short texts."""
PRIORS = (
    (20.0, "en"),
    (6.0, "ar de es fr it ja ko nl pl pt ru tr zh"),
    (2.0, "bg bn ca cs da el et fa fi he hi hr hu id lt lv no ro sk sl sr sv ta te th uk ur vi"),
    (
        0.5,
        "af am az be bs cy eo eu fil ga gl gu hy is ka kk km kn ky lo mk ml mn mr ms mt my ne nn pa"
        " ps si sq sw tg uz",
    ),
)
"""Language -> relative frequency of texts in it."""
RARE = 0.1
"""The relative frequency of each other language."""
LEAST_SHARE = 1e-30
"""Replaces lower probabilities of py3langid: 0 would exclude a language with any prior."""
VARIETIES = {
    "arz": "ar",
    "ary": "ar",
    "wuu": "zh",
    "yue": "zh",
    "uzs": "uz",
    "hbo": "he",
    "grc": "el",
    "pcm": "en",
    "nn": "no",
    "sdh": "ckb",
    "dz": "bo",
}
"""Languages of py3langid that count as another language, unless they are served themselves."""
NO_LANGUAGE = "zxx"
"""py3langid's code for text that is in no language."""
COVERED = 0.8
"""A language is possible if its scripts cover this share of what the best ones cover."""
# So that requests that come at the same time do not load the identifier several times.
LOADING = threading.Lock()


def identifier() -> Any:
    with LOADING:
        return load_identifier()


@cache
def load_identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(Path(MODEL_FILE), norm_probs=True)


@cache
def identified() -> frozenset[str]:
    """The languages that the identifier can recognize, as CLDR's codes."""
    codes = set[str]()
    for label in map(str, identifier().labels):
        codes.add(subtags(label).language)
        codes.add(general_language(label))
    return frozenset(codes)


@cache
def prior(language: str) -> float:
    for weight, languages in PRIORS:
        if language in languages.split():
            return weight
    return RARE


@cache
def general_language(language: str) -> str:
    """The language that a language of the identifier or a code counts as, such as zh for wuu."""
    return subtags(VARIETIES.get(language, language)).language


@cache
def served_code(language: str, script: str, codes: tuple[str, ...]) -> str:
    """The one of `codes`, those of the server's models, for a language that was detected in a text.

    If the server has no model for the language, its general code, which is that of CLDR.
    """
    general = general_language(language)
    is_variety = language in VARIETIES
    # From the most specific code to the most general one: a variety that is served itself, such as
    # Cantonese, comes before the language that it counts as.
    candidates = list[str]()
    if is_variety:
        candidates.append(language)
    if script:
        candidates.append(f"{general}-{script}")
    if not is_variety:
        candidates.append(language)
    candidates.append(general)
    for candidate in candidates:
        code = match_language(candidate, codes) if candidate else None
        if code is not None:
            return code
    return general


def rank(text: str, codes: Iterable[str]) -> list[tuple[str, float]]:
    """Rank all languages that a text could be in by probability; `codes` are the served ones.

    Languages that are not served have CLDR's codes. The result is empty if the text has no letters.
    """
    # A client's text can be long, and later characters hardly change the result.
    text = text[:MOST_CHARACTERS]
    codes = tuple(codes)
    # py3langid ranks languages for any text, even for numbers and signs.
    if not any(map(str.isalpha, text)):
        return []
    shares = shares_of_identifier(text)
    # Served languages that py3langid does not know are possible, too.
    languages = [*shares, *codes]
    counts = letter_counts(text, languages)
    covered = {language: coverage(counts, language) for language in languages}
    # Not all letters, because foreign names and words occur in any text.
    least = COVERED * max(covered.values())
    if least == 0.0:
        return []
    possible = [language for language in languages if covered[language] >= least]
    weights = weights_of(possible, shares, han_fits(text, codes))
    if not weights:  # the script is one of served languages that the identifier does not know
        weights = dict.fromkeys(possible, 1.0)
    # Over all possible languages, not only the served ones, so that text in another language has a
    # low confidence.
    total = math.fsum(weights.values())
    scripts = dict[str, str]()
    probabilities = dict[str, float]()
    for language, weight in weights.items():
        general = general_language(language)
        if general not in scripts:
            scripts[general] = script_of_text(text, general, counts)
        code = served_code(language, scripts[general], codes)
        if covered.get(code, least) < least:  # only served in another script
            code = general
        probabilities[code] = probabilities.get(code, 0.0) + weight / total
    return sorted(probabilities.items(), key=lambda item: -item[1])


def shares_of_identifier(text: str) -> dict[str, float]:
    """The probability of each language, by py3langid."""
    shares = dict[str, float]()
    for label, share in identifier().rank(text):
        if label != NO_LANGUAGE:
            shares[str(label)] = float(share)
    return shares


def weights_of(
    possible: Sequence[str],
    shares: Mapping[str, float],
    fits: Mapping[str, float],
) -> dict[str, float]:
    """The weights of the possible languages that the identifier knows."""
    weights = dict[str, float]()
    for language in possible:
        if language in shares:
            share = max(shares[language], LEAST_SHARE)
            # Bayes' rule: the share stands for the likelihood of the text, sharpened as fitted.
            weight = share**SHARPNESS * prior(subtags(language).language)
            weights[language] = weight * fits.get(general_language(language), 1.0)
    return weights


def detect(text: str, codes: list[str]) -> list[tuple[str, float]]:
    """Rank the served languages by the probability that a text is in them.

    The result is empty if the text has no letters of their scripts.
    """
    return [(code, probability) for code, probability in rank(text, codes) if code in codes]
