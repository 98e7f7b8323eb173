"""Spellings that count as the same in comparisons."""

import unicodedata

import pytest

from nmt.text import comparable


@pytest.mark.parametrize(
    ("text", "other", "same"),
    [
        ("ﾃﾞｨｽｸ", "ディスク", True),
        ("ＰＤＦ", "PDF", True),
        ("น้ำ", "นํ้า", True),
        ("น้ำ", "น้ํา", True),
        ("น้ำ", "นำ้", True),
        ("ກຳ", "ກໍາ", True),
        ("फ़ाइल", "फाइल", True),
        ("ऩ", "न", True),
        ("מִלָּה", "מלה", True),
        ('צה"ל', "צה״ל", True),
        ("ל׳", "ל'", True),
        ("комп’ютер", "компʼютер", True),
        ("น้า", "น้ำ", False),
        ("ハ", "バ", False),
        ("ड", "ढ", False),
        ("й", "и", False),
    ],
)
def test_spellings(text: str, other: str, same: bool) -> None:
    assert (comparable(text) == comparable(other)) == same
    for form in ("NFC", "NFD"):
        assert comparable(unicodedata.normalize(form, text)) == comparable(text)
    assert comparable(comparable(text)) == comparable(text)
