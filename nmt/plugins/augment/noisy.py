"""Micro-batches whose sentences have noise, or subwords drawn at random.

Prepared ids spell the text without loss, so they are decoded, changed and encoded again. The seed, the update, the
micro-batch and the row decide what happens to a sentence.
"""

from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nmt.config import SourceConfig
from nmt.data import Batch, MicroBatch, PreparedSplit
from nmt.plugins.augment.config import NoiseConfig
from nmt.plugins.augment.noise import noisy, sentence_generator
from nmt.plugins.augment.subword_sampling import SubwordSampler, subword_sampler
from nmt.plugins.protection.glossary import Glossary, read_glossary
from nmt.text import SOURCE, TARGET, Tokenizer, load_tokenizer

HINT_TOKENS = 8
"""Tokens that are planned for hints, whatever the length: two marks, of two bytes each at worst, and a term."""


def growth(noise: NoiseConfig) -> float:
    """How many times longer, in tokens, most sentences get at most: they are planned with these lengths.

    On Multi30k, BPE-dropout of 0.1 made lines 1.4 times as long on average, unigram sampling with alpha 0.2 1.3 times.
    """
    if noise.bpe_dropout:
        return 1 + 6 * noise.bpe_dropout
    if noise.sampling_alpha is not None:
        return 1 + 0.2 / max(noise.sampling_alpha, 0.05)
    return 1.0 if noise == NoiseConfig() else 1.25


class NoisySplit:
    """Batches of a split, with the noise of the source that each sentence is of."""

    def __init__(
        self,
        split: PreparedSplit,
        tokenizer_file: Path,
        sources: list[SourceConfig],
        bounds: NDArray[np.int64],
        seed: int,
    ) -> None:
        self.split, self.tokenizer_file, self.sources = split, tokenizer_file, sources
        self.bounds, self.seed = bounds, seed % 2**64
        self.samplers  # noqa: B018 - an option that the vocabulary does not allow is refused before training
        noises = [source.data.noise for source in sources]
        self.glossaries: list[Glossary | None] = [
            read_glossary(own.glossary) if own.glossary else None for own in noises
        ]

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return load_tokenizer(self.tokenizer_file)

    @cached_property
    def samplers(self) -> list[SubwordSampler | None]:
        return [subword_sampler(self.tokenizer, source.data.noise) for source in self.sources]

    def batch(self, planned: MicroBatch) -> Batch:
        """The sentences of a micro-batch. One that would get longer than was planned for stays as it is."""
        rows = self.split.table[planned.indices]
        sides = [rows.column(side).to_pylist() for side in ("source", "target")]
        sources = np.searchsorted(self.bounds, planned.indices, side="right") - 1
        for row, number in enumerate(sources):
            noise, tagged = self.sources[number].data.noise, self.sources[number].data.tag is not None
            if noise != NoiseConfig():
                generator = sentence_generator(self.seed, planned.update, planned.micro_batch, row)
                tag, source = sides[0][row][:tagged], sides[0][row][tagged:]
                texts = self.tokenizer.decode(source, SOURCE), self.tokenizer.decode(sides[1][row], TARGET)
                pair = noisy(texts, noise, generator, self.glossaries[number])
                sampler = self.samplers[number]
                if sampler:
                    found = [sampler.encode(text, generator) for text in pair]
                else:
                    found = [self.tokenizer.encode([text], side)[0] for side, text in enumerate(pair)]
                found[0] = tag + found[0]
                if all(len(ids) < width for ids, width in zip(found, planned.widths, strict=True)):
                    sides[0][row], sides[1][row] = found
        columns = [pa.array(side, pa.list_(pa.int32())) for side in sides]
        return self.split.padded(*columns)
