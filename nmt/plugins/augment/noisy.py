"""Micro-batches whose sentences have noise, or subwords drawn at random.

Prepared ids spell the text without loss, so they are decoded, changed and encoded again. The seed, the update, the
micro-batch and the row decide what happens to a sentence.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.config import SourceConfig
from nmt.data import IdPair, Ints, MicroBatch
from nmt.plugins.augment.config import NoiseConfig
from nmt.plugins.augment.noise import noisy, sentence_generator
from nmt.plugins.augment.subword_sampling import subword_sampler
from nmt.text import SOURCE, TARGET, load_tokenizer


def growth(noise: NoiseConfig) -> float:
    """How many times longer, in tokens, most sentences get at most: they are planned with these lengths.

    On Multi30k, BPE-dropout of 0.1 made lines 1.4 times as long on average, unigram sampling with alpha 0.2 1.3 times.
    """
    if noise.bpe_dropout:
        return 1 + 6 * noise.bpe_dropout
    if noise.sampling_alpha is not None:
        return 1 + 0.2 / max(noise.sampling_alpha, 0.05)
    return 1.0 if noise == NoiseConfig() else 1.25


def noise_of(source: SourceConfig) -> NoiseConfig:
    noise: NoiseConfig = source.data.plugins.get("noise") or NoiseConfig()
    return noise


class Noise:
    """A transform: the noise of the source that each sentence is of."""

    def __init__(self, tokenizer_file: Path, sources: Sequence[SourceConfig], seed: int) -> None:
        self.made_of = tokenizer_file, sources, seed
        self.tokenizer, self.sources, self.seed = load_tokenizer(tokenizer_file), sources, seed % 2**64
        noises = self.noises = [noise_of(source) for source in sources]
        self.samplers = [subword_sampler(self.tokenizer, noise) for noise in noises]
        self.growth: NDArray[np.float64] = np.array([growth(noise) for noise in noises])

    def __reduce__(self) -> tuple[type, tuple[Path, Sequence[SourceConfig], int]]:
        return type(self), self.made_of

    def __call__(self, pairs: list[IdPair], sources: Ints, planned: MicroBatch) -> list[IdPair]:
        return [
            self.changed(pair, int(source), sentence_generator(self.seed, planned.update, planned.micro_batch, row))
            for row, (pair, source) in enumerate(zip(pairs, sources, strict=True))
        ]

    def changed(self, pair: IdPair, number: int, generator: np.random.Generator) -> IdPair:
        """A pair of the source with this number after its noise."""
        if self.noises[number] == NoiseConfig():
            return pair
        tags = int(self.sources[number].data.tag is not None)
        texts = self.tokenizer.decode(pair[0][tags:], SOURCE), self.tokenizer.decode(pair[1], TARGET)
        texts = noisy(texts, self.noises[number], generator)
        sampler = self.samplers[number]
        if sampler:
            source, target = (sampler.encode(text, generator) for text in texts)
        else:
            source, target = (self.tokenizer.encode([text], side)[0] for side, text in enumerate(texts))
        return pair[0][:tags] + source, target


def transform(tokenizer_file: Path, sources: Sequence[SourceConfig], seed: int) -> Noise | None:
    """The transform that the core asks for; None where no source has noise."""
    has_noise = any(noise_of(source) != NoiseConfig() for source in sources)
    return Noise(tokenizer_file, sources, seed) if has_noise else None
