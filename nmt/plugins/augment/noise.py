"""Noise and random subword segmentation for the sentences of a micro-batch.

Prepared ids encode the text losslessly, so they can be decoded, changed and re-encoded. A
sentence's noise depends only on the seed, the update, the micro-batch and the row.

The kinds of noise are those of OpusTrainer (Bogoychev et al. 2023), except that the words to copy
are numbers.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.random import Generator

from nmt.config import SourceConfig
from nmt.data import IdPair, Ints, MicroBatch
from nmt.plugins.augment.bpe_dropout import BpeDropout
from nmt.plugins.augment.plugin import NoiseConfig
from nmt.plugins.augment.typos import with_typos
from nmt.text import SOURCE, TARGET, WITHOUT_BLANKS, Pair, canonical, load_tokenizer

OFF = NoiseConfig()
NUMBER_DIGITS = 6
"""Maximum number of digits in a number to copy."""
FIRST_LETTER = re.compile(r"(?:^|(?<= ))([^\w ]*)(\w)")
"""The first letter or digit of a word, after any leading marks such as quotes."""
MARKS = [
    ".\u3002\u0964\u0965\u06d4\u104b\u1362\u0589\u17d4\u0f0d",
    "!\u055c",
    "?;\u061f\u055e\u1367",
    ",\u3001\u060c\u104a\u055d",
    ":\u1365\u1366\u00b7",
    ";\u061b\u1364",
]
"""Final punctuation marks by kind.

Normalization has turned the Greek question mark into a semicolon.
"""
ALL_MARKS = "".join(MARKS)
BORDER = re.compile(f"(?<=[,;:!?\u3001\u3002])(?={WITHOUT_BLANKS.pattern})| ")
"""A border between words; in scripts without spaces, only punctuation is certain to end a word."""


def noisy(pair: Pair, config: NoiseConfig, generator: Generator) -> Pair:
    """Add noise to two clean lines and clean the result.

    Keep the pair as it is if a side is or would become empty.
    """
    # Draw for every kind, even a disabled one, so that the setting of one kind does not change the
    # draws of another.
    probabilities = [getattr(config, kind) for kind in KINDS]
    happens = generator.random(len(KINDS)) < probabilities
    if not all(pair) or not happens.any():
        return pair
    source, target = pair
    for change, is_made in zip(KINDS.values(), happens, strict=True):
        if is_made:
            source, target = change(source, target, generator)
    source = canonical(source)
    target = canonical(target)
    return (source, target) if source and target else pair


def without_end_punctuation(source: str, target: str, generator: Generator) -> Pair:
    """Remove the final punctuation from both sides if it is a single mark of the same kind."""
    # Removed from one side alone, the model would learn to add or drop punctuation.
    if not any(source[-1] in marks and target[-1] in marks for marks in MARKS):
        return source, target
    source_body = source[:-1].rstrip()
    target_body = target[:-1].rstrip()
    for body in (source_body, target_body):
        if not body or body[-1] in ALL_MARKS:
            return source, target
    return source_body, target_body


def upper(source: str, target: str, generator: Generator) -> Pair:
    return source.upper(), target.upper()


def title(source: str, target: str, generator: Generator) -> Pair:
    """Capitalize every word."""
    return in_title_case(source), in_title_case(target)


def in_title_case(line: str) -> str:
    return FIRST_LETTER.sub(lambda word: word[1] + word[2].title(), line)


def typos(source: str, target: str, generator: Generator) -> Pair:
    return with_typos(source, generator), target


def with_number(source: str, target: str, generator: Generator) -> Pair:
    """Insert the same number at the same relative position on both sides."""
    digits = int(generator.integers(1, NUMBER_DIGITS + 1))
    number = int(generator.integers(10 ** (digits - 1), 10**digits))
    position = generator.random()
    return (
        with_word(source, str(number), position),
        with_word(target, str(number), position),
    )


def with_word(line: str, word: str, position: float) -> str:
    """Insert a word at a border between words; `position` is in [0, 1)."""
    # The word order may differ, so the same relative position is only about the same place.
    borders = [border.start() for border in BORDER.finditer(line)]
    places = [0, *borders, len(line)]
    place = places[int(position * len(places))]
    return f"{line[:place]} {word} {line[place:]}"


KINDS: dict[str, Callable[[str, str, Generator], Pair]] = {
    "end_punctuation": without_end_punctuation,  # first, while it ends the line
    "upper": upper,
    "title": title,
    "typos": typos,
    "numbers": with_number,  # last, so that no other noise changes them
}
"""Maps keys of NoiseConfig to the functions that make the noise, in the order of their draws."""


def sentence_generator(seed: int, update: int, micro_batch: int, row: int) -> Generator:
    """The generator for one pair in an update.

    Different arguments give independent streams (Salmon et al. 2011).
    """
    # Draws increment the first word of the counter, so streams do not overlap.
    counter = np.array([0, row, micro_batch, update], np.uint64)
    key = np.array([seed, 0], np.uint64)
    return Generator(np.random.Philox(key=key, counter=counter))


class Noise:
    """A transform that adds to each pair the noise configured for its data source."""

    def __init__(
        self,
        tokenizer_file: Path,
        sources: Sequence[SourceConfig],
        noises: list[NoiseConfig],
        seed: int,
    ):
        self.tokenizer = load_tokenizer(tokenizer_file)
        self.noises = noises
        # Philox has keys of 64-bit words.
        self.seed = seed % 2**64
        # The number of tags before the source and the target of each data source.
        self.tags = [self.tags_of(source.data.tag) for source in sources]
        self.samplers = list[BpeDropout | None]()
        for noise in noises:
            dropout = noise.bpe_dropout
            self.samplers.append(BpeDropout(self.tokenizer, dropout) if dropout else None)
        self.growth = np.array([growth_of(noise) for noise in noises])

    def tags_of(self, tag: str | None) -> tuple[int, int]:
        """The number of tokens that a tag adds to sources and targets."""
        if tag is None:
            return 0, 0
        return 1, len(self.tokenizer.target_start(tag))

    def __call__(self, pairs: list[IdPair], sources: Ints, planned: MicroBatch) -> list[IdPair]:
        changed = []
        for row, (pair, number) in enumerate(zip(pairs, sources, strict=True)):
            # A generator per pair, not one for all: the noise of a pair must not depend on its
            # neighbors, or on which device computes its micro-batch.
            generator = sentence_generator(self.seed, planned.update, planned.micro_batch, row)
            changed.append(self.changed(pair, int(number), generator))
        return changed

    def changed(self, pair: IdPair, number: int, generator: Generator) -> IdPair:
        """Add noise to a pair as configured for the data source with this number."""
        noise = self.noises[number]
        # Decoding and encoding again would give the same ids, and cost time.
        if noise == OFF:
            return pair
        source, target = pair
        # Tags are symbols, not text: they are set aside, so that noise cannot change them.
        of_source, of_target = self.tags[number]
        texts = (
            self.tokenizer.decode(source[of_source:], SOURCE),
            self.tokenizer.decode(target[of_target:], TARGET),
        )
        source_text, target_text = noisy(texts, noise, generator)
        sampler = self.samplers[number]
        if sampler:
            source_ids = sampler.encode(source_text, generator)
            target_ids = sampler.encode(target_text, generator)
        else:
            [source_ids] = self.tokenizer.encode([source_text], SOURCE)
            [target_ids] = self.tokenizer.encode([target_text], TARGET)
        return source[:of_source] + source_ids, target[:of_target] + target_ids


def growth_of(noise: NoiseConfig) -> float:
    """The factor that few sentences exceed when they grow.

    On Multi30k, BPE-dropout 0.1 gave a factor of 1.4 on average.
    """
    # Batches are planned with room for longer sentences, before the noise is drawn.
    if noise.bpe_dropout:
        return 1 + 6 * noise.bpe_dropout
    return 1.0 if noise == OFF else 1.25


def transform(tokenizer_file: Path, sources: Sequence[SourceConfig], seed: int) -> Noise | None:
    """The transform to apply in training; None if no data source has noise."""
    noises = [source.data.plugins.get("noise") or OFF for source in sources]
    if all(noise == OFF for noise in noises):
        return None
    return Noise(tokenizer_file, sources, noises, seed)
