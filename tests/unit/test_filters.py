"""Filters: which pairs are left out of training, and under which name they are counted."""

import pytest

from nmt.config import FilterConfig
from nmt.text.files import Pair
from nmt.text.filters import letters, reason_to_drop


@pytest.mark.parametrize(
    ("pair", "rules", "reason"),
    [
        (("a", "b"), {}, None),
        (("", "b"), {}, "empty side"),
        (("a", ""), {}, "empty side"),
        (("", ""), {"drop_identical": True}, "empty side"),
        (("a b", "a b c"), {"min_words": 2}, None),
        (("a b c", "a"), {"min_words": 2}, "too short"),
        (("a", "a b c"), {"min_words": 2}, "too short"),
        (("a b c", "a b"), {"max_words": 3}, None),
        (("a b c d", "a b"), {"max_words": 3}, "too long (words)"),
        (("a b", "a b c d"), {"max_words": 3}, "too long (words)"),
        (("a " * 250 + "a", "b"), {}, "too long (words)"),
        (("a " * 250 + "a", "b"), {"max_words": None}, None),
        (("a", "b c d"), {"max_ratio": 3}, None),
        (("a", "b c d e"), {"max_ratio": 3}, "length ratio"),
        (("b c d e", "a"), {"max_ratio": 3}, "length ratio"),
        (("a b", "c d e"), {"max_ratio": 1.5}, None),
        (("a b", "c d e"), {"max_ratio": 1.4}, "length ratio"),
        (("a b", "a b"), {}, None),
        (("a b", "a b"), {"drop_identical": True}, "identical sides"),
        (("a b", "A b"), {"drop_identical": True}, None),
    ],
)
def test_a_pair_is_dropped_by_the_rule_it_breaks(pair: Pair, rules: dict[str, object], reason: str | None) -> None:
    assert reason_to_drop(pair, FilterConfig(**rules)) == reason  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Turn on 3 lights!", "turn on 44 lights"),
        ("To-do", "to do."),
        ("Straße", "STRASSE"),
        ("  a\tb ", "AB"),
        ("ÉTÉ", "été"),
        ("日本 1", "日本。"),
    ],
)
def test_lines_that_differ_in_digits_case_blanks_or_punctuation_share_their_letters(one: str, other: str) -> None:
    assert letters(one) == letters(other) != ""


@pytest.mark.parametrize(("one", "other"), [("door", "doors"), ("schon", "schön"), ("a b", "b a")])
def test_lines_of_other_letters_do_not(one: str, other: str) -> None:
    assert letters(one) != letters(other)
