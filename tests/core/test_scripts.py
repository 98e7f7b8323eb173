"""Words, borders of words, blanks and directions in many scripts."""

import re
import unicodedata

import pytest

from nmt.text import (
    LATIN,
    MARKS,
    REPETITION,
    SPELLING,
    blank_between,
    direction,
    direction_of_text,
    foreign_han,
    is_word_border,
    joined,
    lacking_han,
    script,
    scripts_of_language,
    word_spans,
)


def test_characters_of_words_are_those_of_unicode() -> None:
    """Symbols and variation selectors are marks, but not of words."""
    not_of_words = [*range(0x20D0, 0x2100), *range(0xFE00, 0xFE10)]
    of_words = re.compile(rf"[\w{MARKS}]")
    for code in range(0x10000):
        character = chr(code)
        kind = unicodedata.category(character)[0]
        if kind in "LM" and code not in not_of_words:
            assert of_words.match(character), hex(code)
        if kind in "PSZ" and character != "_":
            assert not of_words.match(character), hex(code)


def test_latin_letters_are_those_of_unicode() -> None:
    latin = re.compile(f"[{LATIN}]")
    # For phonetics, and Claudian letters.
    rare = [0x2184, 0x2C2F, 0x2C5F, 0xAB66, 0xAB67, 0x2C2E, 0x2C5E, 0xAB68]
    for code in range(0x10000):
        character = chr(code)
        category = unicodedata.category(character)
        is_latin = unicodedata.name(character, "").startswith("LATIN")
        is_wide = code >= 0xFF00
        if category in ("Lu", "Ll") and is_latin and not is_wide and code not in rare:
            assert latin.match(character), hex(code)
        if category[0] == "L" and latin.match(character):
            assert script(character) in ("LATIN", "FEMININE", "MASCULINE", "MICRO", ""), hex(code)


def test_scripts_of_letters() -> None:
    for code in range(0x391, 0x3C9):
        if chr(code).isalpha():
            assert script(chr(code)) == "GREEK"
    for code in range(0x400, 0x482):
        assert script(chr(code)) == "CYRILLIC"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Open the new file.", ["Open", "the", "new", "file."]),
        ("Я использую Debian.", ["Я", "использую", "Debian."]),
        ("파일을 엽니다.", ["파일을", "엽니다."]),
        ("उसका नाम", ["उसका", "नाम"]),
        ("設定を開く。", ["設", "定", "を", "開", "く。"]),
        ("Debian 12の設定", ["Debian", "12", "の", "設", "定"]),
        ("「はい」", ["「", "は", "い」"]),
        ("น้ำ ดื่ม", ["น้ำ", "ดื่", "ม"]),
        ("か\u3099", ["か\u3099"]),  # a combining voiced sound mark
        ("ខ្មែរ។", ["ខ្មែ", "រ។"]),
        ("သတ္တဝါ", ["သ", "တ္တ", "ဝါ"]),
        ("", []),
    ],
)
def test_words_of_each_script(text: str, words: list[str]) -> None:
    assert [text[begin:end] for begin, end in word_spans(text)] == words


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("It is 5 km.", 7),
        ("सेटिंग", 6),
        ("น้ำ", 3),
        ("na\u0308ive", 5),
        ("كِتَاب", 4),
        ("בְּרֵאשִׁית", 6),
        ("설정 1", 3),
    ],
)
def test_the_length_of_a_text_includes_vowel_signs_but_no_optional_marks(
    text: str, length: int
) -> None:
    assert len(SPELLING.findall(text)) == length


@pytest.mark.parametrize(
    "text", ["設定 を\u3000開く", "ภาษาไทย ง่าย", "a b\tc", "한국어 中文 mixed を"]
)
def test_words_cover_all_characters_but_blanks(text: str) -> None:
    covered = list[int]()
    for begin, end in word_spans(text):
        covered += range(begin, end)
    assert covered == [index for index, sign in enumerate(text) if not sign.isspace()]


@pytest.mark.parametrize(
    ("before", "after", "is_border"),
    [
        ("open", "ed", False),
        ("open", " ed", True),
        ("na", "i\u0308ve", False),
        ("Linux", "를", True),
        ("3", "개", True),
        ("ก", "า", False),
        ("ກ", "ະ", False),
        ("เด็ก", "ๆ", True),
        ("파일", "을", False),
        ("プリンタ", "ー", False),
        ("プリンタ", "を", True),
        ("設定", "する", True),
        ("दिन", "ांक", False),
        ("ملف", "\u0651", False),
        ("น้", "ำ", False),
        ("ไทย", "และ", True),
        ("و", "Linux", True),
        ("MAX", "_SIZE", False),
        ("ខ្", "មែរ", False),
        ("តួ", "ក", True),
    ],
)
def test_borders_of_words(before: str, after: str, is_border: bool) -> None:
    assert is_word_border(before + after, len(before)) == is_border


@pytest.mark.parametrize(
    ("texts", "whole"),
    [
        (["新しい。", "古い。"], "新しい。古い。"),
        (["文件？", "（好）"], "文件？（好）"),
        (["使う。", "Debian です。"], "使う。Debian です。"),
        (["他来了。”", "2024年他走了。"], "他来了。”2024年他走了。"),
        (["使うDebian", "です。"], "使うDebian です。"),
        (["ไทย", "ไทย"], "ไทย ไทย"),
        (["엽니다.", "닫습니다."], "엽니다. 닫습니다."),
        (["Open.", "", "Close."], "Open. Close."),
        (["他说“好。”", "然后走了。"], "他说“好。”然后走了。"),
        (["等等……", "好。"], "等等……好。"),
        (["使う(注)", "(注)見る"], "使う(注)(注)見る"),
        (["使うか?", "見る!", "使う."], "使うか? 見る! 使う."),
        (["使う(Debian)", "(注)"], "使う(Debian) (注)"),
        (["“Yes.”", "“No.”"], "“Yes.” “No.”"),
        (["네.”", "“네"], "네.” “네"),
        (["(", ")"], "( )"),
    ],
)
def test_blanks_between_sentences(texts: list[str], whole: str) -> None:
    assert joined(texts) == whole


def test_blanks_are_left_out_only_between_characters_without_blanks() -> None:
    assert blank_between("か", "か") == ""
    assert blank_between("か", "b") == blank_between("b", "か") == " "


@pytest.mark.parametrize("code", ["ar", "fa", "he", "ur", "dv", "ckb", "pa_Arab", "az-Arab", "yi"])
def test_languages_written_from_right_to_left(code: str) -> None:
    assert direction(code) == "rtl"


@pytest.mark.parametrize("code", ["de", "ja", "pa", "ku", "az", "zz", "sr_Latn"])
def test_languages_written_from_left_to_right(code: str) -> None:
    assert direction(code) == "ltr"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12. مرحبا", "rtl"),
        ("Linux مرحبا", "ltr"),
        ("שלום", "rtl"),
        ("12!", "ltr"),
        ("", "ltr"),
    ],
)
def test_direction_of_a_text_is_its_first_letters(text: str, expected: str) -> None:
    assert direction_of_text(text) == expected


@pytest.mark.parametrize(
    ("code", "scripts"),
    [
        ("uz_Cyrl", {"CYRILLIC"}),
        ("uz", {"LATIN"}),
        ("pa_Arab", {"ARABIC"}),
        ("sr-Latn", {"LATIN"}),
        ("sr", {"LATIN", "CYRILLIC"}),
        ("zh_CN", {"CJK", "BOPOMOFO"}),
        ("eng_Latn", {"LATIN"}),
        ("tha", {"THAI"}),
        ("hin_Deva", {"DEVANAGARI"}),
        ("ckb", {"ARABIC"}),
    ],
)
def test_scripts_of_codes_with_a_script(code: str, scripts: set[str]) -> None:
    assert scripts_of_language(code) == scripts


@pytest.mark.parametrize(
    ("text", "systems"),
    [
        ("検索", {"Jpan"}),
        ("東区", {"Jpan"}),
        ("设定", {"Hans"}),
        ("設定", {"Jpan", "Hant"}),
        ("開啟", {"Hant"}),
        ("文字 abc あ", {"Jpan", "Hans", "Hant"}),
    ],
)
def test_forms_of_han_characters(text: str, systems: set[str]) -> None:
    lacking = lacking_han(text)
    assert {system for system, count in lacking.items() if not count} == systems


@pytest.mark.parametrize(
    ("text", "writing", "count"),
    [
        ("打开这个文件", "Hant", 3),
        ("打開這個檔案", "Hant", 0),
        ("打開這個檔案", "Hans", 4),
        ("打开这个文件", "Hans", 0),
        ("打开这个文件", "Jpan", 2),
        ("この文書を開く", "Jpan", 0),
    ],
)
def test_characters_of_another_writing_of_han(text: str, writing: str, count: int) -> None:
    assert foreign_han(text, writing) == count


def test_signs_of_repetition_have_these_names_in_unicode() -> None:
    signs = re.findall(REPETITION, "".join(map(chr, range(0x3400))))
    names = {unicodedata.name(sign) for sign in signs}
    assert names == {"THAI CHARACTER MAIYAMOK", "LAO KO LA", "KHMER SIGN LEK TOO"}
