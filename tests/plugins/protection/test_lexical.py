"""Phrases that translations must have: the search against enumeration, and the automaton against all ways to read."""

from itertools import product

import pytest
import torch
from hypothesis import given, settings, strategies as st
from test_search import A, B, C, assert_same, enumerate_all, most_tokens, random_sources, tiny_model
from waits import counted_waits

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

SIZE = UNK + 1 + 3
KINDS = bytes({C: CONTINUES, B: EDGE}.get(token, 0) for token in range(SIZE))
"""C continues the word before it; behind B a word can begin without a blank."""


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


def spans(target: list[int], phrase: Phrase):
    """Where a phrase stands, as sets of positions."""
    for at in range(len(target) - len(phrase.tokens) + 1):
        end = at + len(phrase.tokens)
        follows = phrase.closed and end < len(target) and KINDS[target[end]] & CONTINUES
        places = [FOLLOWS] + [GLUED] * (KINDS[target[at - 1]] == EDGE) if at else [BEGINS]
        if tuple(target[at:end]) == phrase.tokens and not follows and phrase.where in places:
            yield set(range(at, end))


def has_all(target: list[int], constraints: list[Constraint]) -> bool:
    """Whether all constraints stand in a translation, at places of their own."""
    each = [
        [span for phrase in constraint for span in spans(target, phrase)]
        for constraint in constraints
    ]
    return any(sum(map(len, chosen)) == len(set().union(*chosen)) for chosen in product(*each))


def lexical(models, sources, config, rows, prefixes=None):
    longest = max(map(len, sources))
    source_BS = torch.tensor([s + [PAD] * (longest - len(s)) for s in sources])
    with torch.inference_mode():
        return ConstrainedSearch(
            models, source_BS, config, prefixes, PhraseConstraints(rows, KINDS)
        ).run()


phrases = st.builds(
    Phrase,
    st.lists(st.sampled_from([A, B, C]), min_size=1, max_size=3).map(tuple),
    st.integers(0, 2),
    st.booleans(),
).filter(
    lambda phrase: not (phrase.closed and phrase.tokens[-1] == B)
)  # a word ends with no hyphen
constraints = st.lists(st.lists(phrases, min_size=1, max_size=2).map(tuple), min_size=1, max_size=3)


@given(constraints, st.lists(st.sampled_from([A, B, C]), max_size=7))
@settings(max_examples=400, deadline=None)
def test_the_automaton_knows_what_is_met_in_any_way_to_read(row, target):
    tracker, lacks = Tracker(row, KINDS), []
    state = tracker.start
    for token in target:
        lacks.append(tracker.least(state))
        state = tracker.step(state, token)
    assert (tracker.left(state) == 0) == has_all(target, row)
    assert all(left <= len(target) - at for at, left in enumerate(lacks)) or not has_all(
        target, row
    )


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.5])
@pytest.mark.parametrize("prefix", [[], [A]], ids=str)
@pytest.mark.parametrize("row", TABLE, ids=str)
def test_a_beam_that_holds_everything_finds_the_best_translations_with_the_phrases(
    row, prefix, alpha
):
    models = [tiny_model(), tiny_model(seed=3)]
    config = DecodeConfig(beam_size=65, n_best=65, length_penalty=alpha, max_extra_length=2)
    for source in random_sources([1, 2, 3]):
        expected = [
            each for each in enumerate_all(models, source, config, prefix) if has_all(each[1], row)
        ]
        assert_same(lexical(models, [source], config, [row], [prefix])[0], expected[:65])


@pytest.mark.parametrize("beam", [1, 2, 4])
@pytest.mark.parametrize("unlikely", [[], [A], [A, B]], ids=str)
def test_a_narrow_beam_has_all_phrases_too_up_to_the_last_position(beam, unlikely):
    """However unlikely their tokens are, and where the length leaves room for nothing else."""
    model = tiny_model()
    with torch.no_grad():
        model.output.bias[unlikely] -= 30
    for row in TABLE:
        least = Tracker(row, KINDS).left(Tracker.start)
        for extra in (0, 1, 5):
            config = DecodeConfig(
                beam_size=beam, n_best=beam, max_length=least + extra, max_extra_length=9
            )
            sources = random_sources([2, 4, 3])
            for source, found in zip(
                sources, lexical([model], sources, config, [row] * 3), strict=True
            ):
                possible = any(
                    has_all(list(target), row)
                    for length in range(min(most_tokens(source, config, []), 5) + 1)
                    for target in product([A, B, C], repeat=length)
                )
                assert bool(found) or not possible
                assert all(has_all(hypothesis.tokens, row) for hypothesis in found)


def test_what_a_search_finds_anyway_is_not_lost():
    """Where the prefix has all phrases, a translation is as likely as without them, or more, as the beam is wider."""
    model = tiny_model(words=9)
    sources, prefixes = random_sources([3, 2, 6, 4], words=9), [[A], [A, B], [B, A, A], [A, A]]
    kinds = bytes(model.vocabulary_size)
    for beam in (1, 4):
        engine = TorchEngine([model], DecodeConfig(beam_size=beam, n_best=beam, max_extra_length=4))
        free = engine.search(sources, prefixes)
        found = engine.search(sources, prefixes, PhraseConstraints([[anywhere(A)]] * 4, kinds))
        for here, there in zip(found, free, strict=True):
            assert len(here) == len(there)
            assert all(h.score >= other.score - 1e-4 for h, other in zip(here, there, strict=True))


def test_lines_with_and_without_phrases_do_not_meet():
    """The free ones are those of a search without any, to the bit, and the others those of a search alone."""
    model, sources = (
        tiny_model(words=9),
        [ids[:-1] for ids in random_sources([40, 3, 7, 44, 5, 60], words=9)],
    )
    rows: list[list[Constraint]] = [
        [],
        [anywhere(A, B)],
        [],
        [anywhere(B), anywhere(B), anywhere(C)],
        [],
        [],
    ]
    kinds, empty = bytes(model.vocabulary_size), [[]] * len(sources)
    engine = TorchEngine(
        [model], DecodeConfig(beam_size=3, n_best=2, max_extra_length=5, batch_tokens=64)
    )
    free = [n for n, row in enumerate(rows) if not row]
    alone = engine.search([sources[n] for n in free], empty[: len(free)])
    found = engine.search(sources, empty, PhraseConstraints(rows, kinds))
    for n, expected in zip(free, alone, strict=True):
        assert [vars(h) for h in found[n]] == [vars(h) for h in expected]
    for n in (1, 3):
        [own] = engine.search([sources[n]], [[]], PhraseConstraints([rows[n]], kinds))
        assert_same(found[n], [(h.score, h.tokens) for h in own])


@pytest.mark.parametrize(
    ("changes", "kept"),
    [({"max_length": 3}, (0, 2)), ({"no_repeat_ngram_size": 1}, (1, 2)), ({"max_length": 1}, (2,))],
    ids=str,
)
def test_constraints_that_exclude_each_other_are_given_up_the_longest_first(changes, kept):
    row = [anywhere(A, B), anywhere(C, C) if "max_length" in changes else anywhere(C), anywhere(A)]
    engine = TorchEngine([tiny_model()], DecodeConfig(beam_size=3, max_extra_length=9, **changes))
    [[found]] = engine.search([[A, B]], [[]], PhraseConstraints([row], KINDS))
    assert has_all(found.tokens, [row[n] for n in kept])
    assert not has_all(found.tokens, row)


def test_a_step_waits_for_a_gpu_six_times_whatever_the_batch():
    """It reads the beam, the candidates, the new beam and a count, and copies two tables."""
    sources = random_sources([3, 6, 4, 5, 7, 2, 8])
    longest = max(map(len, sources))
    source_BS = torch.tensor([source + [PAD] * (longest - len(source)) for source in sources])
    constraints = PhraseConstraints(TABLE[: len(sources)], KINDS)
    config, counts = DecodeConfig(beam_size=3, max_extra_length=5), []
    with torch.inference_mode():
        search = ConstrainedSearch([tiny_model()], source_BS, config, [], constraints)
        search.reads_freely = False
        while len(search.sentences):
            with counted_waits() as waits:
                search.advance()
            counts.append(waits.count)
    assert len(counts) > 4
    assert max(counts) == 6
