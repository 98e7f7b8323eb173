"""Which lines are alike, and how many words they have."""

import pytest

from nmt.config import FilterConfig
from nmt.preparation.filters import reason_to_drop
from nmt.text import letters, words


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Über das Wetter.", 3),
        ("오늘은 날씨가 좋습니다.", 3),
        ("今天天气很好。", 3),
        ("用iPhone打电话", 1 + 4 / 2),
        ("東京タワー", 2 / 2 + 3 / 4),
        ("สวัสดีครับ", 10 / 5),
        ("ខ្ញុំស្រលាញ់", 12 / 5),
    ],
)
def test_words_are_counted_by_blanks_or_estimated_from_characters(text, count):
    assert words(text) == pytest.approx(count)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("Turn on 3 lights!", "turn on 44 lights", True),
        ("To-do", "to do.", True),
        ("Straße", "STRASSE", True),
        ("日本 1", "日本。", True),
        ("door", "doors", False),
        ("schon", "schön", False),
        ("कल", "कुल", False),  # yesterday, total
        ("عَلِمَ", "عُلِمَ", False),  # he knew, it was known
        ("12", "13", False),
        ("5 %", "5 €", False),
        ("1.", "Nr. 1", False),
        ("!", "?", False),
    ],
)
def test_lines_with_the_same_letters_are_alike(one, other, alike):
    assert letters(one)
    assert (letters(one) == letters(other)) == alike


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("Default button", "ปุ่มที่เลือกโดยปริยายหากไม่ระบุ (Default button)", None),
        ("Breve", "เครื่องหมาย Breve เหนือตัวอักษร", None),
        ("Hangul", "朝鲜谚文（韩文字母）", None),
        (
            "Optional dependencies:",
            "オプションとして、次のパッケージをインストールするとよいかもしれません:",
            None,
        ),
        ("Default button", "a b c d e f g h i", "length ratio"),
        (
            "bitstream.",
            "* 各々の論理的ビットストリームを保存するための、手軽なテーブル構造。",
            "length ratio",
        ),
        ("formats.", "* ネットワークネームを検知できます。", "length ratio"),
        ("The number by which the dividend is divided.", "除数。", "length ratio"),
    ],
)
def test_short_pairs_may_exceed_an_estimated_ratio(source, target, reason):
    assert reason_to_drop((source, target), FilterConfig(max_ratio=4)) == reason
