"""Language codes and names, and the language of texts."""

import statistics
from itertools import pairwise

import pytest
import regex
from babel import Locale

from nmt.plugins.serve.detection import detect, rank
from nmt.plugins.serve.source_language import Unserved, choose
from nmt.text import language_name

LATIN = [
    "a",
    "Hi",
    "No",
    "ok",
    "OK!",
    "Go",
    "Ja",
    "Menu",
    "PDF",
    "Wi-Fi",
    "A4",
    "x²",
    "Café",
    "naïve",
    "\N{FULLWIDTH LATIN CAPITAL LETTER O}\N{FULLWIDTH LATIN CAPITAL LETTER K}",
]
GREEK = "Γειά σου"
HAN_WORD = regex.compile(r"\p{Script=Han}{2,}")
KANJI = ["東京都千代田区", "株式会社", "会社概要", "設定画面", "検索", "設定", "広島県", "図書館"]
OTHER_SCRIPTS = [
    "am",
    "ar",
    "bn",
    "el",
    "fa",
    "he",
    "hi",
    "hy",
    "ja",
    "ka",
    "ko",
    "ru",
    "sr-Cyrl",
    "th",
    "uk",
    "zh",
]
COUNTRIES = [
    "DE",
    "FR",
    "US",
    "CN",
    "JP",
    "BR",
    "IN",
    "RU",
    "GB",
    "IT",
    "EG",
    "TR",
    "GR",
    "UA",
    "ES",
    "SE",
    "NO",
    "FI",
]
LANGUAGES = [
    "bg",
    "cs",
    "da",
    "de",
    "el",
    "en",
    "es",
    "et",
    "fi",
    "fr",
    "he",
    "hr",
    "hu",
    "it",
    "ja",
    "ko",
    "lt",
    "lv",
    "nb",
    "nl",
    "pl",
    "pt",
    "ro",
    "ru",
    "sk",
    "sl",
    "sv",
    "th",
    "tr",
    "uk",
    "vi",
    "zh",
]


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("de", "German"),
        ("DE", "German"),
        ("jpn", "Japanese"),
        ("eng_Latn", "English"),
        ("zh", "Chinese"),
        ("zh_Hans", "Simplified Chinese"),
        ("zh_CN", "Simplified Chinese (China)"),
        ("zh-TW", "Traditional Chinese (Taiwan)"),
        ("sr-Latn", "Serbian (Latin)"),
        ("pt-BR", "Brazilian Portuguese"),
        ("de-LU", "German (Luxembourg)"),
        ("nb", "Norwegian Bokmål"),
        ("no", "Norwegian"),
        ("cmn", "Chinese"),
        ("xx", "xx"),
    ],
)
def test_languages_have_names(code, name):
    assert language_name(code) == name


@pytest.mark.parametrize("text", LATIN)
def test_latin_letters_are_in_no_language_of_another_script(text):
    codes = sorted(["en", "fr", *OTHER_SCRIPTS])
    ranked = detect(text, codes)
    assert {code for code, _ in ranked} == {"en", "fr"}
    assert sum(probability for _, probability in rank(text, codes)) == pytest.approx(1)
    if all(map(str.isascii, text)):
        assert ranked[0][1] < 0.5  # so short a text is uncertain


@pytest.mark.parametrize(
    ("text", "codes", "expected"),
    [
        ("Das ist ein kleines Haus, in dem wir wohnen.", "de en", "de"),
        ("Hello", "en de", "en"),  # py3langid: Breton
        ("Um ficheiro de texto", "en pt-BR", "pt-BR"),
        ("Dette er en liten setning på norsk", "da en nb", "nb"),
        ("Dette er en liten setning på norsk", "da en no", "no"),
        ("Eg veit ikkje kva dette er for noko", "nb nn", "nn"),
        ("Eg veit ikkje kva dette er for noko", "en nb", "nb"),
        ("設定ファイル", "eng jpn zho", "jpn"),
        ("设定文件", "eng jpn zho", "zho"),
        *((text, "en ja zh_CN", "ja") for text in KANJI),
        *((text, "en zh_TW zh_CN ja", "ja") for text in ("検索", "東京駅", "渋谷区")),
        *((text, "en ja zh_CN", "zh_CN") for text in ("编辑", "电脑", "文件类型", "北京市朝阳区")),
        *((text, "en ja zh_CN zh_TW", "zh_TW") for text in ("開啟檔案", "選擇裝置與檔案類型")),
        ("開啟檔案", "en ja zh_CN", "zh_CN"),  # only served in the other script
        ("設定", "en zh_CN", "zh_CN"),
        ("設定", "en zh_TW", "zh_TW"),
        ("设定文件", "zh_TW zh_CN", "zh_CN"),
        ("這是一個測試", "zh_CN zh_TW", "zh_TW"),
        ("這是一個測試", "zh-Hans zh-Hant", "zh-Hant"),
        ("這是一個測試", "zh-Hans", "zh-Hans"),
        ("iPhone 15 Pro Max 的价格", "en zh", "zh"),
        ("Pythonで書く", "en ja zh", "ja"),
        ("Установите Python и Docker Compose", "en ru sr", "ru"),
        ("The Greek letter π is about 3.14", "el en", "en"),
        ("Ово је реченица на српском језику", "sr sr-Latn", "sr"),
        ("Ovo je rečenica na srpskom jeziku", "sr sr-Latn", "sr-Latn"),
        ("Ovo je rečenica na srpskom jeziku", "en sr", "sr"),
        ("สวัสดีครับ", "eng_Latn tha", "tha"),
        ("ᏣᎳᎩ", "chr en", "chr"),  # not known to py3langid
        ("ཡིག་ཆ་ཁ་ཕྱེ།", "bo en", "bo"),  # py3langid: Dzongkha
        ("ཡིག་ཆ་ཁ་ཕྱེ།", "dz en", "dz"),
        ("Otvorite datoteku i izaberite uređaj.", "en sr@latin", "sr@latin"),
        ("Hello world, this is a test.", "deu_Latn eng_Latn", "eng_Latn"),
    ],
)
def test_texts_are_in_the_served_language(text, codes, expected):
    assert detect(text, codes.split())[0][0] == expected


@pytest.mark.parametrize("text", ["", "123 !?", "😀", "\u200d", " \n", GREEK])
def test_texts_in_no_served_language(text):
    assert detect(text, ["en", "de"]) == []


def test_confidence_says_how_many_texts_are_detected_correctly():
    """Oracle: CLDR's names of countries, two each, many of them hardly words of the language."""
    outcomes = list[tuple[float, bool]]()
    for language in LANGUAGES:
        names = Locale(language).territories
        for first, second in pairwise(COUNTRIES):
            [(code, probability), *_] = rank(f"{names[first]}, {names[second]}", LANGUAGES)
            outcomes.append((probability, code == language))
    right = statistics.mean(is_right for _, is_right in outcomes)
    confidence = statistics.mean(probability for probability, _ in outcomes)
    assert right == pytest.approx(confidence, abs=0.1)
    sure = [is_right for probability, is_right in outcomes if probability > 0.9]
    assert statistics.mean(sure) > 0.95
    assert len(sure) > len(outcomes) / 3


@pytest.mark.parametrize(
    ("text", "sources", "target", "expected"),
    [
        ("The house is at the end of the street.", "en", "de", "en"),
        ("Das Haus steht am Ende der Straße.", "en", "de", "de"),
        ("Open", "en", "de", "en"),
        ("...", "en", "de", "en"),
        ("Bom dia", "en", "de", "en"),  # Portuguese, but too short to be sure
        ("π", "en", "de", "en"),
        ("La maison est petite et se trouve à la fin de la rue.", "en", "de", None),
        ("La maison est petite et se trouve à la fin de la rue.", "en fr", "de", "fr"),
        ("La maison est petite et se trouve à la fin de la rue.", "fr-CA", "de", "fr-CA"),
        (GREEK, "en", "de", None),
        ("ފައިލް ހުޅުވާ", "en", "de", None),  # in a script that py3langid does not know
        ("ފައިލް ހުޅުވާ", "en dv", "de", "dv"),
        ("设定文件", "en", "de", None),
        *((text, "en", "ja", "ja") for text in KANJI),
        ("Guten", "ja", "en", None),  # in a script of no source
        ("Guten", "ja ru", "de", "de"),
        ("OK", "ja", "en", "en"),
        ("Файл", "ja", "en", None),
        ("Das Haus steht am Ende der Straße.", "", "de", "de"),
        ("Postavke su sačuvane i program je ponovo pokrenut.", "bs", "de", "bs"),
        ("Wobraz so njeda na serwer składować.", "hsb", "de", "hsb"),  # not known to py3langid
        ("The house is at the end of the street.", "", "de", None),
    ],
)
def test_texts_in_another_language_are_refused_if_certain(text, sources, target, expected):
    sources = sources.split()
    served = [*sources, target, "it"]
    if expected:
        assert choose(text, sources, target, served)[0] == expected
    else:
        with pytest.raises(Unserved):
            choose(text, sources, target, served)


@pytest.mark.parametrize(
    ("code", "locale", "least"),
    [
        ("ja", "ja", 0.85),
        ("zh_CN", "zh_Hans", 0.85),
        ("zh_TW", "zh_Hant", 0.5),  # most traditional words are also Japanese
    ],
)
def test_japanese_and_chinese_words_without_kana(code, locale, least):
    """Oracle: CLDR's names of languages, countries and currencies."""
    data = Locale.parse(locale)
    names = [*data.languages.values(), *data.territories.values(), *data.currencies.values()]
    words = [name for name in names if HAN_WORD.fullmatch(name)][::5]
    assert len(words) > 5
    served = ["ja", "zh_CN", "zh_TW"]
    right = statistics.mean(detect(word, served)[0][0] == code for word in words)
    assert right >= least
