"""Which lines are alike, and how many words they have."""

import pytest

from nmt.text import letters, words


@pytest.mark.parametrize(
    ("text", "count"),
    [
        *(
            ("Über das Wetter.", 3),
            ("오늘은 날씨가 좋습니다.", 3),
            ("今天天气很好。", 3),
            ("用iPhone打电话", 1 + 4 / 2),
        ),
        *(("東京タワー", 2 / 2 + 3 / 4), ("สวัสดีครับ", 10 / 5), ("ខ្ញុំស្រលាញ់", 12 / 5)),
    ],
)
def test_a_word_is_what_stands_between_blanks_or_some_characters_where_there_are_none(text, count):
    assert words(text) == pytest.approx(count)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        *(("Turn on 3 lights!", "turn on 44 lights", True), ("To-do", "to do.", True), ("Straße", "STRASSE", True)),
        *(("日本 1", "日本。", True), ("door", "doors", False), ("schon", "schön", False)),
        *(("कल", "कुल", False), ("عَلِمَ", "عُلِمَ", False)),  # yesterday, total; he knew, it was known
        *(("12", "13", False), ("5 %", "5 €", False), ("1.", "Nr. 1", False), ("!", "?", False)),
    ],
)
def test_lines_are_alike_that_differ_in_digits_case_blanks_or_punctuation_beside_letters(one, other, alike):
    assert letters(one)
    assert (letters(one) == letters(other)) == alike
