"""The scripts of a text's letters, and which languages are written in them."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import regex

from nmt.plugins.serve.han import chinese_script
from nmt.text import subtags

OTHER_SCRIPTS = {
    "az": "Cyrl Arab",
    "bs": "Cyrl",
    "ha": "Arab",
    "kk": "Arab",
    "ku": "Arab",
    "pa": "Arab",
    "sd": "Deva",
    "sr": "Latn",
    "tk": "Cyrl",
    "ug": "Cyrl",
    "uz": "Cyrl",
}
"""Scripts that languages are written in besides their usual one."""
# Jpan and the other keys are ISO 15924 codes, but not values of Unicode's Script property (UAX 24).
PARTS = {
    "Jpan": ("Hani", "Hira", "Kana"),
    "Kore": ("Hang",),
    "Hans": ("Hani",),
    "Hant": ("Hani",),
}
"""The Unicode scripts of writing systems with several, or with a part of one."""
WEIGHTS = {
    "Latn": 0.5,
    "Hani": 2.0,
    "Hira": 2.0,
    "Kana": 2.0,
    "Hang": 2.0,
}
"""How much a letter says about a text's language, by script.

Foreign names are in Latin letters in many languages, and a Chinese, Japanese or Korean letter
stands for several letters of an alphabet.
"""


@cache
def systems_of(code: str) -> list[frozenset[str]]:
    """The writing systems of a language, each as its Unicode scripts.

    sr has two, and sr-Latn has only Latn.
    """
    # A code that names its script excludes the other ones.
    language, script, _, is_plain = subtags(code)
    names = [script]
    if is_plain:
        names += OTHER_SCRIPTS.get(language, "").split()
    return [frozenset(PARTS.get(name, (name,))) for name in names if name]


def scripts_of(code: str) -> list[str]:
    """The Unicode scripts of all writing systems of a language."""
    scripts = list[str]()
    for system in systems_of(code):
        scripts += system
    return scripts


@cache
def letters_of(script: str) -> Any:
    return regex.compile(rf"\p{{Script={script}}}")


def letter_counts(text: str, languages: Iterable[str]) -> dict[str, float]:
    """The weighted number of letters in a text of each script that one of the languages has."""
    counts = dict[str, float]()
    for language in languages:
        for script in scripts_of(language):
            if script not in counts:
                letters = letters_of(script).findall(text)
                counts[script] = len(letters) * WEIGHTS.get(script, 1.0)
    return counts


def coverage(counts: Mapping[str, float], language: str) -> float:
    """The weighted number of a text's letters that are in one writing system of a language."""
    best = 0.0
    for system in systems_of(language):
        # Not the sum over all systems: one text is in one of them.
        best = max(best, sum(counts[script] for script in system))
    return best


def script_of_text(text: str, language: str, counts: Mapping[str, float]) -> str:
    """The script of a text in a language with several scripts; "" for other languages."""
    if language == "zh":
        return chinese_script(text)
    if language not in OTHER_SCRIPTS:
        return ""
    return max(scripts_of(language), key=lambda script: counts[script])
