"""Noise and random subword segmentation for the sentences of a micro-batch.

Prepared ids encode the text losslessly, so they can be decoded, changed and re-encoded. A sentence's noise depends only
on the seed, the update, the micro-batch and the row.

The kinds of noise and typos are those of OpusTrainer (Bogoychev et al. 2023), except that the words to copy are numbers
and typos affect only letters and spaces, because a wrong digit would teach a model to invent numbers.
"""

import re
from collections.abc import Callable, Sequence
from itertools import compress
from pathlib import Path

import numpy as np
from numpy.random import Generator

from nmt.config import SourceConfig
from nmt.data import IdPair, Ints, MicroBatch
from nmt.plugins.augment.bpe_dropout import BpeDropout
from nmt.plugins.augment.plugin import NoiseConfig
from nmt.text import SOURCE, TARGET, WITHOUT_BLANKS, Pair, canonical, load_tokenizer

OFF = NoiseConfig()
TYPO_RATE = 0.1  # the probability of each kind of typo in a line
NUMBER_DIGITS = 6  # maximum number of digits in a number to copy
FIRST_LETTER = re.compile(r"(?:^|(?<= ))([^\w ]*)(\w)")
"""The first letter or digit of a word, after any leading marks such as quotes."""
MARKS = [
    ".\u3002\u0964\u0965\u06d4\u104b\u1362\u0589\u17d4\u0f0d",
    "!\u055c",
    "?;\u061f\u055e\u1367",
]
MARKS += [",\u3001\u060c\u104a\u055d", ":\u1365\u1366\u00b7", ";\u061b\u1364"]
"""Final punctuation marks by kind, after normalization, which turns the Greek question mark into a semicolon."""
# Borders between words; in scripts without spaces, only punctuation is certain to end a word.
BORDER = re.compile(f"(?<=[,;:!?\u3001\u3002])(?={WITHOUT_BLANKS.pattern})| ")


def noisy(pair: Pair, config: NoiseConfig, generator: Generator) -> Pair:
    """Add noise to two clean lines and clean the result; keep the pair as is if a side is or would become empty."""
    # Draw for every kind, even a disabled one, so that the setting of one kind does not change the draws of another.
    happens = generator.random(len(KINDS)) < [getattr(config, kind) for kind in KINDS]
    if not all(pair) or not happens.any():
        return pair
    source, target = pair
    for change in compress(KINDS.values(), happens):
        source, target = change(source, target, generator)
    source = canonical(source)
    target = canonical(target)
    return (source, target) if source and target else pair


def title(line: str) -> str:
    return FIRST_LETTER.sub(lambda word: word[1] + word[2].title(), line)


def without_end_punctuation(source: str, target: str, generator: Generator) -> Pair:
    """Remove the final punctuation from both sides if it is a single mark of the same kind."""
    bodies = source[:-1].rstrip(), target[:-1].rstrip()
    alike = any(source[-1] in marks and target[-1] in marks for marks in MARKS)
    return (
        bodies
        if alike and all(body and body[-1] not in "".join(MARKS) for body in bodies)
        else (source, target)
    )


def with_number(source: str, target: str, generator: Generator) -> Pair:
    """Insert the same number at the same relative position on both sides."""
    digits = int(generator.integers(1, NUMBER_DIGITS + 1))
    number, share = generator.integers(10 ** (digits - 1), 10**digits), generator.random()

    def inserted(line: str) -> str:
        places = [0, *(border.start() for border in BORDER.finditer(line)), len(line)]
        place = places[int(share * len(places))]
        return f"{line[:place]} {number} {line[place:]}"

    return inserted(source), inserted(target)


def neighbors(*rows: str) -> dict[str, str]:
    """Map each letter to those on adjacent keys; each row of keys starts half a key to the right of the one above."""
    keys = {(row, column): key for row, line in enumerate(rows) for column, key in enumerate(line)}
    around = ((0, -1), (0, 1), (1, -1), (1, 0), (-1, 0), (-1, 1))
    return {
        key: "".join(keys.get((row + down, column + right), "") for down, right in around)
        for (row, column), key in keys.items()
    }


LATIN = neighbors("qwertyuiop", "asdfghjkl", "zxcvbnm")
RUSSIAN = neighbors("йцукенгшщзхъ", "фывапролджэ", "ячсмитьбю")
UKRAINIAN = neighbors("йцукенгшщзхї", "фівапролджє", "ячсмитьбю")
CYRILLIC = {
    key: "".join(letter for letter in near if letter in UKRAINIAN)
    for key, near in RUSSIAN.items()
    if key in UKRAINIAN
}
"""The letters that the Russian and the Ukrainian keyboard have at the same place."""
ONLY_RUSSIAN = frozenset("ыэё")
ONLY_UKRAINIAN = frozenset("іїєґ")


def keyboard_of(line: str) -> dict[str, str]:
    """The neighbors of each letter on the keyboard that a line was typed on.

    Only letters that a single language has tell the keyboard. Other Cyrillic lines, such as
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


Keyboard = dict[str, str]
LETTER = r"[^\W\d_]"
KEY = "[" + "".join(key + key.upper() for key in LATIN | RUSSIAN | UKRAINIAN) + "]"


def neighbor(letter: str, keyboard: Keyboard, generator: Generator) -> str:
    """A letter on an adjacent key, in the same case."""
    near = keyboard[letter.lower()]
    return in_case_of(near[generator.integers(len(near))], letter)


def swapped(two: str, keyboard: Keyboard, generator: Generator) -> str:
    """Two letters in reverse order, but each position keeps its case: Hu -> Uh."""
    return in_case_of(two[1], two[0]) + in_case_of(two[0], two[1])


Change = Callable[[str, Keyboard, Generator], str]
TYPOS: dict[str, tuple[str, Change]] = {
    "char_swap": (LETTER * 2, swapped),
    "missing_char": (LETTER, lambda letter, keyboard, generator: ""),
    "extra_char": (
        KEY,
        lambda letter, keyboard, generator: neighbor(letter, keyboard, generator) + letter,
    ),
    "nearby_char": (KEY, neighbor),
    "skipped_space": (" ", lambda blank, keyboard, generator: ""),
    "random_space": (LETTER * 2, lambda two, keyboard, generator: f"{two[0]} {two[1]}"),
    "repeated_char": (LETTER, lambda letter, keyboard, generator: letter * 2),
    "unichar": (f"({LETTER})\\2", lambda two, keyboard, generator: two[0]),
}
"""OpusTrainer's name -> a pattern for where the typo can occur, and the function that makes it."""
PLACES = {name: re.compile(f"(?=({pattern}))") for name, (pattern, _) in TYPOS.items()}


def with_typos(line: str, generator: Generator) -> str:
    """Add at most one typo of each kind to a line."""
    keyboard = keyboard_of(line)
    for name, happens in zip(TYPOS, generator.random(len(TYPOS)) < TYPO_RATE, strict=True):
        if not happens:
            continue
        pattern, change = TYPOS[name]
        places = list(PLACES[name].finditer(line))
        if pattern == KEY:
            places = [place for place in places if place[1].lower() in keyboard]
        if places:
            start, end = places[generator.integers(len(places))].span(1)
            line = line[:start] + change(line[start:end], keyboard, generator) + line[end:]
    return line


# Punctuation is removed first, while it ends the line; numbers are added last, so that no other noise changes them.
KINDS: dict[str, Callable[[str, str, Generator], Pair]] = {
    "end_punctuation": without_end_punctuation,
    "upper": lambda source, target, generator: (source.upper(), target.upper()),
    "title": lambda source, target, generator: (title(source), title(target)),
    "typos": lambda source, target, generator: (with_typos(source, generator), target),
    "numbers": with_number,
}


def sentence_generator(seed: int, update: int, micro_batch: int, row: int) -> Generator:
    """The generator for one pair in an update; different arguments give independent streams (Salmon et al. 2011)."""
    # Draws increment the first word of the counter, so streams do not overlap.
    counter = np.array([0, row, micro_batch, update], np.uint64)
    return Generator(np.random.Philox(key=np.array([seed, 0], np.uint64), counter=counter))


class Noise:
    """A transform that adds to each pair the noise configured for its data source."""

    def __init__(
        self,
        tokenizer_file: Path,
        sources: Sequence[SourceConfig],
        noises: list[NoiseConfig],
        seed: int,
    ):
        self.tokenizer, self.noises, self.seed = (
            load_tokenizer(tokenizer_file),
            noises,
            seed % 2**64,
        )
        self.tags = [int(source.data.tag is not None) for source in sources]
        self.samplers = [
            BpeDropout(self.tokenizer, x.bpe_dropout) if x.bpe_dropout else None for x in noises
        ]
        # Few sentences grow by more than this factor. On Multi30k, BPE-dropout 0.1 gave a factor of 1.4 on average.
        self.growth = np.array(
            [1 + 6 * x.bpe_dropout if x.bpe_dropout else 1 + (x != OFF) / 4 for x in noises]
        )

    def __call__(self, pairs: list[IdPair], sources: Ints, planned: MicroBatch) -> list[IdPair]:
        place = self.seed, planned.update, planned.micro_batch
        rows = enumerate(zip(pairs, sources, strict=True))
        return [
            self.changed(*pair, int(source), sentence_generator(*place, row))
            for row, (pair, source) in rows
        ]

    def changed(
        self, source: list[int], target: list[int], number: int, generator: Generator
    ) -> IdPair:
        """Add noise to a pair as configured for the data source with this number."""
        noise, sampler, tags = self.noises[number], self.samplers[number], self.tags[number]
        if noise == OFF:
            return source, target
        texts = self.tokenizer.decode(source[tags:], SOURCE), self.tokenizer.decode(target, TARGET)
        texts = noisy(texts, noise, generator)
        if sampler:
            one, other = (sampler.encode(text, generator) for text in texts)
        else:
            one, other = (self.tokenizer.encode([text], side)[0] for side, text in enumerate(texts))
        return source[:tags] + one, other


def transform(tokenizer_file: Path, sources: Sequence[SourceConfig], seed: int) -> Noise | None:
    """The transform to apply in training; None if no data source has noise."""
    noises = [source.data.plugins.get("noise") or OFF for source in sources]
    return (
        None
        if all(noise == OFF for noise in noises)
        else Noise(tokenizer_file, sources, noises, seed)
    )
