"""Typing errors in a line: letters that are swapped, missing, doubled or from an adjacent key.

The kinds are those of OpusTrainer (Bogoychev et al. 2023), but they affect only letters and spaces,
because a wrong digit would teach a model to invent numbers.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from numpy.random import Generator

Keyboard = dict[str, str]
"""Maps each letter to those on adjacent keys."""
Change = Callable[[str, Keyboard, Generator], str]
TYPO_RATE = 0.1
"""The probability of each kind of typo in a line."""
ONLY_RUSSIAN = frozenset("ыэё")
ONLY_UKRAINIAN = frozenset("іїєґ")
LETTER = r"[^\W\d_]"
# The places of adjacent keys, as rows and columns. Each row of keys starts half a key to the right
# of the one above.
LEFT = (0, -1)
RIGHT = (0, 1)
BELOW_LEFT = (1, -1)
BELOW_RIGHT = (1, 0)
ABOVE_LEFT = (-1, 0)
ABOVE_RIGHT = (-1, 1)


def keyboard_of_rows(*rows: str) -> Keyboard:
    """The keyboard with these rows of keys, from the top."""
    keys = dict[tuple[int, int], str]()
    for row, letters in enumerate(rows):
        for column, letter in enumerate(letters):
            keys[row, column] = letter
    result = {}
    for (row, column), letter in keys.items():
        near = ""
        for down, right in (LEFT, RIGHT, BELOW_LEFT, BELOW_RIGHT, ABOVE_LEFT, ABOVE_RIGHT):
            near += keys.get((row + down, column + right), "")
        result[letter] = near
    return result


def shared_letters(one: Keyboard, other: Keyboard) -> Keyboard:
    """The first keyboard, with only the letters that both have."""
    result = {}
    for letter, near in one.items():
        if letter in other:
            result[letter] = "".join(key for key in near if key in other)
    return result


LATIN = keyboard_of_rows("qwertyuiop", "asdfghjkl", "zxcvbnm")
RUSSIAN = keyboard_of_rows("йцукенгшщзхъ", "фывапролджэ", "ячсмитьбю")
UKRAINIAN = keyboard_of_rows("йцукенгшщзхї", "фівапролджє", "ячсмитьбю")
CYRILLIC = shared_letters(RUSSIAN, UKRAINIAN)
"""The letters that the Russian and the Ukrainian keyboard have at the same place."""
KEYS = "".join(key + key.upper() for key in LATIN | RUSSIAN | UKRAINIAN)


def keyboard_of(line: str) -> Keyboard:
    """The keyboard that a line was typed on.

    Only letters that a single language has identify the keyboard. Other Cyrillic lines, such as
    Belarusian ones, which have letters of both, get only letters that are on both.
    """
    letters = set(line.lower())
    is_russian = not letters.isdisjoint(ONLY_RUSSIAN)
    is_ukrainian = not letters.isdisjoint(ONLY_UKRAINIAN)
    if is_russian == is_ukrainian:
        return LATIN | CYRILLIC
    return LATIN | (RUSSIAN if is_russian else UKRAINIAN)


def in_case_of(letter: str, model: str) -> str:
    return letter.upper() if model.isupper() else letter.lower()


def neighbor(letter: str, keyboard: Keyboard, generator: Generator) -> str:
    """A letter on an adjacent key, in the same case."""
    near = keyboard[letter.lower()]
    return in_case_of(near[generator.integers(len(near))], letter)


def after_neighbor(letter: str, keyboard: Keyboard, generator: Generator) -> str:
    """A letter on an adjacent key, and the letter itself."""
    return neighbor(letter, keyboard, generator) + letter


def swapped(letters: str, keyboard: Keyboard, generator: Generator) -> str:
    """Two letters in reverse order, but each position keeps its case: Hu -> Uh."""
    first = letters[0]
    second = letters[1]
    return in_case_of(second, first) + in_case_of(first, second)


def removed(text: str, keyboard: Keyboard, generator: Generator) -> str:
    return ""


def separated(letters: str, keyboard: Keyboard, generator: Generator) -> str:
    return " ".join(letters)


def repeated(letter: str, keyboard: Keyboard, generator: Generator) -> str:
    return letter * 2


def single(letters: str, keyboard: Keyboard, generator: Generator) -> str:
    """The first of two equal letters."""
    return letters[0]


@dataclass(frozen=True)
class Typo:
    """A kind of typo."""

    places: re.Pattern[str]
    """Matches where the typo can occur; group 1 is the text that changes."""
    change: Change
    needs_key: bool = False
    """Whether the letter must be on the keyboard of the line."""


def typo_at(text: str, change: Change, needs_key: bool = False) -> Typo:
    """A typo that can occur at each text that matches a pattern, even if the texts overlap."""
    # A lookahead has no length, so the next match may begin within this one.
    return Typo(re.compile(f"(?=({text}))"), change, needs_key)


TYPOS = {
    "char_swap": typo_at(LETTER * 2, swapped),
    "missing_char": typo_at(LETTER, removed),
    "extra_char": typo_at(f"[{KEYS}]", after_neighbor, needs_key=True),
    "nearby_char": typo_at(f"[{KEYS}]", neighbor, needs_key=True),
    "skipped_space": typo_at(" ", removed),
    "random_space": typo_at(LETTER * 2, separated),
    "repeated_char": typo_at(LETTER, repeated),
    "unichar": typo_at(rf"({LETTER})\2", single),
}
"""Maps OpusTrainer's names to typos. Their order is that of the draws."""


def with_typos(line: str, generator: Generator) -> str:
    """Add at most one typo of each kind to a line."""
    keyboard = keyboard_of(line)
    # All at once, so that what one typo draws does not decide whether the next one occurs.
    happens = generator.random(len(TYPOS)) < TYPO_RATE
    for typo, is_made in zip(TYPOS.values(), happens, strict=True):
        if not is_made:
            continue
        # In the line as the typos before have changed it.
        places = list(typo.places.finditer(line))
        if typo.needs_key:
            places = [place for place in places if place[1].lower() in keyboard]
        if places:
            place = places[generator.integers(len(places))]
            start, end = place.span(1)
            changed = typo.change(place[1], keyboard, generator)
            line = line[:start] + changed + line[end:]
    return line
