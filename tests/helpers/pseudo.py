"""Fake translators for tests, which need no model."""

import re
from collections.abc import Callable

from nmt.translation import Translated, read_document

ITEM = re.compile(r"(\{[^{}]*\}|%\w)")


def same(lines: list[str]) -> list[Translated]:
    return [Translated(line) for line in lines]


def capitals(lines: list[str]) -> list[Translated]:
    """The lines in capitals, word for word, with placeholders as they were."""
    translations = []
    for line in lines:
        text = ""
        for number, part in enumerate(ITEM.split(line)):
            is_item = number % 2 == 1
            text += part if is_item else part.upper()
        alignment = [(n, n) for n in range(len(text.split()))]
        translations.append(Translated(text, alignment))
    return translations


def pseudo(
    format: str,
    text: str,
    by: Callable[[list[str]], list[Translated]] = capitals,
    target: str = "",
    source: str = "",
) -> tuple[list[str], str, str]:
    """Translate a file with a fake translator: its lines, the result, and the notice.

    Also checks that a translation that equals the source does not change a byte.
    """
    document = read_document(format, text.encode(), target, source)
    unchanged = document.join(same(document.lines)).decode()
    # Catalogs mark all translations, even these.
    assert format == "po" or unchanged == text
    result = document.join(by(document.lines)).decode()
    return document.lines, result, document.notice
