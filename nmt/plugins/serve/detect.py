"""The language of a text, by py3langid."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

MOST_CHARACTERS = 2000
"""The beginning of a text is enough."""
SURE = 0.8
"""A text stays as it is from this probability on that it is in the target language rather than in a source language."""
EXECUTOR = ThreadPoolExecutor(1, "detect")


@cache
def identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(Path(MODEL_FILE), norm_probs=True)


def detect(text: str, languages: list[str]) -> list[tuple[str, float]]:
    """Those of some languages that are known, with their probabilities, the likeliest first.

    A code such as pt-BR stands for its language. The probabilities are those among all languages of the world, and a
    text without letters has none.
    """
    text = text[:MOST_CHARACTERS]
    if not any(map(str.isalpha, text)):
        return []
    codes = dict[str, str]()
    for code in languages:
        codes.setdefault(code.replace("_", "-").partition("-")[0].lower(), code)
    ranked = ((str(language), float(probability)) for language, probability in identifier().rank(text))
    return [(codes[language], probability) for language, probability in ranked if language in codes]


def choose(text: str, sources: list[str], target: str) -> tuple[str, float]:
    """The language of a text, which is one of the sources or surely the target, and its probability."""
    found = dict(detect(text, [*sources, target]))
    source = max(sources, key=lambda language: found.get(language, 0.0))
    ours, other = found.get(target, 0.0), found.get(source, 0.0)
    return (target, ours) if ours > SURE * (ours + other) else (source, other)


async def in_thread(function: Any, *arguments: Any) -> Any:
    """The result of a function, by a thread that does nothing but detect."""
    return await asyncio.get_running_loop().run_in_executor(EXECUTOR, function, *arguments)
