"""Translations of `nmt serve` as its clients see them, such as LibreTranslate's own client."""

import html
import os
import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from libretranslatepy import LibreTranslateAPI

from nmt.text import word_spans
from tests.plugins.serve.serving import (
    LINES,
    Server,
    as_pairs,
    by_command,
    serving,
    upload,
)

SENTENCES = {
    "it": "Ciao, mi chiamo Paolo e ho venti anni.",
    "fr": "Je suis une fille et je parle avec ma mère.",
    "en": "Hello world, this is an English sentence.",
    "de": "Guten Tag, das ist ein deutscher Satz über die Sprache.",
}
TEXT = {"q": "Hello", "source": "en", "target": "de", "format": "text"}
SETTINGS = {"charLimit", "frontendTimeout", "keyRequired", "suggestions", "language"}


def test_translations_equal_those_of_nmt_translate(server, expected):
    assert server.translated(LINES) == [*expected[:4], f"  {expected[4]}  "]
    assert server.translated("\n".join(LINES[:4]) + "\r\n") == "\n".join(expected[:4]) + "\r\n"
    assert "loaded with ctranslate2" in "".join(server.log)


def test_the_client_of_libretranslate_works_unchanged(server, expected):
    client = LibreTranslateAPI(server.url)
    assert client.translate(LINES[0], "en", "de") == expected[0]
    english, german = client.languages()
    assert english == {
        "code": "en",
        "name": "English",
        "targets": ["de"],
        "tag": "en",
        "direction": "ltr",
        "nativeName": "English",
        "shortNativeName": "English",
        "shortName": "English",
    }
    assert german == {
        "code": "de",
        "name": "German",
        "targets": [],
        "tag": "de",
        "direction": "ltr",
        "nativeName": "Deutsch",
        "shortNativeName": "Deutsch",
        "shortName": "German",
    }
    assert client.detect("This is a small house in the middle of the town.")[0]["language"] == "en"


def test_source_auto_detects_the_language(server):
    _, answer = server.translate(["ka lo", "mi"], source="auto")
    assert [language["language"] for language in answer["detectedLanguage"]] == ["en", "en"]
    _, answer = server.ask("/detect", {"q": ["Hello", "World"]})
    assert [language["language"] for language in answer] == ["en", "de"]


def test_text_in_the_target_language_is_returned(server):
    assert server.translated("Das Haus", source="de", target="de") == "Das Haus"
    text = "Das Haus steht am Ende der Straße, und niemand wohnt darin."
    status, answer = server.translate(text, source="auto", format="html")
    assert status == 200
    assert answer["translatedText"] == text
    assert answer["detectedLanguage"]["language"] == "de"


@pytest.fixture(scope="module")
def polyglot(word_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a model for several pairs; into de, only from en."""
    folder = tmp_path_factory.mktemp("pairs")
    pairs = ("en>de", "de>en", "it>en", "fr>en", "en>zh_TW", "en>pt-BR")
    with serving(*as_pairs(word_model, folder, *pairs)) as server:
        yield server


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{}, {"format": "html"}, {"alternatives": 2, "details": True}], ids=str
)
def test_each_text_of_a_list_has_its_own_language(polyglot, options):
    texts = [*SENTENCES.values(), f"{SENTENCES['de']}\n\n{SENTENCES['de']}", "123"]
    codes = ["it", "fr", "en", "de", "de"]
    _, answer = polyglot.translate(texts, source="auto", target="en", **options)
    assert [language["language"] for language in answer["detectedLanguage"]][:5] == codes
    assert answer["translatedText"][2] == SENTENCES["en"]  # is already in the target language
    for index, code in enumerate(codes):
        _, alone = polyglot.translate(texts[index], source=code, target="en", **options)
        assert {key: answer[key][index] for key in alone} == alone


def test_a_language_without_a_model_into_the_target_is_refused(polyglot):
    status, answer = polyglot.translate(SENTENCES["fr"], source="auto")
    assert status == 400
    problem = "French (fr) was detected, but no model translates it to German (de)"
    advice = "models into German (de) translate from: English (en)"
    assert answer["error"] == f"{problem}; {advice}"

    status, answer = polyglot.translate([SENTENCES["en"], SENTENCES["it"]], source="auto")
    assert status == 400
    assert answer["error"].startswith("text 2: Italian (it) was detected")

    status, answer = upload(polyglot, "a.txt", SENTENCES["fr"].encode(), source="auto")
    assert status == 400
    assert "French (fr) was detected" in answer["error"]


def test_a_short_text_is_in_a_language_with_a_model(polyglot):
    _, answer = polyglot.translate("ok", source="auto")
    assert answer["detectedLanguage"]["language"] == "en"


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("EN", "DE"),
        ("en-US", "de_AT"),
        ("eng", "deu_Latn"),
        ("en", "pt"),
        ("en", "zh-Hant"),
        ("en", "Deutsch"),
        ("en", "繁體中文"),
    ],
)
def test_languages_in_other_forms_find_their_model(polyglot, source, target):
    expected = polyglot.translated(LINES[0])
    assert polyglot.translated(LINES[0], source=source, target=target) == expected


def test_languages_of_files_and_auto_in_other_forms(polyglot):
    _, answer = polyglot.translate("ok", source="AUTO", target="De")
    assert answer["detectedLanguage"]["language"] == "en"
    assert upload(polyglot, "a.txt", b"ka", source="eng")[0] == 200


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("zh-CN", "Simplified Chinese (China) (zh-CN) is not supported"),
        ("zz", "zz is not supp"),
        ("jp", "jp is not supported; did you mean ja (Japanese)?"),
        ("at", "did you mean de (German)?"),
    ],
)
def test_unsupported_languages_are_refused(polyglot, target, problem):
    status, answer = polyglot.translate("ka", target=target)
    assert status == 400
    assert problem in answer["error"]
    assert answer["languages"] == ["en", "de", "it", "fr", "zh_TW", "pt-BR"]


def test_names_of_languages(polyglot):
    languages = {language["code"]: language for language in polyglot.ask("/languages")[1]}
    chinese = languages["zh_TW"]
    assert chinese["name"] == "Traditional Chinese (Taiwan)"
    assert chinese["nativeName"] == "繁體中文 (台灣)"
    assert chinese["tag"] == "zh-TW"
    portuguese = languages["pt-BR"]
    assert portuguese["name"] == "Brazilian Portuguese"
    assert portuguese["nativeName"] == "Português (Brasil)"


def test_html_is_translated_with_its_tags(server, expected):
    _, answer = server.translate([f"<p class='x'>{LINES[0]}</p>\n"], format="html")
    text = html.escape(expected[0], quote=False)
    assert answer["translatedText"] == [f"<p class='x'>{text}</p>\n"]


def test_html_has_no_alternatives(server):
    _, answer = server.translate("<p>ka <b>lo</b> mi", format="html", alternatives=1)
    assert re.fullmatch("<p>[^<]*<b>[^<]*</b>[^<]*", answer["translatedText"])
    assert answer["alternatives"] == []


def test_alternatives_are_different(server):
    _, answer = server.translate([LINES[0], ""], alternatives=3)
    assert len(answer["translatedText"]) == len(answer["alternatives"]) == 2
    texts = [answer["translatedText"][0], *answer["alternatives"][0]]
    assert len(set(texts)) == len(texts) > 1


@pytest.mark.parametrize(
    ("path", "fields", "keys"),
    [
        ("/languages", None, {"code", "name"}),
        ("/health", None, {"status"}),
        ("/spec", None, {"openapi", "paths"}),
        ("/frontend/settings", None, SETTINGS),
        ("/detect", {"q": "Hello"}, {"confidence", "language"}),
        ("/translate", TEXT, {"translatedText"}),
    ],
)
def test_answers_have_the_keys_that_libretranslate_tests(server, path, fields, keys):
    status, answer = server.ask(path, fields)
    assert status == 200
    assert keys <= {*(answer[0] if isinstance(answer, list) else answer)}
    other_method = {} if fields is None else None
    assert server.ask(path, other_method)[0] == 405


def test_lists_and_long_texts_are_accepted(server):
    assert len(server.translated(["Hello", "World"])) == 2
    assert server.ask("/detect", {"q": "k" * 2000})[0] == 200


@pytest.mark.parametrize(
    ("path", "changes", "status", "problem"),
    [
        ("/detect", {"q": None}, 400, "Invalid request: missing q parameter"),
        ("/detect", {"q": "k" * 2001}, 400, "request (2001) exceeds text limit (2000)"),
        ("/suggest", {}, 400, "Invalid request: missing s parameter"),
        ("/suggest", {"s": "k" * 2001}, 400, "exceeds text limit (2000)"),
        ("/translate", {"q": None}, 400, "Invalid request: missing q parameter"),
        ("/translate", {"target": "zz"}, 400, "zz is not supported"),
        (
            "/translate",
            {"source": "de", "target": "en"},
            400,
            "(en) is not available as a target language from German",
        ),
        ("/translate", {"q": "\ud800"}, 400, ""),
        ("/translate", {"q": [""] * 2000 + ["k"]}, 400, ""),
        (
            "/translate",
            {"alternatives": 11},
            400,
            "alternatives: Input should be less than or equal to 10",
        ),
        ("/translate", {"q": "k" * 100_000}, 413, "20,000 bytes"),
    ],
)
def test_invalid_requests_are_refused(server, path, changes, status, problem):
    code, answer = server.ask(path, TEXT | changes)
    assert code == status
    assert problem in answer["error"]
    assert "Traceback" not in "".join(server.log)


@pytest.mark.parametrize("body", [["q"], b"q=%ff&source=en", b'{"q": ' + b"[" * 9000])
def test_bodies_that_are_no_form_are_refused(server, body):
    status, answer = server.ask("/translate", body)
    assert status == 400
    assert "error" in answer
    assert "Traceback" not in "".join(server.log)


def test_details_align_words(server):
    line = " ".join(LINES[:2])
    _, answer = server.translate(f"{line}\n\nka", details=True)
    row, last_row = answer["details"]
    assert last_row["flags"] == []
    translation, *_ = answer["translatedText"].split("\n")
    words = translation.split()
    assert {target for _, target in row["alignment"]} == {*range(len(words))}
    assert [line[begin:end] for begin, end in row["source_words"]] == line.split()
    assert [translation[begin:end] for begin, end in row["target_words"]] == words


def test_alternatives_after_a_prefix_begin_with_other_words(server):
    """Also in the second sentence, counted from the end, after a word of the first is replaced."""
    line = " ".join(LINES[:2])
    words = server.translated(line).split()
    for count in (0, 2, -2, -3):
        before = words[:count]
        prefix = " ".join([*before, ""]) or " "
        _, answer = server.translate(line, alternatives=8, prefix=prefix)
        texts = [answer["translatedText"], *answer["alternatives"]]
        continued = []
        for other in map(str.split, texts):
            if other[: len(before)] == before and len(other) > len(before):
                continued.append(other)
        assert len({other[len(before)] for other in continued}) > 2
        if count == 2:
            words = continued[1]


def test_spans_of_words_count_from_the_beginning_of_a_line_as_sent(server):
    text = "  ka lo\n\n\t\u8a2d\u5b9a ka \U0001f600!\n"
    _, answer = server.translate(text, details=True)
    sent_lines = filter(str.strip, text.split("\n"))
    returned_lines = filter(str.strip, answer["translatedText"].split("\n"))
    rows = zip(answer["details"], sent_lines, returned_lines, strict=True)
    for row, sent, returned in rows:
        assert [tuple(span) for span in row["source_words"]] == word_spans(sent)
        assert [tuple(span) for span in row["target_words"]] == word_spans(returned)
        for source, target in row["alignment"]:
            assert source in range(len(row["source_words"]))
            assert target in range(len(row["target_words"]))


@pytest.fixture(scope="module")
def two_models(word_model: Path, tagged_model: Path) -> Iterator[Server]:
    with serving(word_model, tagged_model, "hosts=[translate.example.org]") as server:
        yield server


def test_several_models_serve_by_language(two_models, tagged_model):
    first = two_models.translated(LINES[0])
    [expected] = by_command(tagged_model, LINES[:1], "target=fra")
    assert two_models.translated(LINES[0], target="fra") == expected != first
    # Both models translate into German, which is listed once, so the first is used.
    assert two_models.translated(LINES[0], target="deu") == first
    _, languages = two_models.ask("/languages")
    assert [language["code"] for language in languages] == ["en", "de", "fra"]


def test_host_names_may_be_allowed(two_models):
    assert two_models.ask("/languages", Host="translate.example.org")[0] == 200
    assert two_models.ask("/languages", Host="other.example.org")[0] == 421


@pytest.mark.slow
def test_accepted_requests_are_answered_after_sigterm(word_model):
    with serving(word_model) as server, ThreadPoolExecutor(12) as pool:
        expected = server.translated(LINES[0])
        os.kill(server.process.pid, signal.SIGSTOP)
        answers = [pool.submit(server.translated, LINES[0]) for _ in range(4)]
        time.sleep(0.3)  # for all of them to arrive
        os.kill(server.process.pid, signal.SIGCONT)
        time.sleep(0.3)
        server.process.terminate()
        assert {answer.result() for answer in answers} == {expected}
        assert server.process.wait(30) in (0, -signal.SIGTERM)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_each_engine_serves_the_same_with_a_glossary(word_model, expected, tmp_path, engine):
    glossary = tmp_path / "terms.tsv"
    glossary.write_text("mivari\tut avolir\n")
    with serving(word_model, f"engine={engine}", f"glossary={glossary}") as server:
        assert server.translated(LINES[:3]) == expected[:3]
        settings = server.ask("/frontend/settings")[1]
        assert settings["glossary"] == {"name": "terms.tsv", "terms": 1}
        texts = alternatives_everywhere(server, LINES[3])
        assert len(set(texts)) > 5
        assert [text for text in texts if "ut avolir" not in text] == []
        check_concurrent_searches(server, expected)
        assert f"loaded with {engine}" in "".join(server.log)
        also_torch = "".join(server.log).count("loading engine=torch")
        assert also_torch == (0 if engine == "torch" else 1)


def alternatives_everywhere(server: Server, line: str) -> list[str]:
    """The translations of a line, and those with another word at each place of the best one."""
    _, answer = server.translate(line, alternatives=10)
    texts = [answer["translatedText"], *answer["alternatives"]]
    words = answer["translatedText"].split()
    for count in range(len(words)):
        prefix = " ".join(words[:count]) + " "
        rest = " ".join(words[count:])
        _, answer = server.translate(line, alternatives=10, prefix=prefix, rest=rest)
        texts += [answer["translatedText"], *answer["alternatives"]]
    return texts


def check_concurrent_searches(server: Server, expected: list[str]) -> None:
    """Concurrent searches of torch must not mix up the attention that they read."""
    formats = ("text", "html", "text")

    def translated(number: int) -> str:
        return str(server.translated(LINES[number % 2], format=formats[number % 3]))

    with ThreadPoolExecutor(8) as pool:
        for text in pool.map(server.translated, [LINES[3]] * 8):
            assert "ut avolir" in text
        answers = list(pool.map(translated, range(24)))
    assert answers == [expected[number % 2] for number in range(24)]
