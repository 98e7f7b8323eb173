"""Languages: their codes and names, and which one a text is written in.

py3langid ranks about 140 languages by the bytes of a text. It does not look at scripts, and ranks rare languages like
common ones, so a short text such as "ok" could be in any of them. Here, only languages of the text's script remain, and
each has a prior probability. The constants below were fitted to 14,000 translations of Django's user interface (median:
12 characters), so that of the languages with a confidence of 80 %, about 80 % are right.
"""

import math
import threading
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import regex

from nmt.plugins.serve.han import chinese_script, han_fits
from nmt.text import (
    direction,
    language_name,
    language_tag,
    match_language,
    native_name,
    subtags,
    without_region,
)

MOST_CHARACTERS = 2000  # a text's language is detected from at most this many leading characters
SHARPNESS = 1.7  # exponent of py3langid's probabilities, which are too even for short texts
PRIORS = (
    (20.0, "en"),
    (6.0, "ar de es fr it ja ko nl pl pt ru tr zh"),
    (2.0, "bg bn ca cs da el et fa fi he hi hr hu id lt lv no ro sk sl sr sv ta te th uk ur vi"),
    (
        0.5,
        "af am az be bs cy eo eu fil ga gl gu hy is ka kk km kn ky lo mk ml mn mr ms mt my ne nn pa ps si sq sw tg uz",
    ),
)
RARE, LEAST_SHARE = 0.1, 1e-30
"""How often texts are in each language, relative to each other; `RARE` stands for all other languages."""
VARIETIES = {
    **{
        "arz": "ar",
        "ary": "ar",
        "wuu": "zh",
        "yue": "zh",
        "uzs": "uz",
        "hbo": "he",
        "grc": "el",
        "pcm": "en",
    },
    **{"nn": "no", "sdh": "ckb", "dz": "bo"},
}
"""Languages of py3langid that count as another language, unless they are served themselves."""
CONFUSED = ("bs hr sr", "id ms")
"""Languages that py3langid takes for each other even in long texts."""
NO_LANGUAGE = "zxx"  # py3langid's code for text that is in no language
OTHER_SCRIPTS = {
    **{
        "az": "Cyrl Arab",
        "bs": "Cyrl",
        "ha": "Arab",
        "kk": "Arab",
        "ku": "Arab",
        "pa": "Arab",
        "sd": "Deva",
    },
    **{"sr": "Latn", "tk": "Cyrl", "ug": "Cyrl", "uz": "Cyrl"},
}
"""Scripts that languages are written in besides their usual one."""
PARTS = {"Jpan": ("Hani", "Hira", "Kana"), "Kore": ("Hang",), "Hans": ("Hani",), "Hant": ("Hani",)}
"""The Unicode scripts of writing systems with several, or with a part of one."""
WEIGHTS = {"Latn": 0.5, "Hani": 2.0, "Hira": 2.0, "Kana": 2.0, "Hang": 2.0}
"""How much a letter says about a text's language, by script: foreign names are in Latin letters in many languages, and
a Chinese, Japanese or Korean letter stands for several letters of an alphabet."""
COVERED = 0.8  # a language is possible if its scripts cover at least this share of what the best ones cover
SURE = 0.8  # the probability from which a language counts as certain
ENOUGH_LETTERS, ENOUGH_OF_A_SCRIPT = 12, 4.0
"""The letters that a text must have to be refused because of its language, and the letters, weighted
or not, to be refused because of its script."""


LOADING = (
    threading.Lock()
)  # so that requests that come at the same time do not load the identifier several times


@cache
def systems_of(code: str) -> list[frozenset[str]]:
    """The writing systems of a language, each as its Unicode scripts; sr-Latn has only Latn, and sr has two."""
    language, script, _, is_plain = subtags(code)
    systems = [script, *OTHER_SCRIPTS.get(language, "").split()] if is_plain else [script]
    return [frozenset(PARTS.get(system, (system,))) for system in systems if system]


@cache
def letters_of(script: str) -> Any:
    return regex.compile(rf"\p{{Script={script}}}")


def letter_counts(text: str, languages: Iterable[str]) -> dict[str, float]:
    """The weighted number of letters in a text of each script that one of the languages has."""
    scripts = {
        script for language in languages for system in systems_of(language) for script in system
    }
    return {
        script: len(letters_of(script).findall(text)) * WEIGHTS.get(script, 1.0)
        for script in scripts
    }


def coverage(counts: dict[str, float], language: str) -> float:
    """The weighted number of a text's letters that are in one writing system of a language."""
    return max(
        (sum(counts[script] for script in system) for system in systems_of(language)), default=0.0
    )


def identifier() -> Any:
    with LOADING:
        return load_identifier()


@cache
def load_identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(Path(MODEL_FILE), norm_probs=True)


@cache
def prior(language: str) -> float:
    return next((weight for weight, languages in PRIORS if language in languages.split()), RARE)


@cache
def general_language(language: str) -> str:
    """The language that a language of the identifier or a code counts as, such as zh for wuu."""
    return subtags(VARIETIES.get(language, language)).language


def script_of_text(text: str, language: str, counts: dict[str, float]) -> str:
    """The script of a text in a language with several scripts; "" for other languages."""
    if language == "zh":
        return chinese_script(text)
    if language not in OTHER_SCRIPTS:
        return ""
    return max(
        (script for system in systems_of(language) for script in system),
        key=lambda script: counts[script],
    )


@cache
def served_code(language: str, script: str, codes: tuple[str, ...]) -> str:
    """The served code for a text in a language of the identifier; if it is not served, CLDR's code."""
    general = general_language(language)
    own = "" if language in VARIETIES else language
    in_script = f"{general}-{script}" if script else ""
    for code in (language if language in VARIETIES else "", in_script, own, general):
        if code and (match := match_language(code, codes)) is not None:
            return match
    return general


def rank(text: str, codes: Iterable[str]) -> list[tuple[str, float]]:
    """Rank all languages that a text could be in by probability; `codes` are the served ones.

    Languages that are not served have CLDR's codes. The result is empty if the text has no letters.
    """
    text, codes = text[:MOST_CHARACTERS], tuple(codes)
    if not any(map(str.isalpha, text)):
        return []
    shares = {
        str(label): float(share) for label, share in identifier().rank(text) if label != NO_LANGUAGE
    }
    languages = [*shares, *codes]
    counts = letter_counts(text, languages)
    covered = {language: coverage(counts, language) for language in languages}
    least = COVERED * max(covered.values())
    if least == 0.0:
        return []
    possible = [language for language in languages if covered[language] >= least]
    fits = han_fits(text, codes)
    weights = {
        language: max(shares[language], LEAST_SHARE) ** SHARPNESS
        * prior(subtags(language).language)
        for language in possible
        if language in shares
    }
    for language in weights:
        weights[language] *= fits.get(general_language(language), 1.0)
    if not weights:  # the script is one of served languages that the identifier does not know
        weights = dict.fromkeys(possible, 1.0)
    total = math.fsum(weights.values())
    scripts, probabilities = dict[str, str](), dict[str, float]()
    for language, weight in weights.items():
        general = general_language(language)
        if general not in scripts:
            scripts[general] = script_of_text(text, general, counts)
        code = served_code(language, scripts[general], codes)
        if covered.get(code, least) < least:  # only served in another script
            code = general
        probabilities[code] = probabilities.get(code, 0.0) + weight / total
    return sorted(probabilities.items(), key=lambda item: -item[1])


def detect(text: str, codes: list[str]) -> list[tuple[str, float]]:
    """Rank the served languages by the probability that a text is in them; without letters of their scripts, []."""
    return [(code, probability) for code, probability in rank(text, codes) if code in codes]


@cache
def identified() -> frozenset[str]:
    """The languages that the identifier can tell, as CLDR's codes."""
    labels = [str(label) for label in identifier().labels]
    return frozenset(
        subtags(code).language for label in labels for code in (label, VARIETIES.get(label, label))
    )


def in_script_of(detected: str, text: str, sources: list[str]) -> list[str]:
    """The sources whose script a text in the detected language is in."""
    counts = letter_counts(text, [detected, *sources])
    least = COVERED * coverage(counts, detected)
    return [code for code in sources if coverage(counts, code) >= least]


def may_be_meant(detected: str, text: str, sources: list[str]) -> bool:
    """Whether a text could be in a source that the identifier does not know, or confuses with the detected language."""
    languages = {subtags(code).language for code in in_script_of(detected, text, sources)}
    confused = {
        language for group in CONFUSED if detected in group.split() for language in group.split()
    }
    return bool(languages & confused or languages - identified())


class Unserved(Exception):
    """No model translates a text's language, which is "" if it is not known, into the target language."""

    def __init__(self, language: str) -> None:
        super().__init__(language)
        self.language = language


def choose(text: str, sources: list[str], target: str, codes: list[str]) -> tuple[str, float]:
    """The language to translate a text from and its probability; the target language if the text is already in it.

    `sources` are the languages with a model into `target`, `codes` are all served languages. Raises Unserved if another
    language is certain: its probability is more than `SURE` and the text is long enough, or no source has its script.
    Otherwise, the likeliest source is chosen, since short texts are often taken for other languages.
    """
    text = text[:MOST_CHARACTERS]
    ranked = rank(text, [*sources, target, *codes])
    probabilities = dict(ranked)
    source = max(sources, key=lambda language: probabilities.get(language, 0.0), default="")
    of_source = probabilities.get(source, 0.0)
    of_target = probabilities.get(target, 0.0)
    likeliest, probability = ranked[0] if ranked else ("", 0.0)
    if not ranked and sum(map(str.isalpha, text)) >= ENOUGH_OF_A_SCRIPT:
        raise Unserved("")  # in a script of no known language
    if likeliest == target and of_target > SURE * (of_target + of_source):
        return target, of_target
    if likeliest not in (source, target) and not may_be_meant(likeliest, text, sources):
        is_certain = probability > SURE and sum(map(str.isalpha, text)) >= ENOUGH_LETTERS
        in_script = coverage(letter_counts(text, [likeliest]), likeliest)
        # Latin letters have a small weight, but a word of them is a word.
        has_enough = max(in_script, sum(map(str.isalpha, text))) >= ENOUGH_OF_A_SCRIPT
        is_foreign = of_source == 0.0 and has_enough
        if is_certain or is_foreign:
            raise Unserved(likeliest)
    if of_target > 0.0 and not in_script_of(target, text, sources):
        return target, of_target  # a few letters, such as OK, that no source is written in
    if not source:
        raise Unserved(likeliest if probability > SURE else "")
    return source, of_source


def language_facts(code: str, targets: list[str]) -> dict[str, Any]:
    """A language for clients: LibreTranslate's fields, and those that the page needs."""
    without = without_region(code)
    return {
        "code": code,
        "name": language_name(code),
        "targets": targets,
        "nativeName": native_name(code),
        "shortName": language_name(without),
        "shortNativeName": native_name(without),
        "tag": language_tag(code),
        "direction": direction(code),
    }
