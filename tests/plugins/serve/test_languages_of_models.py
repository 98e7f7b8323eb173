"""Messages and scripts of the server with the languages of NLLB-200."""

from types import SimpleNamespace

import pytest

from nmt.plugins.serve.detection import detect
from nmt.plugins.serve.facts import facts_of_languages
from nmt.plugins.serve.failures import Failed
from nmt.plugins.serve.routes import Routes
from nmt.plugins.serve.scripts import systems_of
from nmt.translation import Direction
from tests.helpers.language_lists import ALL_CODES, TAGS


@pytest.fixture(scope="module")
def routes() -> Routes:
    """A model that translates from English into all other languages."""
    directions = [Direction("eng_Latn", code) for code in TAGS if code != "eng_Latn"]
    return Routes([SimpleNamespace(directions=lambda: directions)])


def test_every_language_has_scripts():
    for code in ALL_CODES:
        assert all(systems_of(code)), code


def test_the_page_has_the_facts_of_every_language(routes):
    facts = facts_of_languages(routes)
    assert {fact["code"]: fact["tag"] for fact in facts} == TAGS
    for key in ("name", "shortName"):
        assert len({fact[key] for fact in facts}) == len(TAGS)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (
            "en",
            "sr-Latn",
            "Serbian (Latin) (sr-Latn) is not supported; supported languages: "
            "202, listed by /languages; the nearest are Serbian (srp_Cyrl), Bosnian (bos_Latn), "
            "Croatian (hrv_Latn)",
        ),
        ("en", "xx", "xx is not supported"),
        (
            "de",
            "fr",
            "French (fra_Latn) is not available as a target language from German (deu_Latn); "
            "models into French (fra_Latn) translate from: English (eng_Latn)",
        ),
    ],
)
def test_messages_name_the_near_languages_of_many(routes, source, target, message):
    with pytest.raises(Failed) as caught:
        routes.route_to(source, target)
    assert caught.value.detail == message


@pytest.mark.parametrize(
    ("target", "code"),
    [("zh-TW", "zho_Hant"), ("ar", "arb_Arab"), ("nb", "nob_Latn"), ("ko", "kor_Hang")],
)
def test_clients_select_languages_by_short_codes(routes, target, code):
    assert routes.route_to("en", target).target == code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Das ist ein kleines Haus, in dem wir wohnen.", "deu_Latn"),
        ("Dette er en liten setning på norsk", "nob_Latn"),
        ("Eg veit ikkje kva dette er for noko", "nno_Latn"),
        ("설정 파일을 여십시오", "kor_Hang"),
        ("設定ファイル", "jpn_Jpan"),
        ("设定文件", "zho_Hans"),
        ("這是一個測試", "zho_Hant"),
        ("呢個係廣東話嘅句子", "yue_Hant"),
        ("هذه جملة باللغة العربية", "arb_Arab"),
        ("این یک جمله به زبان فارسی است", "pes_Arab"),
        ("Ово је реченица на српском језику", "srp_Cyrl"),
        ("Ito ay isang pangungusap sa Tagalog", "tgl_Latn"),
        ("ᱥᱟᱱᱛᱟᱲᱤ ᱯᱟᱹᱨᱥᱤ", "sat_Beng"),
    ],
)
def test_the_language_of_a_text_is_detected_among_all(text, code):
    assert detect(text, list(TAGS))[0][0] == code
