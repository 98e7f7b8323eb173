"""BPE-dropout with a given random generator: random segmentation into subwords.

sentencepiece's own generator is not reproducible: up to version 0.2.2, only a thread's first draw reads the seed; since
0.2.3, each process adds a secret to the seed, so two processes with the same seed differ.

A subword never crosses a word boundary, so words are segmented one by one and frequent words are cached.
"""

import heapq
import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import takewhile
from typing import Any

from numpy.random import Generator

from nmt.config import UNK, NMTError
from nmt.text import META, SentencePieceTokenizer, Tokenizer, escaped

KEPT_LETTERS = 40
"""The merges of longer words, such as sentences without spaces, are not cached, because they seldom recur."""
KEPT_MERGES = 2**16  # cached word segmentations, at most 30 MB


class BpeDropout:
    """BPE that skips merges at random. As in sentencepiece, each pair gets only one chance to be merged.

    In the algorithm of Provilkov et al. (2020), a dropped pair can still be merged after the next merge.
    Reserved symbols are never split.
    """

    def __init__(self, tokenizer: Tokenizer, dropout: float) -> None:
        if not isinstance(tokenizer, SentencePieceTokenizer) or tokenizer.kind != "bpe":
            raise NMTError(
                f"data.noise.bpe_dropout={dropout}: needs a bpe vocabulary, not {tokenizer.kind}"
            )
        self.tokenizer, self.dropout, pieces = tokenizer, dropout, tokenizer.parsed().pieces
        self.ids = {subword.piece: [id] for id, subword in enumerate(pieces)}
        self.scores = {
            subword.piece: subword.score for subword in pieces if subword.type == subword.NORMAL
        }
        self.reserved = frozenset(
            subword.piece for subword in pieces if subword.type == subword.USER_DEFINED
        )
        symbols = map(re.escape, sorted(self.reserved, key=len, reverse=True))
        self.cuts = re.compile(f"({'|'.join(symbols) or '(?!)'})")
        crosses_words = any(
            META in subword[1:] for subword in self.scores
        )  # as some imported vocabularies do
        self.word = re.compile("(?s:.+)" if crosses_words else f"{META}?[^{META}]+|{META}")
        self.kept = lru_cache(KEPT_MERGES)(self.merged)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.tokenizer, self.dropout)

    def encode(self, line: str, generator: Generator) -> list[int]:
        """Return ids that decode to the line."""
        parts = enumerate(self.cuts.split(self.tokenizer.processor.normalize(escaped(line))))
        # Reserved symbols have odd indices. A word includes the space before it.
        words = (
            word
            for index, part in parts
            for word in ([part] if index % 2 else self.word.findall(part))
        )
        return [id for word in words for id in self.segment(word, generator)]

    def segment(self, word: str, generator: Generator) -> list[int]:
        drops = self.drops(generator)
        if len(word) > KEPT_LETTERS:
            # n letters form at most 3n pairs: n - 1 at first, plus two for each of at most n - 1 merges.
            return self.merged(
                word, frozenset(takewhile(lambda attempt: attempt < 3 * len(word), drops))
            )[0]
        dropped: tuple[int, ...] = ()
        ids, attempts = self.kept(word, dropped)
        while (drop := next(drops, attempts)) < attempts:
            dropped = *dropped, drop
            ids, attempts = self.kept(word, dropped)
        return ids

    def drops(self, generator: Generator) -> Iterator[int]:
        """Endlessly yield the indices of the merge attempts to drop, counted from 0."""
        attempt = -1
        while self.dropout:
            attempt += int(generator.geometric(self.dropout))
            yield attempt

    def merged(self, word: str, dropped: Collection[int]) -> tuple[list[int], int]:
        """Return a word's ids and the number of merge attempts, each on the best pair (in a tie, the leftmost).

        The attempts whose indices are in `dropped` fail.
        """
        if word in self.reserved:
            return self.ids[word], 0
        # The subword that begins at i ends at ends[i] (0: none begins there); the one before it begins at before[i].
        ends, before = list(range(1, len(word) + 1)), list(range(-1, len(word)))
        pairs: list[tuple[float, int, int, int]] = []

        def consider(left: int, right: int) -> None:
            if (
                left >= 0
                and right < len(word)
                and (score := self.scores.get(word[left : ends[right]])) is not None
            ):
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
        return [
            id for start, end in enumerate(ends) if end for id in self.spelled(word[start:end])
        ], attempts

    def spelled(self, subword: str) -> list[int]:
        """The id of a subword or, if it is unknown, the ids of its bytes."""
        if subword in self.scores or subword in self.reserved:
            return self.ids[subword]
        return [id for byte in subword.encode() for id in self.ids.get(f"<0x{byte:02X}>", [UNK])]
