"""Prefixes and particles that languages join to words."""

import pytest

from nmt.text import (
    is_part_of_compound,
    may_begin,
    may_end,
    without_particles,
    without_prefixes,
    without_vowel_points,
)


def occurs(term: str, text: str, plural: bool = False) -> bool:
    """Whether a term occurs in a text as a word, with what may be joined to it."""
    begin = text.find(term)
    end = begin + len(term)
    return begin >= 0 and may_begin(text, begin, end) and may_end(text, begin, end, plural=plural)


@pytest.mark.parametrize(
    ("term", "text"),
    [
        *(
            ("파일", f"새 {text} 엽니다")
            for text in ("파일을", "파일에서는", "파일으로부터", "파일의", "파일까지도")
        ),
        *(
            ("파일", text)
            for text in ("파일입니다.", "파일(들)", "파일과 폴더", "'파일'이", "파일이(가)")
        ),
        ("패키지", "패키지를"),
        ("패키지", "패키지와"),
        ("메일", "메일로 보냅니다"),
        ("Linux", "Linux를"),
        ("키", "키를"),
        *(
            ("ملف", text)
            for text in (
                "ملف",
                "الملف",
                "وملف",
                "والملف",
                "بملف",
                "بالملف",
                "للملف",
                "فللملف",
                "ملفك",
            )
        ),
        ("الجدول", "والجدول"),
        *(("קובץ", text) for text in ("הקובץ", "ובקובץ", "שהקובץ", "כשהקובץ", "לקובץ", "מהקובץ")),
        ("Linux", "وLinux"),
        ("दिन", "दिन में"),
        ("データ", "データを"),
        ("数据", "大数据库"),
        ("ข้อมูล", "ฐานข้อมูลและ"),
    ],
)
def test_words_with_what_may_be_joined_to_them(term: str, text: str) -> None:
    assert occurs(term, text)


@pytest.mark.parametrize(
    ("term", "text"),
    [
        ("파일", "프로파일"),
        ("파일", "파일럿"),
        ("파일", "파일를"),  # the particle of a word that ends with a vowel
        ("패키지", "패키지을"),
        ("키", "키가방"),
        ("지", "지도"),
        ("ملف", "ملفات"),
        ("ملف", "تملف"),
        ("الجدول", "الالجدول"),
        ("لد", "ولد"),
        ("קובץ", "אקובץ"),
        ("दिन", "दिनांक"),
        ("プリンタ", "プリンター"),
        ("ファイル", "プロファイル"),
        ("open", "opened"),
        ("файл", "файлы"),
        ("فایل", "فایل\u200cها"),
    ],
)
def test_parts_of_other_words(term: str, text: str) -> None:
    assert not occurs(term, text)


@pytest.mark.parametrize(
    ("term", "text"),
    [("فایل", "فایل\u200cهای نو"), ("파일", "파일들을"), ("파일", "파일들")],
)
def test_plurals_that_are_appended(term: str, text: str) -> None:
    assert occurs(term, text, plural=True)


def test_stems() -> None:
    assert "ملف" in without_prefixes("والملف")
    assert "الجدول" in without_prefixes("للجدول")
    assert "파일" in without_particles("파일에서는")
    assert without_prefixes("open") == without_particles("open") == []


def test_vowel_points_are_optional() -> None:
    assert without_vowel_points("مُلَفّ") == "ملف"
    assert without_vowel_points("שָׁלוֹם") == "שלום"
    assert without_vowel_points("दिन") == "दिन"


@pytest.mark.parametrize("text", ["ل" * 3000, "가" * 3000, "a" + "\u0301" * 3000])
def test_long_words(text: str) -> None:
    assert not any(may_begin(text, at, len(text)) for at in range(1000, 2900, 100))


@pytest.mark.parametrize(
    ("term", "text", "is_used"),
    [
        ("ファイル", "データファイル", True),
        ("ファイル", "ファイルシステム", True),
        ("プリンタ", "プリンター", False),
        ("プリンタ", "ネットワークプリンタ", True),
        ("ツール", "コマンドラインツール", True),
        ("イル", "ファイル", False),
        ("파일", "실행파일", True),
        ("파일", "파일시스템", True),
        ("파일", "컴파일", False),  # to compile
        ("패키지", "메타패키지는", True),
        ("수", "수정", False),
        ("file", "filename", False),
    ],
)
def test_compounds_that_contain_a_term(term: str, text: str, is_used: bool) -> None:
    begin = text.find(term)
    assert is_part_of_compound(text, begin, begin + len(term)) == is_used
