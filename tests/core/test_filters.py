"""Filters: which pairs are left out of training, and under which name they are counted."""

import re

import pytest

from nmt.config import FilterConfig
from nmt.text import Pair, large_losses, letters, reason_to_drop, words


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


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("a", 1),
        ("a b c", 3),
        ("Über das Wetter.", 3),
        ("오늘은 날씨가 좋습니다.", 3),
        ("好", 1),
        ("今天天气很好。", 3),
        ("我们 住 在 北京", 3),
        ("用iPhone打电话", 1 + 4 / 2),
        ("iPhone 15 的 价格!", 2 + 3 / 2),
        ("ひらがなです", 6 / 4),
        ("東京タワー", 2 / 2 + 3 / 4),
        ("สวัสดีครับ", 10 / 5),
        ("ខ្ញុំស្រលាញ់", 12 / 5),
    ],
)
def test_a_word_is_what_stands_between_blanks_or_some_characters_where_there_are_none(text: str, count: float) -> None:
    assert words(text) == pytest.approx(count)


@pytest.mark.parametrize(
    ("dropped", "said"),
    [
        ({}, []),
        ({"length ratio": 33}, []),
        ({"length ratio": 34}, ["34 of 100 training pairs were dropped as 'length ratio', by data.filters.max_ratio"]),
        ({"empty side": 50, "duplicates": 40}, ["50 of 100", "40 of 100 .*, by data.filters.deduplicate"]),
    ],
)
def test_a_filter_that_takes_more_than_a_third_is_told_with_its_key(dropped: dict[str, int], said: list[str]) -> None:
    found = large_losses({"read": 100, "dropped": dropped})
    assert len(found) == len(said)
    assert all(re.search(words, line) for words, line in zip(said, found, strict=True))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("door", "doors"),
        ("schon", "schön"),
        ("a b", "b a"),
        ("कल", "कुल"),  # yesterday, total
        ("किताब", "कतब"),
        ("عَلِمَ", "عُلِمَ"),  # he knew, it was known
        ("12", "13"),
        ("5 %", "5 €"),
        ("1.", "Nr. 1"),
        ("😀", "😁"),
        ("!", "?"),
        ("a", "1"),
    ],
)
def test_lines_of_other_letters_do_not(one: str, other: str) -> None:
    assert letters(one) != letters(other)
