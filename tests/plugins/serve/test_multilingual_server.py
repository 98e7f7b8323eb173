"""A server of a model between 202 languages, and of a model of two that comes first."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import nmt
from nmt.commands import compose
from nmt.plugins.serve.models import ServedModel
from nmt.plugins.serve.queues import Search
from nmt.plugins.serve.routes import Routes
from nmt.translation import Direction
from tests.plugins.serve import browsers
from tests.plugins.serve.serving import PATIENCE, Server, by_command, serving

browser = browsers.browser
open_page = browsers.open_page
TEXT = "ཀ ক ອая"
"""Subwords of the small model, whose translations depend on the languages."""
SEARCH = ["engine=torch", "decode.beam_size=2", "decode.max_extra_length=3"]


@pytest.fixture(scope="module")
def server(word_model: Path, nllb_model: Path) -> Iterator[Server]:
    with serving(word_model, nllb_model, *SEARCH) as server:
        yield server


@pytest.fixture(scope="module")
def address(server: Server) -> str:
    return f"{server.url}/"


@pytest.fixture(scope="module")
def model(nllb_model: Path) -> nmt.Model:
    return nmt.load(nllb_model, engine="torch", beam_size=2, max_extra_length=3)


def test_all_pairs_are_listed_in_few_bytes(server):
    answer = httpx.get(f"{server.url}/languages", timeout=PATIENCE)
    assert answer.headers["Content-Encoding"] == "gzip"
    assert int(answer.headers["Content-Length"]) < 20_000
    languages = answer.json()
    plain = httpx.get(
        f"{server.url}/languages", headers={"Accept-Encoding": "identity"}, timeout=PATIENCE
    )
    assert "Content-Encoding" not in plain.headers
    assert plain.json() == languages
    codes = [language["code"] for language in languages]
    # Those of the first model come first, and name the languages of the second one.
    assert codes[:2] == ["en", "de"]
    assert len(set(codes)) == 202
    assert not {"eng_Latn", "deu_Latn"} & {*codes}
    for language in languages:
        assert {*language["targets"]} == {*codes} - {language["code"]}
    _, settings = server.ask("/frontend/settings")
    assert settings["language"]["source"]["code"] == "en"
    assert "source=auto recognizes 125 of 202 languages" in "".join(server.log)


@pytest.mark.parametrize(
    ("source", "target", "codes"),
    [
        ("en", "ru", ("eng_Latn", "rus_Cyrl")),
        ("deu", "zh-TW", ("deu_Latn", "zho_Hant")),
        ("fr", "zh", ("fra_Latn", "zho_Hans")),
        ("pt-BR", "Japanese", ("por_Latn", "jpn_Jpan")),
        ("rus_Cyrl", "eng_Latn", ("rus_Cyrl", "eng_Latn")),
    ],
)
def test_codes_of_clients_name_the_languages_of_the_model(server, model, source, target, codes):
    expected = model.translate(TEXT, source=codes[0], target=codes[1])
    assert server.translated(TEXT, source=source, target=target) == expected


def test_pairs_differ(model):
    pairs = [("en", "ru"), ("en", "ja"), ("fr", "de"), ("fr", "ru")]
    texts = {model.translate(TEXT, source=source, target=target) for source, target in pairs}
    assert len(texts) > 2


def test_the_first_model_translates_its_pair(server, word_model):
    [expected] = by_command(word_model, ["va so tu."])
    for target in ("de", "deu_Latn"):
        assert server.translated("va so tu.", target=target) == expected


def test_a_text_between_equal_languages_stays(server):
    assert server.translated(TEXT, source="fr", target="fra_Latn") == TEXT


def test_the_language_of_each_text_is_detected(server, model):
    texts = ["Откройте файл и выберите устройство.", "Ouvrez le fichier et choisissez l’appareil."]
    _, answer = server.translate(texts, source="auto", target="ja")
    detected = [one["language"] for one in answer["detectedLanguage"]]
    assert detected == ["rus_Cyrl", "fra_Latn"]
    expected = [
        model.translate(text, source=code, target="ja")
        for text, code in zip(texts, detected, strict=True)
    ]
    assert answer["translatedText"] == expected


def test_unknown_languages_are_refused_in_one_line(server):
    status, answer = server.translate(TEXT, source="en", target="tlh")
    assert status == 400
    assert "202, listed by /languages" in answer["error"]
    assert "\n" not in answer["error"]


def test_alternatives_are_those_of_the_search(server, model):
    _, answer = server.translate(TEXT, source="fr", target="ru", alternatives=2)
    rows = nmt.load(model.translator.options.run, engine="torch", max_extra_length=3)
    expected = rows.explain(TEXT, source="fr", target="ru", n_best=3, beam_size=3)
    assert [answer["translatedText"], *answer["alternatives"]] == [row.text for row in expected]


def test_alternatives_at_a_word_are_in_the_target_language(server, model):
    fields = {"source": "fr", "target": "ru"}
    text = server.translated(TEXT, **fields)
    _, answer = server.translate(TEXT, **fields, prefix=text[:1], rest=text[1:], alternatives=3)
    others = [answer["translatedText"], *answer["alternatives"]]
    assert len({*others}) > 1
    scores = model.explain(TEXT, **fields)
    assert scores[0].text == text
    for other in others:
        assert other[:1] == text[:1]
        # The search finds the same text when it is told its beginning.
        options = {"source": "fr", "target": "ru", "target_prefix": other[:3]}
        loaded = nmt.load(model.translator.options.run, engine="torch", **options)
        assert loaded.translate(TEXT, max_extra_length=3, beam_size=2)[:3] == other[:3]


def test_flags_depend_on_the_languages(server):
    def flags(target: str) -> list[str]:
        _, answer = server.translate(TEXT, source="fr", target=target, details=True)
        return answer["details"][0]["flags"]

    # The translations are in other scripts than these.
    assert "wrong_script" in flags("ru")
    assert "wrong_script" in flags("es")


@pytest.mark.slow
def test_documents_are_translated_into_the_language(server, model):
    content = f'<html lang="fr"><p>{TEXT}</p></html>'.encode()
    answer = httpx.post(
        f"{server.url}/translate_file",
        data={"source": "fr", "target": "fa"},
        files={"file": ("page.html", content)},
        timeout=PATIENCE,
    )
    url = answer.json()["translatedFileUrl"]
    assert url.endswith("page_pes_Arab.html")
    page = httpx.get(url, timeout=PATIENCE).text
    assert 'lang="fa"' in page
    assert 'dir="rtl"' in page
    assert model.translate(TEXT, source="fr", target="fa") in page


def test_glossaries_apply_in_all_directions(nllb_model, tmp_path):
    glossary = tmp_path / "terms.tsv"
    glossary.write_text("ক\tქკ\n")
    config = compose("serve", [str(nllb_model), f"glossary={glossary}", *SEARCH])
    served = ServedModel(str(nllb_model), config)
    served.load()
    for codes in (("fra_Latn", "rus_Cyrl"), ("eng_Latn", "jpn_Jpan")):
        search = Search(Direction(*codes))
        [[best]] = served.translate(search, [TEXT])
        assert "ქკ" in best.text
        translator = served.translator_for(search)
        assert (translator.limits.language, translator.limits.target) == codes
        assert translator.stages[-1].glossary.target == codes[1]


def test_order_of_models_decides_codes(nllb_model, word_model):
    config = compose("serve", [str(nllb_model), *SEARCH])
    models = [ServedModel(str(path), config) for path in (nllb_model, word_model)]
    routes = Routes(models)
    assert len(routes.languages) == 202
    assert routes.route_to("en", "de").direction == ("eng_Latn", "deu_Latn")
    assert Routes(models[::-1]).route_to("en", "de").direction == ("en", "de")


@pytest.mark.slow
def test_the_page_lists_the_languages_used_last_first(open_page):
    playwright = pytest.importorskip("playwright.sync_api")
    page = open_page()
    target = page.get_by_role("combobox", name="To")
    page.get_by_role("combobox", name="From").select_option("fra_Latn")
    target.select_option("rus_Cyrl")
    page.get_by_role("textbox", name="Text to translate").fill(TEXT)
    playwright.expect(page.locator("#translation")).not_to_have_text("")
    page.reload()
    playwright.expect(target).to_have_value("rus_Cyrl")
    groups = target.locator("optgroup")
    assert [group.get_attribute("label") for group in groups.all()] == [
        "Last used",
        "All languages",
    ]
    last = groups.nth(0).locator("option").all_inner_texts()
    assert last[0] == "Russian – Русский"
    names = groups.nth(1).locator("option").all_inner_texts()
    assert len(names) == 201
    assert names.index("German – Deutsch") < names.index("Greek – Ελληνικά")
