"""BPE-dropout with a given random generator: random segmentation into subwords.

sentencepiece's own generator is not reproducible: up to version 0.2.2, only a thread's first draw
reads the seed; since 0.2.3, each process adds a secret to the seed, so two processes with the same
seed differ.

A subword never crosses a word boundary, so words are segmented one by one and frequent words are
cached.
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
"""The merges of longer words are not cached.

Such words, for example sentences without spaces, seldom recur.
"""
KEPT_MERGES = 2**16
"""Cached word segmentations, at most 30 MB."""


class BpeDropout:
    """BPE that skips merges at random.

    As in sentencepiece, each pair gets only one chance to be merged. In the algorithm of Provilkov
    et al. (2020), a dropped pair can still be merged after the next merge. Reserved symbols are
    never split.
    """

    def __init__(self, tokenizer: Tokenizer, dropout: float) -> None:
        if not isinstance(tokenizer, SentencePieceTokenizer) or tokenizer.kind != "bpe":
            raise NMTError(
                f"data.noise.bpe_dropout={dropout}: needs a bpe vocabulary, not {tokenizer.kind}"
            )
        self.tokenizer = tokenizer
        self.dropout = dropout
        self.ids = dict[str, list[int]]()
        self.scores = dict[str, float]()
        reserved = set[str]()
        for id, subword in enumerate(tokenizer.parsed().pieces):
            self.ids[subword.piece] = [id]
            if subword.type == subword.NORMAL:
                self.scores[subword.piece] = subword.score
            elif subword.type == subword.USER_DEFINED:
                reserved.add(subword.piece)
        self.reserved = frozenset(reserved)
        # An alternation takes the first symbol that matches, which might be the beginning of
        # another.
        longest_first = sorted(reserved, key=len, reverse=True)
        symbols = "|".join(map(re.escape, longest_first))
        self.cuts = re.compile(f"({symbols or '(?!)'})")
        # Some imported vocabularies have subwords with spaces inside.
        crosses_words = any(META in subword[1:] for subword in self.scores)
        self.word = re.compile("(?s:.+)" if crosses_words else f"{META}?[^{META}]+|{META}")
        # A cache of this object, not of the class: another vocabulary has other ids.
        self.kept = lru_cache(KEPT_MERGES)(self.merged)
        """`merged`, with cached results."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Processes that load batches get a new object: a cache cannot be pickled.
        return type(self), (self.tokenizer, self.dropout)

    def encode(self, line: str, generator: Generator) -> list[int]:
        """Return ids that decode to the line."""
        ids = list[int]()
        # As in sentencepiece, which puts META before the first word and in place of spaces.
        normalized = self.tokenizer.processor.normalize(escaped(line))
        for index, part in enumerate(self.cuts.split(normalized)):
            if index % 2 == 1:  # a reserved symbol
                ids += self.segment(part, generator)
            else:
                # A word includes the space before it.
                for word in self.word.findall(part):
                    ids += self.segment(word, generator)
        return ids

    def segment(self, word: str, generator: Generator) -> list[int]:
        """The ids of a word, or of a reserved symbol, with randomly dropped merges."""
        if len(word) > KEPT_LETTERS:
            return self.segment_long(word, generator)
        # First without dropped merges, because only that tells how many attempts there are.
        dropped: tuple[int, ...] = ()
        ids, attempts = self.kept(word, dropped)
        for attempt in self.attempts_to_drop(generator):
            # The word is finished before the next attempt to drop.
            if attempt >= attempts:
                break
            # Merged anew, because a dropped merge changes the pairs and the number of attempts.
            dropped = (*dropped, attempt)
            ids, attempts = self.kept(word, dropped)
        return ids

    def segment_long(self, word: str, generator: Generator) -> list[int]:
        """`segment` for a word that is not cached: it is merged only once."""
        # How many attempts there will be is not known yet. n letters form at most 3n pairs: n - 1
        # at first, plus two for each of at most n - 1 merges.
        most_attempts = 3 * len(word)
        drops = self.attempts_to_drop(generator)
        dropped = frozenset(takewhile(lambda attempt: attempt < most_attempts, drops))
        ids, _ = self.merged(word, dropped)
        return ids

    def attempts_to_drop(self, generator: Generator) -> Iterator[int]:
        """The indices of the merge attempts to drop, counted from 0 and rising without end.

        With a dropout of 0.1, about every tenth. Empty without dropout.
        """
        attempt = -1
        while self.dropout:
            # One draw per dropped attempt instead of one per attempt: the gaps between failures of
            # independent attempts have a geometric distribution.
            attempt += int(generator.geometric(self.dropout))
            yield attempt

    def merged(self, word: str, dropped: Collection[int]) -> tuple[list[int], int]:
        """Return a word's ids and the number of merge attempts.

        Each attempt is on the best pair (in a tie, the leftmost). The attempts whose indices are in
        `dropped` fail.
        """
        if word in self.reserved:
            return self.ids[word], 0
        # At first, each letter is a subword. The subword that begins at i ends at ends[i] (0: none
        # begins there); the one before it begins at before[i].
        ends = list(range(1, len(word) + 1))
        before = list(range(-1, len(word)))
        pairs: list[tuple[float, int, int, int]] = []

        def consider(left: int, right: int) -> None:
            """Add the subwords that begin at `left` and `right` if they form a known subword."""
            if left < 0 or right >= len(word):
                return
            end = ends[right]
            score = self.scores.get(word[left:end])
            if score is not None:
                # The smallest tuple is the best pair, and of equal ones the leftmost.
                heapq.heappush(pairs, (-score, left, right, end))

        for right in range(1, len(word)):
            consider(right - 1, right)
        attempts = 0
        while pairs:
            _, left, right, end = heapq.heappop(pairs)
            if ends[left] != right or ends[right] != end:
                continue  # one of the two has been merged with another subword
            if attempts not in dropped:
                # The merged subword takes the place of both.
                ends[left] = end
                ends[right] = 0
                before[end] = left
                consider(before[left], left)
                consider(left, end)
            attempts += 1
        ids = list[int]()
        for start, end in enumerate(ends):
            if end:
                ids += self.spelled(word[start:end])
        return ids, attempts

    def spelled(self, subword: str) -> list[int]:
        """The id of a subword or, if it is unknown, the ids of its bytes."""
        if subword in self.scores or subword in self.reserved:
            return self.ids[subword]
        ids = list[int]()
        for byte in subword.encode():
            # Vocabularies without entries for bytes have only the unknown symbol.
            ids += self.ids.get(f"<0x{byte:02X}>", [UNK])
        return ids
