"""Lexical constraints: phrases that a translation must contain, and which of them a hypothesis has met. No torch.

An automaton tracks a set of readings, because a hypothesis can be read in several ways: a phrase may begin within
another phrase, and an occurrence of a phrase counts for only one constraint.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, reduce
from typing import TYPE_CHECKING, NamedTuple

from nmt.config import UNK, DecodeConfig
from nmt.plugins.protection.written_terms import WrittenTerms
from nmt.text import META, TARGET, WITHOUT_BLANKS, WORD_CHARACTER, Tokenizer

if TYPE_CHECKING:
    from torch import Tensor

    from nmt.model import Transformer
    from nmt.search import Hypothesis

# Where a phrase counts. BEGINS: starts the translation; FOLLOWS: anywhere else; GLUED: only right after an EDGE token.
BEGINS, FOLLOWS, GLUED = range(3)
# Bits of a token's kind. CONTINUES: it continues a word; EDGE: a word can follow without a space, as after a hyphen.
CONTINUES, EDGE = 1, 2
CLOSING = ".,;:!?)]}%\u2026"  # punctuation that is followed by a space
CONTEXTS = {BEGINS: [""], FOLLOWS: ["x "], GLUED: ["x-", "x ("]}  # what may precede a phrase


class Phrase(NamedTuple):
    """Consecutive tokens that meet a constraint."""

    tokens: tuple[int, ...]
    where: int = FOLLOWS
    closed: bool = True  # ends with a whole word: no token that continues the word may follow


Constraint = tuple[Phrase, ...]  # any one of these phrases meets it


@dataclass(frozen=True)
class PhraseConstraints:
    """Non-overlapping phrases that the translation of each sentence must contain.

    With `terms`, the text decides which phrases it contains, and tokens only guide the search.
    """

    rows: Sequence[Sequence[Constraint]]  # one per sentence
    kinds: bytes  # the kind of each vocabulary entry
    terms: WrittenTerms | None = None

    def of(self, indices: Sequence[int]) -> "PhraseConstraints":
        rows = [self.rows[index] for index in indices]
        return PhraseConstraints(rows, self.kinds, self.terms and self.terms.of(indices))

    def without(self, index: int, number: int) -> "PhraseConstraints":
        """All constraints of a sentence but one."""
        row = [*self.rows[index]]
        del row[number]
        terms = self.terms
        if terms:
            forms = [*terms.rows[index]]
            del forms[number]
            terms = replace(terms, rows=[forms])
        return PhraseConstraints([row], self.kinds, terms)

    def are_met(self, index: int, tokens: Sequence[int]) -> bool:
        if self.terms:
            return self.terms.met(index, tokens) == (1 << len(self.rows[index])) - 1
        tracker = Tracker(self.rows[index], self.kinds)
        return not tracker.left(reduce(tracker.step, tokens, tracker.start))

    def search(
        self,
        models: "Sequence[Transformer]",
        source_BS: "Tensor",
        config: DecodeConfig,
        prefixes: Sequence[list[int]],
    ) -> "list[list[Hypothesis]]":
        from nmt.plugins.protection.constrained_search import constrained_search  # imports torch

        return constrained_search(models, source_BS, config, prefixes, self)


def is_letter(character: str) -> bool:
    """Whether a character forms words with its neighbors, as in scripts with blanks."""
    return WORD_CHARACTER.match(character) is not None and not WITHOUT_BLANKS.match(character)


@lru_cache
def kinds(tokenizer: Tokenizer) -> bytes:
    """The kind of each token, made up of the bits CONTINUES and EDGE."""

    def kind(id: int) -> int:
        symbol, text = tokenizer.subwords([id])[0], tokenizer.decode([id])
        blank = symbol.startswith(META) or text.startswith(" ")
        if not text or "\ufffd" in text:  # a space, or part of a character
            return EDGE if symbol == META else CONTINUES * (not blank)
        edge = not is_letter(text[-1]) and text[-1] not in CLOSING
        return CONTINUES * (not blank and is_letter(text[0])) + EDGE * edge

    return bytes(map(kind, range(tokenizer.vocabulary_size)))


@lru_cache(100_000)
def phrases(tokenizer: Tokenizer, text: str, where: int) -> list[Phrase]:
    """The tokens of a term in each context; empty if the vocabulary cannot spell it."""
    contexts = CONTEXTS[where] + ["\u3002"] * (
        where == FOLLOWS and bool(WITHOUT_BLANKS.match(text))
    )
    closed, ways = is_letter(text[-1]), []
    for context in contexts:
        before, both = tokenizer.encode(
            [context.strip(), tokenizer.clean(context + text, TARGET)], TARGET
        )
        tokens = tuple(both[len(before) :])
        if both[: len(before)] == before and tokens and UNK not in tokens:
            ways.append(Phrase(tokens, where, closed))
    return ways


Place = tuple[
    int, int
]  # the phrase in progress and the number of its tokens so far, or one of these:
START, FREE, MARKED, CLOSED = (-1, 0), (-2, 0), (-3, 0), (-4, 0)
OPEN = {START: (BEGINS,), MARKED: (FOLLOWS, GLUED)}
Reading = tuple[int, Place]  # constraints met so far, one bit each, and the place
State = frozenset[Reading]
MOST_READINGS = 64  # a limit for constraints that overlap in hundreds of ways


class Tracker:
    """Follows hypotheses of a sentence; the state of a hypothesis is the set of its readings."""

    start: State = frozenset([(0, START)])

    def __init__(self, constraints: Sequence[Constraint], kinds: bytes) -> None:
        self.kinds = kinds
        # Identical constraints must be met in order; -1 means that there is no earlier identical one.
        numbered = list(enumerate(constraints))
        self.before = [
            max((m for m, same in numbered[:n] if same == phrases), default=-1)
            for n, phrases in numbered
        ]
        self.owners = [index for index, constraint in enumerate(constraints) for _ in constraint]
        self.phrases = [phrase for constraint in constraints for phrase in constraint]
        shortest = [min(len(phrase.tokens) for phrase in constraint) for constraint in constraints]
        # Only phrases that can begin anywhere are possible after every token.
        usual = [
            [len(phrase.tokens) for phrase in phrases if phrase.where == FOLLOWS]
            for phrases in constraints
        ]
        self.usual = [min(lengths, default=99) for lengths in usual]
        self.relevant = {token for phrase in self.phrases for token in phrase.tokens}
        self.open, self.after = cache(self.phrases_at), cache(self.readings_after)
        self.corrected = cache(self.with_met)
        self.advancing = cache(self.tokens_that_advance)
        self.outlook = cache(self.tokens_left_after)
        self.left = cache(
            lambda state: min(self.tokens_left(reading, self.usual) for reading in state)
        )
        """Tokens needed to meet all constraints using only phrases that can begin anywhere."""
        self.least = cache(
            lambda state: min(self.tokens_left(reading, shortest) for reading in state)
        )
        """Fewest tokens needed if every phrase is allowed."""

    def step(self, state: State, token: int) -> State:
        # Tokens that occur in no phrase differ only in their kind.
        return self.after(state, token if token in self.relevant else -1, self.kinds[token])

    def needs(self, state: State, token: int) -> tuple[int, int]:
        """What `left` and `least` are after another token."""
        return self.outlook(state, token if token in self.relevant else -1, self.kinds[token])

    def tokens_left_after(self, state: State, token: int, kind: int) -> tuple[int, int]:
        after = self.after(state, token, kind)
        return self.left(after), self.least(after)

    def readings_after(self, state: State, token: int, kind: int) -> State:
        return frozenset(
            self.best({after for reading in state for after in self.follow(reading, token, kind)})
        )

    def follow(self, reading: Reading, token: int, kind: int) -> list[Reading]:
        met, (phrase, done) = reading
        if phrase >= 0:
            return (
                [self.reached(met, phrase, done + 1)]
                if self.phrases[phrase].tokens[done] == token
                else []
            )
        if reading[1] == CLOSED and kind & CONTINUES:
            return []
        begun = [self.reached(met, phrase, 1) for phrase in self.open(reading).get(token, ())]
        return [(met, MARKED if kind & EDGE else FREE), *begun]

    def reached(self, met: int, phrase: int, done: int) -> Reading:
        if done < len(self.phrases[phrase].tokens):
            return met, (phrase, done)
        tokens, _, closed = self.phrases[phrase]
        behind = MARKED if self.kinds[tokens[-1]] & EDGE else FREE
        return met | 1 << self.owners[phrase], CLOSED if closed else behind

    def phrases_at(self, reading: Reading) -> dict[int, list[int]]:
        """The phrases that can begin, by first token; of identical constraints, only those of the first unmet one."""
        (met, place), by_token = reading, dict[int, list[int]]()
        unmet = [
            not met >> n & 1 and (before < 0 or met >> before & 1)
            for n, before in enumerate(self.before)
        ]
        for n, phrase in enumerate(self.phrases):
            if unmet[self.owners[n]] and phrase.where in OPEN.get(place, (FOLLOWS,)):
                by_token.setdefault(phrase.tokens[0], []).append(n)
        return by_token

    def with_met(self, state: State, met: int) -> State:
        """A state in which exactly some constraints are met, whatever its readings say."""
        readings = {(met, FREE)}
        for _, place in state:
            phrase, _ = place
            if phrase < 0 or not met >> self.owners[phrase] & 1:
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
        return sorted(tokens)

    def tokens_left(self, reading: Reading, lengths: Sequence[int]) -> int:
        """The number of tokens that a reading still needs, given the length of each constraint not yet begun."""
        met, (phrase, done) = reading
        count = sum(length for n, length in enumerate(lengths) if not met >> n & 1)
        return (
            count
            if phrase < 0
            else count + len(self.phrases[phrase].tokens) - done - lengths[self.owners[phrase]]
        )

    def best(self, readings: set[Reading]) -> list[Reading]:
        """The readings without a better one at the same place; at most the MOST_READINGS nearest to completion."""

        def is_worse(met: int, place: Place) -> bool:
            return any(
                place == there and met != more and met & more == met for more, there in readings
            )

        kept = [reading for reading in readings if not is_worse(*reading)]
        kept.sort(key=lambda reading: (self.tokens_left(reading, self.usual), reading))
        # Also keep one reading that is not within a phrase, because any token can follow it.
        free = [reading for reading in kept[MOST_READINGS:] if reading[1] in (FREE, MARKED)][:1]
        return kept[:MOST_READINGS] + free
