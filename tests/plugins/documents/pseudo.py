"""Translators for tests: the same text, or capitals, word for word, with placeholders as they were."""

import re

from nmt.plugins.documents import Translated, read_document

ITEM = re.compile(r"(\{[^{}]*\}|%\w)")


def same(lines: list[str]) -> list[Translated]:
    return [Translated(line) for line in lines]


def capitals(lines: list[str]) -> list[Translated]:
    texts = [
        "".join(
            part if number % 2 else part.upper() for number, part in enumerate(ITEM.split(line))
        )
        for line in lines
    ]
    return [Translated(text, [(n, n) for n in range(len(text.split()))]) for text in texts]


def pseudo(format: str, text: str, by=capitals, target: str = "", source: str = ""):
    """The lines of a file, its translation, and the notice; the same lines return the same bytes."""
    document = read_document(format, text.encode(), target, source)
    unchanged = document.join(same(document.lines)).decode()
    assert format == "po" or unchanged == text  # catalogs are written anew
    result = document.join(by(document.lines)).decode()
    return document.lines, result, document.notice
