"""Translations that must contain phrases.

Oracles: for the search, enumeration of all translations; for the automaton, all ways to read one.
"""

from collections.abc import Iterator
from itertools import chain, product

import pytest
import torch
from hypothesis import given, settings, strategies as st

from nmt.config import PAD, UNK, DecodeConfig
from nmt.plugins.protection.constrained_search import ConstrainedSearch
from nmt.plugins.protection.constraints import PhraseConstraints
from nmt.plugins.protection.phrases import (
    BEGINS,
    CONTINUES,
    EDGE,
    FOLLOWS,
    GLUED,
    Constraint,
    Phrase,
)
from nmt.plugins.protection.tracker import Tracker
from nmt.search import TorchEngine
from tests.core.test_search import (
    A,
    B,
    C,
    assert_same,
    enumerate_all,
    most_tokens,
    random_sources,
    tiny_model,
)
from tests.helpers.waits import counted_waits

SIZE = UNK + 1 + 3
KINDS_OF_WORDS = {C: CONTINUES, B: EDGE}
KINDS = bytes(KINDS_OF_WORDS.get(token, 0) for token in range(SIZE))
"""C continues the word before it; after B, a word can begin without a blank."""


def anywhere(*tokens: int, closed: bool = False) -> tuple[Phrase, Phrase]:
    return Phrase(tokens, BEGINS, closed), Phrase(tokens, FOLLOWS, closed)


TABLE: list[list[Constraint]] = [
    [anywhere(A)],
    [anywhere(A, B)],
    [anywhere(A, closed=True)],
    [anywhere(A), anywhere(B)],
    [anywhere(A), anywhere(A)],
    [anywhere(A), anywhere(A, B)],
    [anywhere(A, A, B), anywhere(A, closed=True)],
    [(*anywhere(A, B), *anywhere(C, C))],
    [(Phrase((B,), BEGINS, False), Phrase((A,), FOLLOWS, False))],
    [(Phrase((A, C), BEGINS, False), Phrase((B,), FOLLOWS, True)), anywhere(B)],
    [(Phrase((A, A), FOLLOWS, False), Phrase((C,), GLUED))],
]


def places_at(target: list[int], position: int) -> list[int]:
    """Which phrases can begin at a position of a translation."""
    if position == 0:
        return [BEGINS]
    if KINDS[target[position - 1]] == EDGE:
        return [FOLLOWS, GLUED]
    return [FOLLOWS]


def spans(target: list[int], phrase: Phrase) -> Iterator[set[int]]:
    """Where a phrase stands, as sets of positions."""
    for begin in range(len(target) - len(phrase.tokens) + 1):
        end = begin + len(phrase.tokens)
        if tuple(target[begin:end]) != phrase.tokens:
            continue
        is_continued = end < len(target) and KINDS[target[end]] & CONTINUES
        if phrase.closed and is_continued:
            continue
        if phrase.where in places_at(target, begin):
            yield set(range(begin, end))


def has_all(target: list[int], constraints: list[Constraint]) -> bool:
    """Whether all constraints stand in a translation, without overlap."""
    spans_of_constraints = []
    for constraint in constraints:
        spans_of_phrases = [spans(target, phrase) for phrase in constraint]
        spans_of_constraints.append([*chain.from_iterable(spans_of_phrases)])
    for chosen in product(*spans_of_constraints):
        positions = set().union(*chosen)
        if sum(map(len, chosen)) == len(positions):
            return True
    return False


def padded(sources: list[list[int]]) -> torch.Tensor:
    longest = max(map(len, sources))
    return torch.tensor([source + [PAD] * (longest - len(source)) for source in sources])


def constrained_search(models, sources, config, rows, prefixes=None):
    constraints = PhraseConstraints(rows, KINDS)
    with torch.inference_mode():
        search = ConstrainedSearch(models, padded(sources), config, prefixes, constraints)
        return search.run()


def ends_with_hyphen(phrase: Phrase) -> bool:
    return phrase.tokens[-1] == B


phrases = st.builds(
    Phrase,
    st.lists(st.sampled_from([A, B, C]), min_size=1, max_size=3).map(tuple),
    st.integers(0, 2),
    st.booleans(),
).filter(lambda phrase: not phrase.closed or not ends_with_hyphen(phrase))
constraints = st.lists(st.lists(phrases, min_size=1, max_size=2).map(tuple), min_size=1, max_size=3)


@pytest.mark.slow
@given(constraints, st.lists(st.sampled_from([A, B, C]), max_size=7))
@settings(max_examples=400, deadline=None)
def test_tracker_knows_which_constraints_are_met(row, target):
    tracker = Tracker(row, KINDS)
    state = tracker.start
    tokens_left = []
    for token in target:
        tokens_left.append(tracker.least(state))
        state = tracker.step(state, token)
    is_met = has_all(target, row)
    assert (tracker.left(state) == 0) == is_met
    if is_met:
        for position, left in enumerate(tokens_left):
            assert left <= len(target) - position


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.5])
@pytest.mark.parametrize("prefix", [[], [A]], ids=str)
@pytest.mark.parametrize("row", TABLE, ids=str)
def test_a_beam_that_holds_all_hypotheses_finds_the_best_translations(row, prefix, alpha):
    models = [tiny_model(), tiny_model(seed=3)]
    config = DecodeConfig(beam_size=65, n_best=65, length_penalty=alpha, max_extra_length=2)
    for source in random_sources([1, 2, 3]):
        expected = []
        for score, tokens in enumerate_all(models, source, config, prefix):
            if has_all(tokens, row):
                expected.append((score, tokens))
        [hypotheses] = constrained_search(models, [source], config, [row], [prefix])
        assert_same(hypotheses, expected[:65])


@pytest.mark.parametrize("beam", [1, 2, 4])
@pytest.mark.parametrize("extra", [0, 1, 5])
@pytest.mark.parametrize("row", TABLE, ids=str)
@pytest.mark.parametrize("unlikely", [[], [A], [A, B]], ids=str)
def test_a_narrow_beam_finds_all_phrases_up_to_the_last_position(beam, extra, row, unlikely):
    """However unlikely their tokens are, and if the length leaves room for nothing else."""
    model = tiny_model()
    with torch.no_grad():
        model.output.bias[unlikely] -= 30
    max_length = Tracker(row, KINDS).left(Tracker.start) + extra
    config = DecodeConfig(beam_size=beam, n_best=beam, max_length=max_length, max_extra_length=9)
    sources = random_sources([2, 4, 3])
    results = constrained_search([model], sources, config, [row] * len(sources))
    for source, hypotheses in zip(sources, results, strict=True):
        longest = min(most_tokens(source, config, []), 5)
        assert hypotheses or not is_possible(row, longest)
        for hypothesis in hypotheses:
            assert has_all(hypothesis.tokens, row)


def is_possible(row: list[Constraint], longest: int) -> bool:
    """Whether a translation of up to `longest` tokens has all constraints."""
    for length in range(longest + 1):
        for target in product([A, B, C], repeat=length):
            if has_all(list(target), row):
                return True
    return False


@pytest.mark.parametrize("beam", [1, 4])
def test_constraints_met_by_the_prefix_lose_no_score(beam):
    """A translation is as likely as without constraints, or likelier, because the beam is wider."""
    model = tiny_model(words=9)
    sources = random_sources([3, 2, 6, 4], words=9)
    prefixes = [[A], [A, B], [B, A, A], [A, A]]
    engine = TorchEngine([model], DecodeConfig(beam_size=beam, n_best=beam, max_extra_length=4))
    constraints = PhraseConstraints([[anywhere(A)]] * 4, bytes(model.vocabulary_size))
    free = engine.search(sources, prefixes)
    constrained = engine.search(sources, prefixes, constraints)
    for hypotheses, expected in zip(constrained, free, strict=True):
        assert len(hypotheses) == len(expected)
        for hypothesis, other in zip(hypotheses, expected, strict=True):
            assert hypothesis.score >= other.score - 1e-4


def test_sentences_with_and_without_constraints_do_not_affect_each_other():
    """Those without are as in a search without any, to the bit; the others as in a search alone."""
    model = tiny_model(words=9)
    sources = [ids[:-1] for ids in random_sources([40, 3, 7, 44, 5, 60], words=9)]
    rows: list[list[Constraint]] = [
        [],
        [anywhere(A, B)],
        [],
        [anywhere(B), anywhere(B), anywhere(C)],
        [],
        [],
    ]
    kinds = bytes(model.vocabulary_size)
    prefixes = [[]] * len(sources)
    config = DecodeConfig(beam_size=3, n_best=2, max_extra_length=5, batch_tokens=64)
    engine = TorchEngine([model], config)
    together = engine.search(sources, prefixes, PhraseConstraints(rows, kinds))
    free = [index for index, row in enumerate(rows) if not row]
    without = engine.search([sources[index] for index in free], prefixes[: len(free)])
    for index, expected in zip(free, without, strict=True):
        assert [vars(h) for h in together[index]] == [vars(h) for h in expected]
    for index in (1, 3):
        constraints = PhraseConstraints([rows[index]], kinds)
        [alone] = engine.search([sources[index]], [[]], constraints)
        assert_same(together[index], [(h.score, h.tokens) for h in alone])


@pytest.mark.parametrize(
    ("search", "second", "kept"),
    [
        ({"max_length": 3}, anywhere(C, C), (0, 2)),
        ({"no_repeat_ngram_size": 1}, anywhere(C), (1, 2)),
        ({"max_length": 1}, anywhere(C, C), (2,)),
    ],
    ids=str,
)
def test_of_constraints_that_exclude_each_other_the_longest_are_dropped(search, second, kept):
    row = [anywhere(A, B), second, anywhere(A)]
    engine = TorchEngine([tiny_model()], DecodeConfig(beam_size=3, max_extra_length=9, **search))
    [[best]] = engine.search([[A, B]], [[]], PhraseConstraints([row], KINDS))
    assert has_all(best.tokens, [row[number] for number in kept])
    assert not has_all(best.tokens, row)


def test_a_step_waits_for_a_gpu_six_times_whatever_the_batch():
    """It reads the beam, the candidates, the new beam and a count, and copies two tables."""
    sources = random_sources([3, 6, 4, 5, 7, 2, 8])
    constraints = PhraseConstraints(TABLE[: len(sources)], KINDS)
    config = DecodeConfig(beam_size=3, max_extra_length=5)
    counts = []
    with torch.inference_mode():
        search = ConstrainedSearch([tiny_model()], padded(sources), config, [], constraints)
        search.reads_freely = False
        while len(search.sentences):
            with counted_waits() as waits:
                search.advance()
            counts.append(waits.count)
    assert len(counts) > 4
    assert max(counts) == 6
