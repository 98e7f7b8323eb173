"""Noise in training pairs, as a function of a random generator.

The kinds are those of OpusTrainer (Bogoychev et al. 2023). Other than there, inverted marks go with the mark at the
end, digits have no typos, and the words to be copied are numbers and emoji.
"""

import re
from collections.abc import Callable

import numpy as np

from nmt.plugins.augment.config import NoiseConfig
from nmt.plugins.augment.typos import with_typos
from nmt.text import WITHOUT_BLANKS, Pair, clean

Generator = np.random.Generator


def sentence_generator(seed: int, update: int, micro_batch: int, row: int) -> Generator:
    """The generator for a pair of an update; other numbers give an independent stream (Salmon et al. 2011)."""
    # Draws count up the first word of the counter, so streams do not overlap.
    counter = np.array([0, row, micro_batch, update], np.uint64)
    return Generator(np.random.Philox(key=np.array([seed, 0], np.uint64), counter=counter))


def noisy(pair: Pair, config: NoiseConfig, generator: Generator) -> Pair:
    """A pair of clean lines after noise, clean as well; a pair with an empty side, or that would get one, stays."""
    # A draw for each kind, also where it is off, so that a kind does not decide when others happen.
    happens = generator.random(len(KINDS)) < [getattr(config, kind) for kind in KINDS]
    if not all(pair) or not happens.any():
        return pair
    source, target = pair
    for change, now in zip(KINDS.values(), happens, strict=True):
        if now:
            source, target = change(source, target, generator)
    source, target = clean(source), clean(target)
    return (source, target) if source and target else pair


def upper(source: str, target: str, generator: Generator) -> Pair:
    return source.upper(), target.upper()


FIRST_LETTER = re.compile(r"(?:^|(?<= ))([^\w ]*)(\w)")
"""The first letter or digit of a word, behind marks such as quotes."""


def title(source: str, target: str, generator: Generator) -> Pair:
    capital = [FIRST_LETTER.sub(lambda word: word[1] + word[2].title(), side) for side in (source, target)]
    return capital[0], capital[1]


MARKS = [".\u3002\u0964\u0965\u06d4\u104b\u1362\u0589\u17d4\u0f0d", "!\u055c", "?;\u061f\u055e\u1367"]
MARKS += [",\u3001\u060c\u104a\u055d", ":\u1365\u1366\u00b7", ";\u061b\u1364"]
"""Final marks by kind, in NFKC; the Greek question mark is a semicolon there."""
INVERTED = {"!": "\u00a1", "?": "\u00bf"}


def without_end_punctuation(source: str, target: str, generator: Generator) -> Pair:
    """Both sides without their last mark, if it is of the same kind and the only one."""
    bodies = source[:-1].rstrip(), target[:-1].rstrip()
    alike = any(source[-1] in marks and target[-1] in marks for marks in MARKS)
    if not alike or any(not body or body[-1] in "".join(MARKS) for body in bodies):
        return source, target
    return without_inverted(bodies[0], source[-1]), without_inverted(bodies[1], target[-1])


def without_inverted(body: str, mark: str) -> str:
    """A line without the inverted mark that belongs to the mark after it."""
    if mark not in INVERTED:
        return body
    before, _, behind = body.rpartition(INVERTED[mark])
    return before + behind


NUMBER_DIGITS = 6
"""Most digits of a number to be copied."""
EMOJI = range(0x1F600, 0x1F650)
# Between words; in scripts without blanks, only behind punctuation is it certain that a word ends.
BORDER = re.compile(f"(?<=[,;:!?\u3001\u3002])(?={WITHOUT_BLANKS.pattern})| ")


def copied_number(source: str, target: str, generator: Generator) -> Pair:
    digits = int(generator.integers(1, NUMBER_DIGITS + 1))
    return copied(source, target, str(generator.integers(10 ** (digits - 1), 10**digits)), generator)


def copied_emoji(source: str, target: str, generator: Generator) -> Pair:
    return copied(source, target, chr(generator.integers(EMOJI.start, EMOJI.stop)), generator)


def copied(source: str, target: str, word: str, generator: Generator) -> Pair:
    """Both sides with a word inserted at the same share of their words."""
    share = generator.random()
    return inserted(source, word, share), inserted(target, word, share)


def inserted(line: str, word: str, share: float) -> str:
    places = [0, *(border.start() for border in BORDER.finditer(line)), len(line)]
    place = places[int(share * len(places))]
    return f"{line[:place]} {word} {line[place:]}"


# Punctuation comes first, as it is at the end of a text before a word is copied there. What is to be copied comes last,
# so that both sides have the same.
KINDS: dict[str, Callable[[str, str, Generator], Pair]] = {
    "end_punctuation": without_end_punctuation,
    "upper": upper,
    "title": title,
    "typos": lambda source, target, generator: (with_typos(source, generator), target),
    "numbers": copied_number,
    "emoji": copied_emoji,
}
