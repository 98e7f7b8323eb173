"""Typing errors, as a function of a random generator.

The kinds are those of OpusTrainer, except for letters that look alike. Only letters and blanks change, as a wrong digit
would teach a model to invent numbers.
"""

import re
from collections.abc import Callable

import numpy as np

Generator = np.random.Generator

RATE = 0.1
"""Probability of each kind of error in a line."""
KEYBOARDS = (("qwertyuiop", "asdfghjkl", "zxcvbnm"), ("йцукенгшщзхъ", "фывапролджэ", "ячсмитьбю"))
"""Rows of keys, each half a key further to the right."""


def neighbours(keyboard: tuple[str, ...]) -> dict[str, str]:
    """Letter -> the letters on the keys around its own."""
    keys = {(row, column): key for row, line in enumerate(keyboard) for column, key in enumerate(line)}
    around = ((0, -1), (0, 1), (1, -1), (1, 0), (-1, 0), (-1, 1))
    return {
        key: "".join(keys.get((row + down, column + right), "") for down, right in around)
        for (row, column), key in keys.items()
    }


NEIGHBOURS = {key: letters for keyboard in KEYBOARDS for key, letters in neighbours(keyboard).items()}


def in_case_of(letter: str, model: str) -> str:
    return letter.upper() if model.isupper() else letter.lower()


def swapped(two: str, generator: Generator) -> str:
    """Hu -> Uh: the capital stays where it is."""
    return in_case_of(two[1], two[0]) + in_case_of(two[0], two[1])


def neighbour(letter: str, generator: Generator) -> str:
    near = NEIGHBOURS[letter.lower()]
    return in_case_of(near[generator.integers(len(near))], letter)


LETTER = r"[^\W\d_]"
KEY = "[" + "".join(key + key.upper() for key in NEIGHBOURS) + "]"

TYPOS: dict[str, tuple[str, Callable[[str, Generator], str]]] = {
    "char_swap": (LETTER * 2, swapped),
    "missing_char": (LETTER, lambda letter, generator: ""),
    "extra_char": (KEY, lambda letter, generator: neighbour(letter, generator) + letter),
    "nearby_char": (KEY, neighbour),
    "skipped_space": (" ", lambda blank, generator: ""),
    "random_space": (LETTER * 2, lambda two, generator: f"{two[0]} {two[1]}"),
    "repeated_char": (LETTER, lambda letter, generator: letter * 2),
    "unichar": (f"({LETTER})\\2", lambda two, generator: two[0]),
}
"""OpusTrainer's name -> a pattern for the places where it can happen, and what then stands there."""
PLACES = {name: re.compile(f"(?=({pattern}))") for name, (pattern, _) in TYPOS.items()}


def with_typos(line: str, generator: Generator) -> str:
    """A line with at most one error of each kind."""
    for name, happens in zip(TYPOS, generator.random(len(TYPOS)) < RATE, strict=True):
        if happens and (places := list(PLACES[name].finditer(line))):
            start, end = places[generator.integers(len(places))].span(1)
            line = line[:start] + TYPOS[name][1](line[start:end], generator) + line[end:]
    return line
