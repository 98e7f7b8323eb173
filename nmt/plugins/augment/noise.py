"""Noise in training pairs, as a function of a random generator.

The kinds are those of OpusTrainer (Bogoychev et al. 2023). Other than there, inverted marks go with the mark at the
end, digits have no typos, and the words to be copied are numbers and emoji. Terms are those of Dinu et al. 2019.
"""

import re
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nmt.plugins.augment.config import NoiseConfig
from nmt.plugins.augment.typos import with_typos
from nmt.plugins.protection.glossary import WORD, Glossary, Match, Term, with_targets
from nmt.text import WITHOUT_BLANKS, Pair, clean

Generator = np.random.Generator


def sentence_generator(seed: int, update: int, micro_batch: int, row: int) -> Generator:
    """The generator for a pair of an update; other numbers give an independent stream (Salmon et al. 2011)."""
    # Draws count up the first word of the counter, so streams do not overlap.
    counter = np.array([0, row, micro_batch, update], np.uint64)
    return Generator(np.random.Philox(key=np.array([seed, 0], np.uint64), counter=counter))


def noisy(pair: Pair, config: NoiseConfig, generator: Generator, glossary: Glossary | None = None) -> Pair:
    """A pair of clean lines after noise, clean as well; a pair with an empty side, or that would get one, stays."""
    # A draw for each kind, also where it is off, so that a kind does not decide when others happen.
    happens = generator.random(len(KINDS)) < [getattr(config, kind) for kind in KINDS]
    if not all(pair):
        return pair
    if happens.any():
        pair = changed(pair, happens, generator)
    if config.terms and generator.random() < config.terms:
        return with_terms(*pair, glossary, generator), pair[1]
    return pair


def changed(pair: Pair, happens: NDArray[np.bool_], generator: Generator) -> Pair:
    """A pair with the kinds of noise that happen."""
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


MOST_TERMS = 3
COPIED_LETTERS = 3
"""Fewest letters of a word that counts as a term because both sides have it."""


def with_terms(source: str, target: str, glossary: Glossary | None, generator: Generator) -> str:
    """The source with what the target has for some of its terms beside them."""
    pairs = terms_of(source, target, glossary)
    if not pairs:
        return source
    count = int(generator.integers(1, min(len(pairs), MOST_TERMS) + 1))
    return with_targets(source, [pairs[n] for n in generator.choice(len(pairs), count, replace=False)])


def terms_of(source: str, target: str, glossary: Glossary | None) -> list[tuple[Match, str]]:
    """The terms of a source whose translation is in the target, as it is written there."""
    words = list(WORD.finditer(target))
    folded = [word[0].casefold() for word in words]
    if glossary is None:
        copies = (word for word in WORD.finditer(source) if len(word[0]) >= COPIED_LETTERS)
        matches = [Match(Term(word[0], (word[0],)), *word.span(), False) for word in copies]
    else:
        matches = glossary.find(source)
    pairs = []
    for match in matches:
        for term in ([word.casefold() for word in WORD.findall(text)] for text in match.term.targets):
            places = (n for n in range(len(folded)) if folded[n : n + len(term)] == term)
            if (at := next(places, None)) is not None:
                pairs.append((match, target[words[at].start() : words[at + len(term) - 1].end()]))
                break
    return pairs


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
