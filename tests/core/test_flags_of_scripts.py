"""Flags in many scripts: correct translations have none, and each kind of mistake has its flag."""

from pathlib import Path

import pytest
from babel import Locale

from nmt.flags.finding import flags
from nmt.flags.numbers import is_number_lost
from nmt.flags.placeholders import is_placeholder_wrong
from nmt.flags.units import FORMS, UNITS, powers_of_unit
from nmt.text import scripts_of_language

ENGLISH = (
    "Open the settings of the printer, choose the paper tray with 250 sheets and close the window "
    "again before you start to print the whole document."
)
FILE = Path(__file__).with_name("translations.tsv")
TRANSLATIONS = dict(line.split("\t") for line in FILE.read_text(encoding="utf-8").splitlines())
"""Correct translations of ENGLISH, by language."""
GERMAN = (
    "Öffnen Sie die Einstellungen des Druckers, wählen Sie das Papierfach mit 250 Blatt und "
    "schließen Sie das Fenster wieder, bevor Sie das Dokument drucken."
)


def flags_in(code: str, translation: str, source: str = ENGLISH) -> list[str]:
    return flags(source, translation, scripts_of_language(code), language=code)


def with_number(translation: str, western: str, persian: str) -> str:
    """A translation with another number in place of 250."""
    return translation.replace("250", western).replace("۲۵۰", persian)


def broken_translations(translation: str) -> list[tuple[str, str]]:
    """A translation with different mistakes, and the flag of each."""
    half = len(translation) // 2
    repeated = translation[half : half + 12] * 4
    english = "and close the window again before you start."
    return [
        ("number", with_number(translation, "520", "۵۲۰")),
        ("number", with_number(translation, "", "")),
        ("length_ratio", translation[: len(translation) // 4]),
        ("copied_source", ENGLISH),
        ("repetition", f"{translation} {repeated}"),
        ("repetition", f"{translation} {translation}"),
        ("wrong_script", GERMAN),
        ("wrong_script", f"{translation[:half]} {english}"),
    ]


@pytest.mark.parametrize("code", TRANSLATIONS)
def test_correct_translations_have_no_flag_and_broken_translations_have_theirs(code):
    assert flags_in(code, TRANSLATIONS[code]) == []
    for flag, broken in broken_translations(TRANSLATIONS[code]):
        assert flag in flags_in(code, broken), broken


@pytest.mark.parametrize("code", TRANSLATIONS)
def test_translations_in_another_script_are_flagged(code):
    scripts = scripts_of_language(code)
    for other, translation in TRANSLATIONS.items():
        if scripts_of_language(other) != scripts:
            assert "wrong_script" in flags_in(code, translation), other


@pytest.mark.parametrize(
    ("code", "source", "translation"),
    [
        ("de", "The Moscow river is long.", "Der Fluss Москва ist lang."),
        ("de", "The country is large.", "Das Land ประเทศ ist groß."),
        ("de", "What is it?", "Was ist es? क्या"),
        ("ja", "Open the file.", "ファイルを開く and close the window now."),
        ("ja", "Save your changes.", "変更を save your changes"),
        ("ja", "Do not close this window.", "不要关闭这个窗口，请等待系统更新完成。"),
        ("ja", "Save the file.", "Bitte speichern."),
        ("ja", "Cancel", "Abbrechen"),
        ("ja", "Open this file.", "打开这个文件。"),
        ("ja", "Open this file.", "这个ファイルを开く。"),
        ("zh_TW", "Open this file.", "打开这个文件。"),
        ("zh_Hant", "Save the settings.", "请保存设置。"),
        ("zh_HK", "Save the settings.", "请保存设置。"),
        ("zh_CN", "Open this file.", "請開啟這個檔案。"),
        ("zh-Hans", "Save the settings.", "請儲存設定。"),
        ("ko", "Open this file now, please.", "현재 请打开这个文件"),
        ("ko", "Save the file.", "请保存文件"),
        ("zh_CN", "Save the file.", "ファイルを保存します。"),
        ("uz_Cyrl", "Save the file, please.", "Iltimos, faylni saqlang va oynani yoping."),
        ("pa_Arab", "The file is open.", "ਫਾਈਲ ਖੁੱਲ੍ਹੀ ਹੈ"),
    ],
)
def test_the_wrong_language_is_flagged(code, source, translation):
    assert "wrong_script" in flags_in(code, translation, source)


CORRECT = [
    ("ja", "The manual of the portable format", "ポータブル形式 (PDF) のマニュアル"),
    (
        "ja",
        "This binary format is small.",
        "このバイナリ形式 (binary alignment map、BAM) は小さい。",
    ),
    ("ja", "the operating system of your computer", "お使いのコンピューターのOS"),
    ("ja", "10,000 users opened it.", "1万人のユーザーが開いた。"),
    ("ja", "120 million yen", "1億2000万円"),
    ("ja", "The room has 250 seats.", "部屋には二百五十席ある。"),
    ("ja", "At 15:00 the office opens.", "事務所は午後3時に開きます。"),
    ("ja", "in 2024", "令和6年に"),
    ("ja", "I often do it.", "よくよく考えて、いろいろします。"),
    ("ja", "Yes, yes!", "はいはいはい！"),
    ("ja", "Select %s or <All>.", "%sまたは<全部>を選択します。"),
    ("ja", "See https://example.com/x for details.", "詳細はhttps://example.com/xをご覧ください。"),
    ("ja", "Write to me@example.com.", "me@example.comまでご連絡ください。"),
    ("ja", "Ministry of Economy, Trade and Industry", "経済産業省"),
    ("zh", "1 million people", "100万人"),
    ("zh", "Walk slowly, please.", "请慢慢走，好好看看。"),
    ("zh", "Open this file.", "請開啟這個檔案。"),
    ("zh", "Open this file.", "请打开这个文件。"),
    ("zh_TW", "Open this file.", "請開啟這個檔案。"),
    ("zh_CN", "Open this file.", "请打开这个文件。"),
    ("zh_HK", "What is he doing there?", "佢喺嗰度做乜嘢？"),
    ("ja", "Open the file.", "文書を開く。"),
    ("zh", "Office suite", "办公套件 LibreOffice"),
    ("zh_TW", "On 5 May 2024", "民國113年5月5日"),
    ("ko", "30,000 people came.", "3만 명이 왔다."),
    ("ko", "35,000 won", "3만 5천 원"),
    ("ko", "12,345 won", "1만 2345원"),
    ("ko", "30,000 cities and 50 towns", "도시 3만 50 마을"),
    ("ko", "Republic of Korea", "대한민국(大韓民國)"),
    ("ko", "two million people", "200만 명"),
    ("th", "Various items of every kind", "สิ่งต่างๆ ทุกๆ ชนิด"),
    ("th", "Boolean AND", "AND แบบบูลีน"),
    ("th", "Control the corner", "ควบคุมมุม"),
    ("th", "5 million baht in 2024", "5 ล้านบาทใน พ.ศ. 2567"),
    ("th", "12 files", "๑๒ ไฟล์"),
    ("hi", "of him, of her, of them", "उसका, उसकी, उसके"),
    ("hi", "100,000 rupees and 20,000,000 rupees", "१,००,००० रुपये और 2 करोड़ रुपये"),
    ("hi", "500,000 people", "5 लाख लोग"),
    ("ar", "1234 files, 2.5 %", "١٢٣٤ ملفًا، ٢٫٥ ٪"),
    ("ar", "The book is in the library.", "اَلْكِتَابُ فِي ٱلْمَكْتَبَةِ."),
    ("ar", "The mean. The mean value is 5.", "القيمة المتوسطة. القيمة المتوسطة هي 5."),
    ("fa", "3 billion people", "۳ میلیارد نفر"),
    ("ru", "1,500,000 people", "1,5 млн человек"),
    ("ru", "Print the map of the city", "Печать карты города (GIS, PDF)"),
    ("uk", "2 thousand", "2 тис."),
    ("el", "5,000,000 euros", "5 εκατ. ευρώ"),
    ("he", "In the beginning", "בְּרֵאשִׁית"),
    ("ka", "3,000,000 people", "3 მილიონი ადამიანი"),
    ("th", "in 2024", "ในปี 2567"),
    ("th", "on 5 March 2024", "5 มีนาคม 2567"),
    ("th", "on 5 March 2024", "๕ มี.ค. ๖๗"),
    ("th", "Rattanakosin, 1932", "พุทธศักราช 2475"),
    ("ja", "in 2024", "令和六年に"),
    ("ja", "in 2019", "令和元年に"),
    ("ja", "1989 and 1964", "平成元年と昭和三十九年"),
    ("zh_TW", "in 2024 and in 1912", "民國一一三年與民國元年"),
    ("ko", "in 2024", "단기 4357년"),
    ("fa", "in 2024", "در سال ۱۴۰۳"),
    ("fa", "until January 2025", "تا دی ۱۴۰۳"),
    ("hi", "in 2024", "विक्रम संवत 2081 में"),
    ("hi", "150,000 people", "डेढ़ लाख लोग"),
    ("hi", "3.5 million", "साढ़े तीन मिलियन"),
    ("hi", "250 people", "ढाई सौ लोग"),
    ("hi", "1.5 hours", "डेढ़ घंटा"),
    ("ru", "1.5 hours", "полтора часа"),
    ("ru", "The 1990s", "90-е годы"),
    ("he", "The 1980s", "שנות ה־80"),
    ("hi", "the 1990s", "90 का दशक"),
    ("de", "the 1990s", "die 90er"),
    ("ru", "100 people", "сто человек"),
    ("el", "100 people", "εκατό άτομα"),
    ("he", "100 people", "מאה איש"),
    ("de", "100 people", "hundert Leute"),
    ("de", "5 million euros", "fünf Millionen Euro"),
    ("fi", "5 million euros", "5 miljoonaa euroa"),
    ("ja", "5 million people", "500万人"),
    ("hi", "12 million people", "1.2 करोड़ लोग"),
    ("de", "5 cents", "5 Cent"),
    ("de", "50 million euros", "fünfzig Millionen Euro"),
    ("de", "20 thousand people", "zwanzigtausend Leute"),
    ("th", "2 million baht", "สองล้านบาท"),
    ("th", "2 thousand", "สองพัน"),
    ("ko", "2 million people", "이백만 명"),
    ("ar", "2 million", "مليونان"),
    ("he", "2 thousand", "אלפיים"),
    ("ru", "OCT2BIN", "ВОСЬМ.В.ДВ"),
    ("zh", "It needs 30 megabytes.", "它需要30兆。"),
    ("fa", "in 1990", "در سال ۱۳۶۹"),
    ("ja", "At 15:30", "午後3時半に"),
    ("de", "Choose <none> or <b>all</b>.", "Wählen Sie <keine> oder <b>alle</b>."),
    ("de", "1.5 billion people", "1,5 Milliarden Menschen"),
    ("sr", "Open the file.", "Отворите датотеку / Otvorite datoteku"),
]


@pytest.mark.parametrize(("code", "source", "translation"), CORRECT)
def test_correct_translations_are_not_flagged_in_either_direction(code, source, translation):
    assert flags_in(code, translation, source) == []
    assert flags(translation, source, scripts_of_language("en")) == []


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("A font by Gluk.", "Шрифт від Глюка {Gluk}.", []),
        ("A font with serifs.", "Шрифт із засічками {антиква}.", []),
        ("A font by {name}.", "Шрифт від {name} {name}.", ["placeholder"]),
        ("A font by Gluk.", "Шрифт від {author}.", ["placeholder"]),
        ("Click <b>here</b>.", "Натисніть <b><b>тут</b>.", ["placeholder"]),
    ],
)
def test_words_in_braces_may_explain_a_name(source, translation, expected):
    assert flags_in("uk", translation, source) == expected


@pytest.mark.parametrize(
    ("source", "translation", "is_wrong"),
    [
        ("%d of %d files", "%2$d 個中 %1$d 個のファイル", False),
        ("%d of %d files", "%3$d 個中 %1$d 個のファイル", True),
        ("%d of %d files", "%2$s 個中 %1$d 個のファイル", True),
        ("%1$s by %2$s", "%s (作者: %s)", False),
        ("{} of {}", "{1}件中{0}件", False),
        ("{} of {}", "{1}件中{2}件", True),
        ("%(a)s of %d", "%dの%(a)s", False),
        ("entry ID %d", "エントリID%d", False),
        ("PID %d", "PID%d", False),
        ("PID %d", "PID", True),
        ("%{key}-click: %{link}", "%{key}-클릭: %{link}", False),
        ("%d GB free", "空き%dGB", False),
        ("%lu bytes", "%luバイト", False),
        ("%lu bytes", "バイト", True),
        ("100%sure", "確実", False),
        ("Sure", "100%sure", False),
        ("Sure", "確実 %s", True),
    ],
)
def test_placeholders_may_be_numbered_or_adjoin_words(source, translation, is_wrong):
    assert is_placeholder_wrong(source, translation) == is_wrong
    assert is_placeholder_wrong(translation, source) == is_wrong


def misread(text: str, codec: str) -> str:
    """A text in UTF-8 that a program has read in another encoding."""
    if codec == "latin-1":
        return text.encode().decode("latin-1")
    letters = ""
    for byte in text.encode():
        # Programs keep the five bytes that Windows-1252 does not define.
        letters += bytes([byte]).decode("cp1252", errors="ignore") or chr(byte)
    return letters


OTHER_TEXTS = ["Το σπίτι είναι παλιό.", "یہ گھر ہے۔", "古い家。", "نعم", "דג"]


@pytest.mark.parametrize("codec", ["latin-1", "cp1252"])
@pytest.mark.parametrize("text", [*TRANSLATIONS.values(), *OTHER_TEXTS])
def test_text_read_in_another_encoding_is_broken(text, codec):
    broken = misread(text, codec)
    if broken != text:
        assert "broken_text" in flags(ENGLISH, broken)
        assert "broken_text" not in flags(broken, broken)
    assert "broken_text" not in flags(ENGLISH, text)


@pytest.mark.parametrize(
    "text", ["«\u00a0Voilà\u00a0»", "Où\u00a0?", "à\u00a0» è\u00a0»", "„MENÜ“ – Ä…", "naïve Öl"]
)
def test_signs_after_accented_letters_are_not_broken_text(text):
    assert "broken_text" not in flags("A text.", text)


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        ("%s, %s and %s", "%s %s %s"),
        ("From {a} to {b}, {c} and {d}", "{a} {b} {c} {d}"),
        ("Bytes: %02x, %02x, %02x", "バイト: %02x %02x %02x"),
    ],
)
def test_placeholders_are_not_repetitions(source, translation):
    assert flags(source, translation) == []


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        ("10,000 users", "1億人"),
        ("120 million yen", "1200万円"),
        ("250 seats", "二百五席"),
        ("30,000 people", "30만 명"),
        ("1.5 million", "15 млн"),
        ("500,000 people", "5 करोड़ लोग"),
        ("in 2024", "令和5年"),
        ("He has 2 million euros.", "Er hat 9 Millionen Euro."),
        ("12 million", "17 Millionen"),
        ("3 million", "8 млн"),
        ("5 million", "٦ ملايين"),
        ("5 lakh", "9 लाख"),
        ("5 million", "5 тыс."),
        ("2.5 million", "2.5 مليار"),
        ("5 million euros", "viele Euro"),
        ("5 million people", "5万人"),
        ("5 billion people", "50万人"),
        ("in 2024", "令和五年"),
        ("in 2024", "平成元年"),
        ("in 2024", "民國一一四年"),
        ("in 2024", "ในปี 2566"),
        ("in 2024", "در سال ۱۴۰۱"),
        ("in 2024", "عام 1403"),
        ("in 2024", "2567"),
        ("150,000 people", "लाख लोग"),
        ("155,000 people", "डेढ़ लाख लोग"),
        ("5,000 files", "5 ล้านไฟล์"),
    ],
)
def test_wrong_counts_are_lost_numbers(source, translation):
    assert is_number_lost(source, translation)


LANGUAGES = "ar de el en fa fr he hi ja ka ko ru th uk zh".split()  # noqa: SIM905


def compact_formats(code: str) -> list[tuple[int, str]]:
    """Unicode's powers of ten in words, such as 1000 and `0 тис.` in Ukrainian."""
    formats = Locale.parse(code).compact_decimal_formats
    rows = []
    for plurals in formats.get("long", formats["short"]).values():
        for power, pattern in plurals.items():
            rows.append((int(power), pattern.pattern.replace("'", "")))
    return rows


@pytest.mark.parametrize("code", LANGUAGES)
def test_words_for_powers_of_ten_agree_with_unicode(code):
    checked = 0
    for power, pattern in compact_formats(code):
        zeros = pattern.count("0")
        has_word = any(sign.isalpha() for sign in pattern)
        if not zeros or not has_word:
            continue
        count = "123"[:zeros]
        number = int(count) * power // 10 ** (zeros - 1)
        translation = pattern.replace("0" * zeros, count)
        assert not is_number_lost(f"{number} x", translation), pattern
        checked += 1
    assert checked >= 8


def test_every_word_for_a_power_of_ten_is_found():
    for power, words in UNITS.items():
        for word in words.split():
            assert power in powers_of_unit(word.replace("_", " ").removesuffix("*"))
    lengths = [len(form) for form in FORMS]
    assert lengths == sorted(lengths, reverse=True)
