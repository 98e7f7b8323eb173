"""Noise in pairs: what each kind changes and what it leaves alone, how often, and by which generator alone."""

import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from nmt.plugins.augment import noise
from nmt.plugins.augment.noise import KINDS, PLACES, TYPOS, noisy, sentence_generator, with_typos
from nmt.plugins.augment.plugin import NoiseConfig
from nmt.text import clean

PAIR = ("The 3 old men didn't see her in Rome.", "Die 3 alten Männer sahen sie nicht in Rom.")
some = settings(max_examples=100, deadline=None, derandomize=True, database=None)
fragments = st.sampled_from(
    [*"aAéßǆ\u0131.,?!¿¡;。、।؟…'\"(7", "ŉ", "ﬁ", "e\u0301", "\u0301", "क्ष", "日本", "한", "😀", " ", "don't"]
)
texts = st.one_of(st.text(max_size=20), st.lists(fragments, max_size=10).map("".join)).map(
    lambda text: clean(text.encode("utf-8", "ignore").decode())
)
numbers = st.integers(0, 2**32)


def generator(number: int = 0) -> np.random.Generator:
    return sentence_generator(1, 0, 0, number)


def always(kind: str, source: str, target: str, number: int = 0) -> tuple[str, str]:
    return noisy((source, target), NoiseConfig(**{kind: 1.0}), generator(number))


@some
@given(source=texts, target=texts, kinds=st.sets(st.sampled_from(list(KINDS)), min_size=1), number=numbers)
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
    happened = [noisy(PAIR, NoiseConfig(**{kind: share}), generator(n)) != PAIR for n in range(size)]
    places = sum(bool(PLACES[name].search(PAIR[0])) for name in TYPOS)
    rate = share * (1 - 0.9**places if kind == "typos" else 1)
    assert abs(np.mean(happened) - rate) < 5 * math.sqrt(share / size)


@pytest.mark.parametrize(
    ("kind", "pair", "expected"),
    [
        # OpusTrainer 0.5 gives the same by its UpperCase, TitleCase and RemoveEndPunctuation.
        ("upper", ("Ein Maß.", "a b"), ("EIN MASS.", "A B")),
        ("title", ("the iPhone of 2nd use", "das iPhone"), ("The IPhone Of 2nd Use", "Das IPhone")),
        ("title", ("to-do don't", "日本 語"), ("To-do Don't", "日本 語")),
        ("end_punctuation", ("Hello.", "你好。"), ("Hello", "你好")),
        ("end_punctuation", ("नमस्ते।", "Mr. Li."), ("नमस्ते", "Mr. Li")),
        ("end_punctuation", ("Who?", "من؟"), ("Who", "من")),
        ("end_punctuation", ("Who?", "Wer."), ("Who?", "Wer.")),
        ("end_punctuation", ("What?!", "Was?!"), ("What?!", "Was?!")),
        ("end_punctuation", ("Well...", "Nun."), ("Well...", "Nun.")),
        ("end_punctuation", ("What;", "Who?"), ("What", "Who")),
        # OpusTrainer does not:
        ("title", ("¿qué «es»?", "(what) 'is'"), ("¿Qué «Es»?", "(What) 'Is'")),
        ("end_punctuation", (".", "."), (".", ".")),
    ],
    ids=str,
)
def test_case_and_punctuation(kind, pair, expected):
    assert always(kind, *pair) == expected


@some
@given(source=st.text("abCD tt 07.,?!-'", max_size=20).map(clean), target=texts, number=numbers)
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
    monkeypatch.setattr(noise, "TYPOS", {name: TYPOS[name]})
    monkeypatch.setattr(noise, "TYPO_RATE", 1.0)
    assert {with_typos(line, generator(n)) for n in range(100)} == results


@some
@given(
    source=st.lists(st.sampled_from(["a", "b", "日本"]), min_size=1, max_size=9),
    target=st.lists(st.sampled_from(["c", "d"]), min_size=1, max_size=9),
    number=numbers,
)
def test_a_number_is_copied_to_the_same_share_of_both_sides(source, target, number):
    changed = [side.split() for side in always("numbers", " ".join(source), " ".join(target), number)]
    shares, copied = [], set()
    for before, after in zip((source, target), changed, strict=True):
        [place] = [n for n in range(len(after)) if after[:n] + after[n + 1 :] == before and after[n] not in before]
        copied.add(after[place])
        shares.append((place / len(after), (place + 1) / len(after)))
    assert re.fullmatch(r"[1-9][0-9]{0,5}", *copied)
    # Some share lies within both.
    assert max(low for low, _ in shares) < min(high for _, high in shares) + 1e-9


def test_a_generator_is_a_function_of_its_numbers_and_no_two_share_draws():
    keys = list(itertools.product((0, 1, 2**63 - 1), (0, 1, 10**9), (0, 1, 7), (0, 1, 500)))
    draws = {key: tuple(sentence_generator(*key).random(4)) for key in keys}
    assert {key: tuple(sentence_generator(*key).random(4)) for key in reversed(keys)} == draws
    assert len({draw for four in draws.values() for draw in four}) == 4 * len(keys)
