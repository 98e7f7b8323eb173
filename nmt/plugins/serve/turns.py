"""An engine that several threads use: they take turns, so that a long search does not keep a short one waiting."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from nmt.config import DecodeConfig
from nmt.plugins.protection.constraints import Constraints
from nmt.search import Engine, Hypothesis, Pair, TokenScores

TURN_TOKENS = 1500
"""Source tokens of a turn: about two batches for each of two cores."""


def turns_of(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Indices of sentences in turns of at most TURN_TOKENS, but at least one, similar lengths together."""
    part, tokens = list[int](), 0
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if part and tokens + lengths[index] > TURN_TOKENS:
            yield part
            part, tokens = [], 0
        part.append(index)
        tokens += lengths[index]
    if part:
        yield part


class Queue:
    """Threads that wait for their turn, in the order in which they came; a Lock would let the last one in again."""

    def __init__(self) -> None:
        self.condition = threading.Condition()
        self.last = self.current = 0

    @contextmanager
    def turn(self) -> Iterator[None]:
        with self.condition:
            own = self.last
            self.last += 1
            self.condition.wait_for(lambda: self.current == own)
        try:
            yield
        finally:
            with self.condition:
                self.current += 1
                self.condition.notify_all()


class TurnsEngine:
    """Searches in turns of some sentences; `alone`: only one thread at a time may use the engine."""

    def __init__(self, engine: Engine, alone: bool, queue: Queue | None = None) -> None:
        self.engine, self.alone, self.queue = engine, alone, queue or Queue()
        self.config = engine.config

    def with_search(self, config: DecodeConfig) -> "TurnsEngine":
        return TurnsEngine(self.engine.with_search(config), self.alone, self.queue)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """A turn, which need not be waited for where threads may use the engine at once."""
        if not self.alone:
            yield
            return
        with self.queue.turn():
            yield

    def search(
        self, sentences: Sequence[list[int]], prefixes: Sequence[list[int]], constraints: Constraints | None = None
    ) -> list[list[Hypothesis]]:
        found: list[list[Hypothesis]] = [[] for _ in sentences]
        for part in turns_of([len(ids) + 1 for ids in sentences]):
            with self.turn():
                own = constraints.of(part) if constraints else None
                begun = [prefixes[index] for index in part]
                results = self.engine.search([sentences[index] for index in part], begun, own)
            for index, result in zip(part, results, strict=True):
                found[index] = result
        return found

    def token_scores(self, pairs: Sequence[Pair]) -> list[TokenScores]:
        found: dict[int, TokenScores] = {}
        for part in turns_of([max(map(len, pair)) + 1 for pair in pairs]):
            with self.turn():
                found |= zip(part, self.engine.token_scores([pairs[index] for index in part]), strict=True)
        return [found[index] for index in range(len(pairs))]

    def next_token(self, pair: Pair) -> NDArray[np.float32]:
        with self.turn():
            return self.engine.next_token(pair)
