"""Lexical constraints: phrases that a translation must have, and how far a hypothesis has come with them. No torch.

What was written is read by an automaton of sets of places, as there are several ways to read it: a phrase may begin
within another one, and one occurrence counts for one constraint alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Phrase(NamedTuple):
    """Tokens that satisfy a constraint where they stand together."""

    tokens: tuple[int, ...]
    begins: bool = False
    """It counts as the first tokens of a translation alone; else anywhere but there."""
    closed: bool = True
    """A word ends with it: no token may follow that continues one."""


Constraint = tuple[Phrase, ...]
"""Phrases of which any one is enough."""


@dataclass(frozen=True)
class Constraints:
    """What the translations of some sentences must have, apart from each other."""

    rows: Sequence[Sequence[Constraint]]
    """The constraints of each sentence."""
    continues: bytes
    """For each entry of the vocabulary, 1 if it continues a word."""

    def of(self, indices: Sequence[int]) -> "Constraints":
        """Those of some of the sentences."""
        return Constraints([self.rows[index] for index in indices], self.continues)


Place = tuple[int, int]
"""A phrase that was begun, and how many of its tokens are written; or one of these:"""
START, FREE, CLOSED = (-1, 0), (-2, 0), (-3, 0)
Reading = tuple[int, Place]
"""The constraints that are met, as bits, and the place."""


class Tracker:
    """The states of a sentence's hypotheses, numbered from 0, the empty hypothesis, as they are met."""

    def __init__(self, constraints: Sequence[Constraint], continues: bytes) -> None:
        self.constraints, self.continues = constraints, continues
        own = [(index, phrase) for index, constraint in enumerate(constraints) for phrase in constraint]
        self.owners, self.phrases = [index for index, _ in own], [phrase for _, phrase in own]
        self.shortest = [min(len(phrase.tokens) for phrase in constraint) for constraint in constraints]
        self.relevant = {token for phrase in self.phrases for token in phrase.tokens}
        self.numbers: dict[frozenset[Reading], int] = {}
        self.readings: list[frozenset[Reading]] = []
        self.left: list[int] = []
        """Fewest tokens until all constraints of a state are met."""
        self.wanted: list[list[int]] = []
        """The tokens with which a state goes on with a phrase or begins one."""
        self.known: dict[tuple[int, int], int] = {}
        self.number(frozenset([(0, START)]))

    def step(self, state: int, token: int) -> int:
        """The state after a token."""
        # All tokens that are in no phrase are alike, but for whether they continue a word.
        key = state, token if token in self.relevant else -1 - self.continues[token]
        if key not in self.known:
            found = {after for reading in self.readings[state] for after in self.follow(reading, token)}
            self.known[key] = self.number(frozenset(best(found)))
        return self.known[key]

    def number(self, readings: frozenset[Reading]) -> int:
        """The number of a state, which may be new."""
        if readings not in self.numbers:
            self.numbers[readings] = len(self.readings)
            self.readings.append(readings)
            self.left.append(min(map(self.tokens_left, readings)))
            self.wanted.append(sorted({token for reading in readings for token in self.next_tokens(reading)}))
        return self.numbers[readings]

    def follow(self, reading: Reading, token: int) -> list[Reading]:
        """What a reading can become by a token."""
        met, place = reading
        phrase, done = place
        if phrase >= 0:
            return [self.reached(met, phrase, done + 1)] if self.phrases[phrase].tokens[done] == token else []
        if place == CLOSED and self.continues[token]:
            return []
        begun = [self.reached(met, own, 1) for own in self.open(reading) if self.phrases[own].tokens[0] == token]
        return [(met, FREE), *begun]

    def reached(self, met: int, phrase: int, done: int) -> Reading:
        if done < len(self.phrases[phrase].tokens):
            return met, (phrase, done)
        return met | 1 << self.owners[phrase], CLOSED if self.phrases[phrase].closed else FREE

    def open(self, reading: Reading) -> list[int]:
        """The phrases that can begin; of equal constraints, the first that is not met."""
        met, place = reading
        unmet = {self.constraints[n]: n for n in reversed(range(len(self.constraints))) if not met >> n & 1}.values()
        starts = place == START
        return [n for n, phrase in enumerate(self.phrases) if self.owners[n] in unmet and phrase.begins == starts]

    def next_tokens(self, reading: Reading) -> list[int]:
        phrase, done = reading[1]
        if phrase >= 0:
            return [self.phrases[phrase].tokens[done]]
        return [self.phrases[own].tokens[0] for own in self.open(reading)]

    def tokens_left(self, reading: Reading) -> int:
        met, (phrase, done) = reading
        count = sum(shortest for n, shortest in enumerate(self.shortest) if not met >> n & 1)
        if phrase >= 0:
            count += len(self.phrases[phrase].tokens) - done - self.shortest[self.owners[phrase]]
        return count


def best(readings: set[Reading]) -> list[Reading]:
    """The readings that are no worse than another one at the same place."""
    return [
        (met, place)
        for met, place in readings
        if not any(place == there and met != more and met & more == met for more, there in readings)
    ]
