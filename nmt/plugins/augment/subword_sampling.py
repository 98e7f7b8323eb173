"""Random segmentations into subwords, drawn by a given generator: BPE-dropout, and sampling from a unigram model.

sentencepiece draws from a generator of its own. Up to version 0.2.2 only the first draw of a thread reads the seed, and
from 0.2.3 each process adds a secret to it, so that two processes with one seed differ.

A subword never reaches over the beginning of a word, so words are segmented one by one, and what is known of frequent
words is kept.
"""

import heapq
import math
import re
from abc import ABC, abstractmethod
from bisect import bisect
from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import accumulate, takewhile
from typing import Any

import numpy as np

from nmt.config import UNK
from nmt.errors import NMTError
from nmt.plugins.augment.config import NoiseConfig
from nmt.text import KEPT_LETTERS, META, SentencePieceTokenizer, Tokenizer, escaped, parsed, vocabulary_kind

Generator = np.random.Generator

KEPT_MERGES, KEPT_LATTICES = 2**16, 2**15
"""Segmentations by BPE, and lattices of words, that are kept: 30 and 90 MB at most."""
UNKNOWN_PENALTY = 10.0
"""sentencepiece's: an unknown character's score is so much below that of the least probable subword."""


class SubwordSampler(ABC):
    """Lines to the ids of a random segmentation; reserved symbols stay whole."""

    def __init__(self, tokenizer: SentencePieceTokenizer) -> None:
        self.tokenizer, model = tokenizer, parsed(tokenizer)
        self.ids = {subword.piece: [id] for id, subword in enumerate(model.pieces)}
        self.scores = {subword.piece: subword.score for subword in model.pieces if subword.type == subword.NORMAL}
        reserved = [subword.piece for subword in model.pieces if subword.type == subword.USER_DEFINED]
        self.reserved = frozenset(reserved)
        self.cuts = re.compile("|".join(re.escape(symbol) for symbol in sorted(reserved, key=len, reverse=True)))
        whole = any(META in subword[1:] for subword in self.scores)
        self.word = re.compile("(?s:.+)" if whole else f"{META}?[^{META}]+|{META}")

    @abstractmethod
    def segment(self, word: str, generator: Generator) -> list[int]:
        """The ids of one word."""

    def encode(self, line: str, generator: Generator) -> list[int]:
        """The ids of a line, which decode to it in NFKC."""
        return [id for word in self.words(line) for id in self.segment(word, generator)]

    def words(self, line: str) -> Iterator[str]:
        """The words of a line, each behind its blank, and its reserved symbols."""
        text = str(self.tokenizer.processor.normalize(escaped(line)))
        start = 0
        if self.reserved:
            for symbol in self.cuts.finditer(text):
                yield from self.word.findall(text[start : symbol.start()])
                yield symbol[0]
                start = symbol.end()
        yield from self.word.findall(text[start:])

    def spelt(self, subword: str) -> list[int]:
        """The id of a subword, or those of its bytes."""
        if subword in self.scores or subword in self.reserved:
            return self.ids[subword]
        return [id for byte in subword.encode() for id in self.ids.get(f"<0x{byte:02X}>", [UNK])]


Merged = tuple[list[int], int]
"""Ids, and the number of merges that were done or dropped."""


class BpeDropout(SubwordSampler):
    """BPE without merges that are dropped at random, as in sentencepiece: a pair has one chance.

    In the algorithm of Provilkov et al. (2020), a pair that is dropped may be merged after the next merge.
    """

    def __init__(self, tokenizer: SentencePieceTokenizer, dropout: float) -> None:
        super().__init__(tokenizer)
        self.dropout = dropout
        self.kept = lru_cache(KEPT_MERGES)(self.merged)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.tokenizer, self.dropout)

    def segment(self, word: str, generator: Generator) -> list[int]:
        drops = self.drops(generator)
        if len(word) > KEPT_LETTERS:
            # Of n letters no more than 3 n pairs are formed: n - 1 at first, and two by each of at most n - 1 merges.
            return self.merged(word, frozenset(takewhile(lambda attempt: attempt < 3 * len(word), drops)))[0]
        dropped: tuple[int, ...] = ()
        merged = self.kept(word, dropped)
        for attempt in drops:
            if attempt >= merged[1]:
                break
            dropped = *dropped, attempt
            merged = self.kept(word, dropped)
        return merged[0]

    def drops(self, generator: Generator) -> Iterator[int]:
        """The attempts to drop, counted from 0, in order and without end."""
        attempt = -1
        while self.dropout:
            attempt += int(generator.geometric(self.dropout))
            yield attempt

    def merged(self, word: str, dropped: Collection[int]) -> Merged:
        """A word after merging the best pair, the left one of equals, until there is none; attempts `dropped` fail."""
        if word in self.reserved:
            return self.ids[word], 0
        # The subword that begins at i ends at ends[i]; 0 where none begins. The one before it begins at before[i].
        ends, before = list(range(1, len(word) + 1)), list(range(-1, len(word)))
        pairs: list[tuple[float, int, int, int]] = []

        def consider(left: int, right: int) -> None:
            if left >= 0 and right < len(word):
                score = self.scores.get(word[left : ends[right]])
                if score is not None:
                    heapq.heappush(pairs, (-score, left, right, ends[right]))

        for right in range(1, len(word)):
            consider(right - 1, right)
        attempts = 0
        while pairs:
            _, left, right, end = heapq.heappop(pairs)
            if ends[left] != right or ends[right] != end:
                continue
            if attempts not in dropped:
                ends[left], ends[right], before[end] = end, 0, left
                consider(before[left], left)
                consider(left, end)
            attempts += 1
        ids = [id for start, end in enumerate(ends) if end for id in self.spelt(word[start:end])]
        return ids, attempts


LastSubword = tuple[list[float], list[int]]
"""The subwords that a segmentation may end with: their cumulative probabilities, without the last, and their starts."""


class UnigramSampler(SubwordSampler):
    """Segmentations drawn by their probability to the power of alpha, of all there are (Kudo 2018)."""

    def __init__(self, tokenizer: SentencePieceTokenizer, alpha: float) -> None:
        super().__init__(tokenizer)
        self.alpha = alpha
        self.longest = max(map(len, self.scores), default=1)
        self.unknown = min(self.scores.values(), default=0.0) - UNKNOWN_PENALTY
        self.kept = lru_cache(KEPT_LATTICES)(self.lattice)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.tokenizer, self.alpha)

    def segment(self, word: str, generator: Generator) -> list[int]:
        if word in self.reserved:
            return self.ids[word]
        lattice = (self.kept if len(word) <= KEPT_LETTERS else self.lattice)(word)
        end, spellings = len(word), []
        while end:
            borders, starts = lattice[end]
            start = starts[bisect(borders, generator.random()) if borders else 0]
            spellings.append(self.spelt(word[start:end]))
            end = start
        return [id for spelling in reversed(spellings) for id in spelling]

    def lattice(self, word: str) -> list[LastSubword]:
        """The last subword of the first n letters, for every n."""
        lattice: list[LastSubword] = [([], [])]
        # The logarithm of the sum over all segmentations of the first n letters.
        totals = [0.0]
        for end in range(1, len(word) + 1):
            starts = [n for n in range(max(0, end - self.longest), end) if word[n:end] in self.scores or n == end - 1]
            logs = [totals[n] + self.alpha * self.scores.get(word[n:end], self.unknown) for n in starts]
            largest = max(logs)
            totals.append(largest + math.log(sum(math.exp(log - largest) for log in logs)))
            borders = list(accumulate(math.exp(log - totals[end]) for log in logs))[:-1]
            lattice.append((borders, starts))
        return lattice


def subword_sampler(tokenizer: Tokenizer, config: NoiseConfig) -> SubwordSampler | None:
    """The sampler that `config` asks for, if it does; NMTError where the noise is not for this vocabulary."""
    kind, keys = vocabulary_kind(tokenizer), {"bpe": "bpe_dropout", "unigram": "sampling_alpha"}
    for key, value in (("bpe_dropout", config.bpe_dropout or None), ("sampling_alpha", config.sampling_alpha)):
        if value is not None and keys.get(kind) != key:
            instead = f"use data.noise.{keys[kind]}" if kind in keys else "its segmentations cannot be sampled"
            raise NMTError(f"data.noise.{key}={value} with a vocabulary of kind {kind}: {instead}")
    if not isinstance(tokenizer, SentencePieceTokenizer):
        return None
    if config.bpe_dropout:
        return BpeDropout(tokenizer, config.bpe_dropout)
    return None if config.sampling_alpha is None else UnigramSampler(tokenizer, config.sampling_alpha)
