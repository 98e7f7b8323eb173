"""The automaton that knows which constraints a hypothesis has met.

It tracks a set of readings, because a hypothesis can be read in several ways: a phrase may begin
within another phrase, and an occurrence of a phrase counts for only one constraint.
"""

from collections.abc import Sequence
from functools import cache

from nmt.plugins.protection.phrases import (
    BEGINS,
    CONTINUES,
    EDGE,
    FOLLOWS,
    GLUED,
    Constraint,
    Phrase,
)

Place = tuple[int, int]
"""The number of the phrase in progress and the number of its tokens so far, or one of these."""
# Negative, so that `phrase >= 0` means within a phrase.
START = (-1, 0)
"""Before the first token."""
FREE = (-2, 0)
"""Within no phrase."""
MARKED = (-3, 0)
"""Within no phrase, after an `EDGE` token."""
CLOSED = (-4, 0)
"""After a phrase that no token may continue as a word."""
PHRASES_AT = {START: (BEGINS,), MARKED: (FOLLOWS, GLUED)}
"""Place -> kinds of phrases that can begin there; at any other place, only FOLLOWS."""

Reading = tuple[int, Place]
"""The constraints met so far, one bit each, and the place."""
State = frozenset[Reading]
# Without it, constraints that share tokens would multiply the readings at every step.
MOST_READINGS = 64
"""A limit for constraints that overlap in hundreds of ways."""
IRRELEVANT = -1
"""Stands for any token that occurs in no phrase: such tokens differ only in their kind."""
# Large, so that hypotheses that still need such a constraint form the last bank.
UNREACHABLE = 99
"""The length of a constraint without a phrase that can begin anywhere."""


def length_of(constraint: Constraint) -> int:
    """The fewest tokens that meet a constraint."""
    return min(len(phrase.tokens) for phrase in constraint)


def length_anywhere(constraint: Constraint) -> int:
    """The fewest tokens that meet a constraint after any token."""
    lengths = [len(phrase.tokens) for phrase in constraint if phrase.where == FOLLOWS]
    return min(lengths, default=UNREACHABLE)


def identical_before(constraints: Sequence[Constraint], number: int) -> int:
    """The last constraint before one that is identical to it; -1 if there is none."""
    for earlier in reversed(range(number)):
        if constraints[earlier] == constraints[number]:
            return earlier
    return -1


class Tracker:
    """Follows hypotheses of a sentence; the state of a hypothesis is the set of its readings."""

    start: State = frozenset([(0, START)])

    def __init__(self, constraints: Sequence[Constraint], kinds: bytes) -> None:
        """`kinds` are those of the vocabulary's tokens."""
        self.kinds = kinds
        self.phrases = list[Phrase]()
        self.owners = list[int]()
        """The number of each phrase's constraint."""
        self.relevant = set[int]()
        """The tokens that occur in phrases."""
        for number, constraint in enumerate(constraints):
            for phrase in constraint:
                self.phrases.append(phrase)
                self.owners.append(number)
                self.relevant.update(phrase.tokens)
        # Identical constraints must be met in order. It makes no difference which of them a phrase
        # meets, but without an order, each subset of them would be a separate reading.
        self.earlier = [identical_before(constraints, n) for n in range(len(constraints))]
        self.lengths = [length_of(constraint) for constraint in constraints]
        self.lengths_anywhere = [length_anywhere(constraint) for constraint in constraints]
        # The hypotheses of a sentence have few states, but each is looked up thousands of times.
        self.open = cache(self.phrases_at)
        self.after = cache(self.readings_after)
        self.corrected = cache(self.with_constraints_met)
        self.advancing = cache(self.tokens_that_advance)
        self.outlook = cache(self.tokens_left_after)
        self.left = cache(self.tokens_left_anywhere)
        self.least = cache(self.fewest_tokens_left)

    def step(self, state: State, token: int) -> State:
        # A vocabulary has tens of thousands of tokens; a cache keyed by each of them would rarely
        # hit.
        relevant_token = token if token in self.relevant else IRRELEVANT
        return self.after(state, relevant_token, self.kinds[token])

    def needs(self, state: State, token: int) -> tuple[int, int]:
        """The values of `left` and `least` after another token."""
        relevant_token = token if token in self.relevant else IRRELEVANT
        return self.outlook(state, relevant_token, self.kinds[token])

    def tokens_left_after(self, state: State, token: int, kind: int) -> tuple[int, int]:
        after = self.after(state, token, kind)
        return self.left(after), self.least(after)

    def tokens_left_anywhere(self, state: State) -> int:
        """Tokens needed to meet all constraints with only phrases that can begin anywhere."""
        return min(self.tokens_left(reading, self.lengths_anywhere) for reading in state)

    def fewest_tokens_left(self, state: State) -> int:
        """Fewest tokens needed to meet all constraints if every phrase is allowed."""
        return min(self.tokens_left(reading, self.lengths) for reading in state)

    def readings_after(self, state: State, token: int, kind: int) -> State:
        readings = set[Reading]()
        for reading in state:
            readings.update(self.follow(reading, token, kind))
        return frozenset(self.best(readings))

    def follow(self, reading: Reading, token: int, kind: int) -> list[Reading]:
        """The readings that a reading can become with another token."""
        met, place = reading
        phrase, done = place
        # Giving up the phrase needs no case here: each reading that began one was kept beside the
        # reading that ignored its first token.
        if phrase >= 0:
            if self.phrases[phrase].tokens[done] != token:
                return []
            return [self.reached(met, phrase, done + 1)]
        # "Druckers" does not contain the term "Drucker".
        if place == CLOSED and kind & CONTINUES:
            return []
        # The first reading ignores phrases that the token may begin.
        readings: list[Reading] = [(met, MARKED if kind & EDGE else FREE)]
        for begun in self.open(reading).get(token, ()):
            readings.append(self.reached(met, begun, 1))
        return readings

    def reached(self, met: int, phrase: int, done: int) -> Reading:
        """The reading with the first tokens of a phrase, perhaps all."""
        tokens, _, is_closed = self.phrases[phrase]
        if done < len(tokens):
            return met, (phrase, done)
        met |= 1 << self.owners[phrase]
        if is_closed:
            return met, CLOSED
        # The last token of a phrase may itself be an edge, such as a hyphen.
        return met, MARKED if self.kinds[tokens[-1]] & EDGE else FREE

    def phrases_at(self, reading: Reading) -> dict[int, list[int]]:
        """The phrases that can begin, by first token.

        Of identical constraints, only the phrases of the first unmet one are included.
        """
        met, place = reading
        # By first token, since each step asks for the phrases that one token begins.
        by_token = dict[int, list[int]]()
        possible = PHRASES_AT.get(place, (FOLLOWS,))
        for number, phrase in enumerate(self.phrases):
            if phrase.where in possible and self.is_next(self.owners[number], met):
                by_token.setdefault(phrase.tokens[0], []).append(number)
        return by_token

    def is_next(self, constraint: int, met: int) -> bool:
        """Whether a constraint is unmet, and all identical ones before it are met."""
        if met >> constraint & 1:
            return False
        earlier = self.earlier[constraint]
        return earlier < 0 or bool(met >> earlier & 1)

    def with_constraints_met(self, state: State, met: int) -> State:
        """A state with the places of a given one, in which exactly the constraints `met` are met.

        `met` has one bit per constraint. It comes from the text of the hypothesis, which shows more
        reliably than its tokens which terms it has.
        """
        # The text may contain a term that is spelled with other tokens than its phrases have, and
        # the hypothesis is then within no phrase.
        readings = {(met, FREE)}
        for _, place in state:
            phrase, _ = place
            is_in_phrase = phrase >= 0
            # Completing a phrase is pointless once its constraint is met.
            if is_in_phrase and met >> self.owners[phrase] & 1:
                continue
            readings.add((met, place))
        return frozenset(self.best(readings))

    def tokens_that_advance(self, state: State) -> list[int]:
        """The tokens that can continue or begin a phrase in a given state, in ascending order."""
        tokens = set[int]()
        for reading in state:
            phrase, done = reading[1]
            if phrase >= 0:
                tokens.add(self.phrases[phrase].tokens[done])
            else:
                tokens.update(self.open(reading))
        # Sorted, so that nothing depends on the order of the set.
        return sorted(tokens)

    def tokens_left(self, reading: Reading, lengths: Sequence[int]) -> int:
        """The number of tokens that a reading still needs.

        `lengths` are those of the constraints, for each that has not begun.
        """
        met, (phrase, done) = reading
        count = 0
        for number, length in enumerate(lengths):
            if not met >> number & 1:
                count += length
        if phrase >= 0:
            # The loop counted the constraint of the phrase in progress as not begun.
            remaining = len(self.phrases[phrase].tokens) - done
            count += remaining - lengths[self.owners[phrase]]
        return count

    def best(self, readings: set[Reading]) -> list[Reading]:
        """The readings without a better one at the same place.

        At most the MOST_READINGS nearest to completion, and one that is within no phrase.
        """
        kept = [reading for reading in readings if not has_better(reading, readings)]
        # The reading itself breaks ties, so that the choice does not depend on the order of the
        # set.
        kept.sort(key=lambda reading: (self.tokens_left(reading, self.lengths_anywhere), reading))
        for reading in kept[MOST_READINGS:]:
            if reading[1] in (FREE, MARKED):  # any token can follow it
                return [*kept[:MOST_READINGS], reading]
        return kept[:MOST_READINGS]


def has_better(reading: Reading, others: set[Reading]) -> bool:
    """Whether another reading at the same place has met more constraints, and all of these."""
    met, place = reading
    for other_met, other_place in others:
        if place == other_place and met != other_met and met & other_met == met:
            return True
    return False
