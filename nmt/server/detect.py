"""The language of a text, by py3langid."""

from functools import cache
from pathlib import Path
from typing import Any

MOST_CHARACTERS = 2000
"""The beginning of a text is enough."""


@cache
def identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(Path(MODEL_FILE), norm_probs=True)


def detect(text: str) -> list[tuple[str, float]]:
    """Languages with their probabilities, the likeliest first; [] for a text without letters."""
    text = text[:MOST_CHARACTERS]
    if not any(map(str.isalpha, text)):
        return []
    return [(str(language), float(probability)) for language, probability in identifier().rank(text)]


def detect_among(text: str, languages: list[str]) -> tuple[str, float]:
    """The likeliest of some languages, and its probability among all; the first of them for a text without letters."""
    for language, probability in detect(text):
        if language in languages:
            return language, probability
    return languages[0], 0.0
