"""Noise in pairs: what each kind changes and what it leaves alone, how often, and by which generator alone."""

import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from nmt.plugins.augment import typos
from nmt.plugins.augment.config import NoiseConfig
from nmt.plugins.augment.noise import EMOJI, KINDS, noisy, sentence_generator
from nmt.plugins.augment.typos import TYPOS, with_typos
from nmt.text import clean

PAIR = ("The 3 old men didn't see her in Rome.", "Die 3 alten Männer sahen sie nicht in Rom.")
some = settings(max_examples=200, deadline=None, derandomize=True, database=None)
fragments = st.sampled_from(
    [*"aAéßǆ\u0131.,?!¿¡;。、।؟…'\"(7", "ŉ", "ﬁ", "e\u0301", "\u0301", "क्ष", "日本", "한", "😀", " ", "don't"]
)
texts = st.one_of(st.text(max_size=20), st.lists(fragments, max_size=10).map("".join)).map(
    lambda text: clean(text.encode("utf-8", "ignore").decode())
)


def generator(number: int = 0) -> np.random.Generator:
    return sentence_generator(1, 0, 0, number)


def always(kind: str, source: str, target: str, number: int = 0) -> tuple[str, str]:
    return noisy((source, target), NoiseConfig(**{kind: 1.0}), generator(number))


@some
@given(
    source=texts, target=texts, kinds=st.sets(st.sampled_from(list(KINDS)), min_size=1), number=st.integers(0, 2**32)
)
def test_clean_lines_stay_clean_and_none_is_lost(source, target, kinds, number):
    assert noisy((source, target), NoiseConfig(), generator(number)) == (source, target)
    config = NoiseConfig(**dict.fromkeys(kinds, 1.0))
    changed = noisy((source, target), config, generator(number))
    assert changed == noisy((source, target), config, generator(number))
    assert [clean(side) for side in changed] == list(changed)
    assert [bool(side) for side in changed] == [bool(source), bool(target)]
    if not source or not target:
        assert changed == (source, target)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_happens_as_often_as_asked_for(kind):
    size, share = 4000, 0.3
    config = NoiseConfig(**{kind: share})
    happened = [noisy(PAIR, config, generator(n)) != PAIR for n in range(size)]
    rate = share * (typo_rate(PAIR[0]) if kind == "typos" else 1)
    assert abs(np.mean(happened) - rate) < 5 * math.sqrt(share / size)


def typo_rate(line: str) -> float:
    """How often a line has typos, by the number of kinds that it has a place for."""
    possible = sum(bool(typos.PLACES[name].search(line)) for name in TYPOS)
    return 1 - 0.9**possible


TABLE = [
    ("upper", ("Ein Maß.", "a b"), ("EIN MASS.", "A B")),
    ("title", ("the iPhone of 2nd use", "das iPhone"), ("The IPhone Of 2nd Use", "Das IPhone")),
    ("title", ("to-do don't", "日本 語"), ("To-do Don't", "日本 語")),
    ("end_punctuation", ("Hello.", "Hallo."), ("Hello", "Hallo")),
    ("end_punctuation", ("Hello.", "你好。"), ("Hello", "你好")),
    ("end_punctuation", ("नमस्ते।", "Mr. Li."), ("नमस्ते", "Mr. Li")),
    ("end_punctuation", ("Who?", "من؟"), ("Who", "من")),
    ("end_punctuation", ("Who?", "Wer."), ("Who?", "Wer.")),
    ("end_punctuation", ("What?!", "Was?!"), ("What?!", "Was?!")),
    ("end_punctuation", ("Well...", "Nun."), ("Well...", "Nun.")),
    ("end_punctuation", ("What;", "Who?"), ("What", "Who")),
]
"""OpusTrainer 0.5 gives the same by its UpperCase, TitleCase and RemoveEndPunctuation."""
OTHER_THAN_OPUSTRAINER = [
    ("title", ("¿qué «es»?", "(what) 'is'"), ("¿Qué «Es»?", "(What) 'Is'")),
    ("end_punctuation", ("Hola, ¿qué tal?", "How are you?"), ("Hola, qué tal", "How are you")),
    ("end_punctuation", ("¿Qué? ¡No!", "What? No!"), ("¿Qué? No", "What? No")),
    ("end_punctuation", (".", "."), (".", ".")),
]


@pytest.mark.parametrize(("kind", "pair", "expected"), [*TABLE, *OTHER_THAN_OPUSTRAINER], ids=str)
def test_case_and_punctuation(kind, pair, expected):
    assert always(kind, *pair) == expected


@some
@given(source=st.text("abCD tt 07.,?!-'", max_size=20).map(clean), target=texts, number=st.integers(0, 2**32))
def test_typos_change_the_source_alone_and_no_digit_or_mark(source, target, number):
    changed, same = always("typos", source, target, number)
    assert same == target
    assert re.findall(r"[^a-zA-Z ]", changed) == re.findall(r"[^a-zA-Z ]", source)


@pytest.mark.parametrize(
    ("name", "line", "results"),
    [
        ("char_swap", "Hu\u0131 7", {"Uh\u0131 7", "H\u0131u 7"}),
        ("missing_char", "ab 7", {"a 7", "b 7"}),
        ("extra_char", "1Q", {"1WQ", "1AQ"}),
        ("nearby_char", "q-", {"w-", "a-"}),
        ("nearby_char", "Ю", {"Б", "Д", "Ж"}),
        ("nearby_char", "\u0131日7", {"\u0131日7"}),
        ("skipped_space", "a b c", {"ab c", "a bc"}),
        ("random_space", "abc 7d", {"a bc 7d", "ab c 7d"}),
        ("repeated_char", "日7é", {"日日7é", "日7éé"}),
        ("unichar", "aab 77 dd", {"ab 77 dd", "aab 77 d"}),
    ],
)
def test_a_typo_happens_at_every_place_that_has_it(name, line, results, monkeypatch):
    monkeypatch.setattr(typos, "TYPOS", {name: TYPOS[name]})
    monkeypatch.setattr(typos, "RATE", 1.0)
    assert {with_typos(line, generator(n)) for n in range(100)} == results


def test_typos_are_as_frequent_as_those_of_opustrainer():
    """OpusTrainer 0.5 with these eight kinds at 0.1, its default, on 20,000 English sentences of Tatoeba.

    It left 0.479 of them as they were, made them longer by 0.030 letters, and its mean edit distance was 0.79; for ours
    0.460, 0.050 and 0.82. Its blanks may be put before another blank or the line, where they vanish.
    """
    size, line = 5000, "Tom will be too late to meet them here"
    changed = [with_typos(line, generator(n)) for n in range(size)]
    assert abs(np.mean([text == line for text in changed]) - 0.9**8) < 5 * math.sqrt(0.25 / size)
    assert abs(np.mean([len(text) - len(line) for text in changed])) < 5 * math.sqrt(0.6 / size)


NUMBER = re.compile(r"[1-9][0-9]{0,5}")


@some
@given(
    source=st.lists(st.sampled_from(["a", "b", "日本"]), min_size=1, max_size=9),
    target=st.lists(st.sampled_from(["c", "d"]), min_size=1, max_size=9),
    kind=st.sampled_from(["numbers", "emoji"]),
    number=st.integers(0, 2**32),
)
def test_a_word_is_copied_to_the_same_share_of_both_sides(source, target, kind, number):
    changed = [side.split() for side in always(kind, " ".join(source), " ".join(target), number)]
    shares = []
    for before, after in zip((source, target), changed, strict=True):
        [place] = [n for n in range(len(after)) if after[:n] + after[n + 1 :] == before and after[n] not in before]
        assert NUMBER.fullmatch(after[place]) if kind == "numbers" else ord(after[place]) in EMOJI
        shares.append((place / len(after), (place + 1) / len(after)))
    # Some share lies within both.
    assert max(low for low, _ in shares) < min(high for _, high in shares) + 1e-9


def test_what_is_copied_has_no_typos():
    config = NoiseConfig(typos=1.0, numbers=1.0, upper=1.0, emoji=1.0)
    for n in range(200):
        source, target = noisy(("some words of it", "ein paar davon"), config, generator(n))
        copied = [sorted(re.findall(r"\d+|[^\w\s]", side)) for side in (source, target)]
        assert len(copied[0]) == 2
        assert copied[0] == copied[1]


def test_a_generator_is_a_function_of_its_numbers_and_no_two_share_draws():
    numbers = list(itertools.product((0, 1, 2**63 - 1), (0, 1, 10**9), (0, 1, 7), (0, 1, 500)))
    draws = {each: tuple(sentence_generator(*each).random(4)) for each in numbers}
    assert {each: tuple(sentence_generator(*each).random(4)) for each in reversed(numbers)} == draws
    assert len({draw for four in draws.values() for draw in four}) == 4 * len(numbers)
