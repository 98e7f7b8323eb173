"""Translations of the test set that is cited."""

from collections.abc import Iterator

from rich.console import Console
from rich.progress import track

from nmt.config import TranslatorOptions
from nmt.translation import Translator, load_translator, warn

BLOCK_LINES = 256
"""Lines that are searched together, always the same ones: what is beside a line may change the last digit of a sum."""


def translations(translator: Translator, lines: list[str]) -> Iterator[str]:
    """The best translation of each line."""
    for start in range(0, len(lines), BLOCK_LINES):
        for found in translator.translate(lines[start : start + BLOCK_LINES]):
            yield found[0].text


def translate_lines(options: TranslatorOptions, lines: list[str], console: Console) -> list[str]:
    """The best translation of each line by the model that `options` name, with a bar on a terminal."""
    found = translations(load_translator(options, warn), lines)
    console.print(f"translating {len(lines):,} lines")
    return list(track(found, "translating", len(lines), console=console, disable=not console.is_terminal))
