"""Noise in training pairs, as a function of a random generator.

The kinds, and the kinds of typos, are those of OpusTrainer (Bogoychev et al. 2023). Other than there, the words to be
copied are numbers, and only letters and blanks have typos: a wrong digit would teach a model to invent numbers.
"""

import re
from collections.abc import Callable
from itertools import compress

import numpy as np

from nmt.plugins.augment.plugin import NoiseConfig
from nmt.text import WITHOUT_BLANKS, Pair, clean

Generator = np.random.Generator

TYPO_RATE = 0.1  # the probability of each kind of typo in a line
NUMBER_DIGITS = 6  # at most, of a number to be copied
FIRST_LETTER = re.compile(r"(?:^|(?<= ))([^\w ]*)(\w)")
"""The first letter or digit of a word, behind marks such as quotes."""
MARKS = [".\u3002\u0964\u0965\u06d4\u104b\u1362\u0589\u17d4\u0f0d", "!\u055c", "?;\u061f\u055e\u1367"]
MARKS += [",\u3001\u060c\u104a\u055d", ":\u1365\u1366\u00b7", ";\u061b\u1364"]
"""Final marks by kind, in NFKC; the Greek question mark is a semicolon there."""
# Between words; in scripts without blanks, only behind punctuation is it certain that a word ends.
BORDER = re.compile(f"(?<=[,;:!?\u3001\u3002])(?={WITHOUT_BLANKS.pattern})| ")


def noisy(pair: Pair, config: NoiseConfig, generator: Generator) -> Pair:
    """A pair of clean lines after noise, clean as well; a pair with an empty side, or that would get one, stays."""
    # A draw for each kind, also where it is off, so that a kind does not decide when others happen.
    happens = generator.random(len(KINDS)) < [getattr(config, kind) for kind in KINDS]
    if not all(pair) or not happens.any():
        return pair
    source, target = pair
    for change in compress(KINDS.values(), happens):
        source, target = change(source, target, generator)
    source, target = clean(source), clean(target)
    return (source, target) if source and target else pair


def title(line: str) -> str:
    return FIRST_LETTER.sub(lambda word: word[1] + word[2].title(), line)


def without_end_punctuation(source: str, target: str, generator: Generator) -> Pair:
    """Both sides without their last mark, if it is of the same kind and the only one."""
    bodies = source[:-1].rstrip(), target[:-1].rstrip()
    alike = any(source[-1] in marks and target[-1] in marks for marks in MARKS)
    return bodies if alike and all(body and body[-1] not in "".join(MARKS) for body in bodies) else (source, target)


def with_number(source: str, target: str, generator: Generator) -> Pair:
    """Both sides with a number inserted at the same share of their words."""
    digits = int(generator.integers(1, NUMBER_DIGITS + 1))
    number, share = generator.integers(10 ** (digits - 1), 10**digits), generator.random()

    def inserted(line: str) -> str:
        places = [0, *(border.start() for border in BORDER.finditer(line)), len(line)]
        place = places[int(share * len(places))]
        return f"{line[:place]} {number} {line[place:]}"

    return inserted(source), inserted(target)


def neighbors(*rows: str) -> dict[str, str]:
    """Letter -> the letters on the keys around its own; each row of keys is half a key further to the right."""
    keys = {(row, column): key for row, line in enumerate(rows) for column, key in enumerate(line)}
    around = ((0, -1), (0, 1), (1, -1), (1, 0), (-1, 0), (-1, 1))
    near = {key: [(row + down, column + right) for down, right in around] for (row, column), key in keys.items()}
    return {key: "".join(keys.get(place, "") for place in places) for key, places in near.items()}


NEIGHBORS = neighbors("qwertyuiop", "asdfghjkl", "zxcvbnm") | neighbors("йцукенгшщзхъ", "фывапролджэ", "ячсмитьбю")


def in_case_of(letter: str, model: str) -> str:
    return letter.upper() if model.isupper() else letter.lower()


def neighbor(letter: str, generator: Generator) -> str:
    near = NEIGHBORS[letter.lower()]
    return in_case_of(near[generator.integers(len(near))], letter)


LETTER = r"[^\W\d_]"
KEY = "[" + "".join(key + key.upper() for key in NEIGHBORS) + "]"
TYPOS: dict[str, tuple[str, Callable[[str, Generator], str]]] = {
    # Hu -> Uh: the capital stays where it is.
    "char_swap": (LETTER * 2, lambda two, generator: in_case_of(two[1], two[0]) + in_case_of(two[0], two[1])),
    "missing_char": (LETTER, lambda letter, generator: ""),
    "extra_char": (KEY, lambda letter, generator: neighbor(letter, generator) + letter),
    "nearby_char": (KEY, neighbor),
    "skipped_space": (" ", lambda blank, generator: ""),
    "random_space": (LETTER * 2, lambda two, generator: f"{two[0]} {two[1]}"),
    "repeated_char": (LETTER, lambda letter, generator: letter * 2),
    "unichar": (f"({LETTER})\\2", lambda two, generator: two[0]),
}
"""OpusTrainer's name -> a pattern for the places where it can happen, and what then stands there."""
PLACES = {name: re.compile(f"(?=({pattern}))") for name, (pattern, _) in TYPOS.items()}


def with_typos(line: str, generator: Generator) -> str:
    """A line with at most one error of each kind."""
    for name, happens in zip(TYPOS, generator.random(len(TYPOS)) < TYPO_RATE, strict=True):
        if happens and (places := list(PLACES[name].finditer(line))):
            start, end = places[generator.integers(len(places))].span(1)
            line = line[:start] + TYPOS[name][1](line[start:end], generator) + line[end:]
    return line


# Punctuation comes first, as it is at the end of a text before a number is copied there. What is to be copied comes
# last, so that both sides have the same.
KINDS: dict[str, Callable[[str, str, Generator], Pair]] = {
    "end_punctuation": without_end_punctuation,
    "upper": lambda source, target, generator: (source.upper(), target.upper()),
    "title": lambda source, target, generator: (title(source), title(target)),
    "typos": lambda source, target, generator: (with_typos(source, generator), target),
    "numbers": with_number,
}
