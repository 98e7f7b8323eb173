"""Which languages a text may be in: py3langid's model, and the languages that it confuses."""

from functools import cache
from pathlib import Path
from typing import Any

from nmt.text.near_languages import macrolanguage

CLOSE = (
    "da nb nn no sv",
    "bs hr sh sr sl",
    "id ms jv",
    "cs sk",
    "es gl pt ca an oc",
    "af nl",
    "xh zu",
    "be ru uk bg mk",
    "zh wuu yue",
    "hi mr ne",
    "fa ps ur ar",
    "en la",
)
"""Groups of languages that may be mistaken for each other."""


@cache
def language_identifier() -> Any:
    """py3langid's model."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(Path(MODEL_FILE), norm_probs=True)


def are_close(one: str, other: str) -> bool:
    """Whether two languages are the same, or may be mistaken for each other."""
    if one == other or any({one, other} <= set(group.split()) for group in CLOSE):
        return True
    # The model does not know most varieties, and takes Latgalian for Latvian.
    return macrolanguage(one) == macrolanguage(other)


@cache
def is_identifiable(language: str) -> bool:
    """Whether py3langid's model knows a language, or one that counts as the same."""
    return any(are_close(known, language) for known in language_identifier().nb_classes)
