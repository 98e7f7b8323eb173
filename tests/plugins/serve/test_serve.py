"""`nmt serve` as its clients see it: real processes, the real LibreTranslate client, and failures."""

import html
import json
import os
import re
import resource
import secrets
import shutil
import signal
import socket
import subprocess
import time
import unicodedata
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import httpx
import pytest
from libretranslatepy import LibreTranslateAPI

from nmt.commands import compose
from nmt.plugins.serve.fields import FileForm, TextForm, TranslateForm
from nmt.text import word_spans
from nmt.translation import load_translator
from tests.plugins.serve.serving import PATIENCE, Server, as_pairs, serving

LINES = ["va so tu pe mika.", "mika nu nu pe.", "", "756 mivari tu so rilova ri.", "  pelowe.  "]
PROMISE = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"


@pytest.fixture(scope="module")
def suggestions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of suggestions of `server`."""
    return tmp_path_factory.mktemp("suggestions") / "a.tsv"


@pytest.fixture(scope="module")
def server(word_model: Path, suggestions: Path) -> Iterator[Server]:
    limits = ("limits.characters=2000", "limits.file_bytes=20000")
    with serving(word_model, *limits, f"suggestions={suggestions}") as server:
        server.translated("ka")
        yield server


def by_command(model: Path, lines: list[str], *words: str) -> list[str]:
    """The translations of `nmt translate`."""
    config = compose("translate", [f"run={model}", "engine=ctranslate2", *words])
    return [
        row[0].text
        for row in load_translator(config.translator, lambda notice: None).translate(lines)
    ]


@pytest.fixture(scope="module")
def expected(word_model: Path) -> list[str]:
    return by_command(word_model, LINES)


def upload(
    server: Server, name: str, content: bytes, source: str = "en", prefix: str = ""
) -> tuple[int, Any]:
    """Send a file; returns the status and the answer."""
    form: Any = {"data": {"source": source, "target": "de"}, "files": {"file": (name, content)}}
    headers = {"X-Forwarded-Prefix": prefix}
    answer = httpx.post(f"{server.url}/translate_file", **form, headers=headers, timeout=PATIENCE)
    return answer.status_code, answer.json()


def connect(server: Server, *parts: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    for part in parts:
        connection.sendall(part)
    return connection


def test_translations_equal_those_of_nmt_translate(server, expected):
    assert server.translated(LINES) == [*expected[:4], f"  {expected[4]}  "]
    assert server.translated("\n".join(LINES[:4]) + "\r\n") == "\n".join(expected[:4]) + "\r\n"
    assert "loaded with ctranslate2" in "".join(server.log)


def test_the_client_of_libretranslate_works_unchanged(server, expected):
    client = LibreTranslateAPI(server.url)
    assert client.translate(LINES[0], "en", "de") == expected[0]
    english, german = client.languages()
    more = {
        "tag": "en",
        "direction": "ltr",
        "nativeName": "English",
        "shortNativeName": "English",
        "shortName": "English",
    }
    assert english == {"code": "en", "name": "English", "targets": ["de"], **more}
    more = {
        "tag": "de",
        "direction": "ltr",
        "nativeName": "Deutsch",
        "shortNativeName": "Deutsch",
        "shortName": "German",
    }
    assert german == {"code": "de", "name": "German", "targets": [], **more}
    assert client.detect("This is a small house in the middle of the town.")[0]["language"] == "en"


def test_fields_come_as_json_as_a_form_and_in_the_address(server, expected):
    form = b"q=va+so+tu+pe+mika.&source=EN&target=de&format="
    assert server.ask("/translate", form)[1] == {"translatedText": expected[0]}
    assert server.ask("/translate?" + form.decode(), b"")[1] == {"translatedText": expected[0]}
    parts: Any = {"q": (None, LINES[0]), "source": (None, "en"), "target": (None, "de")}
    answer = httpx.post(f"{server.url}/translate", files=parts, timeout=PATIENCE)
    assert answer.json() == {"translatedText": expected[0]}
    assert server.ask("/translate", b"q=ka&" + form)[1]["translatedText"][1:] == [expected[0]]
    for options in ({"format": None, "alternatives": None}, {"alternatives": -1}):
        assert server.translate(LINES[0], **options) == (200, {"translatedText": expected[0]})


WORDS = "für 設定 a+b & c=d\N{ZERO WIDTH NON-JOINER}x \U0001f600"


@pytest.mark.parametrize("raw", [True, False], ids=["raw bytes", "percent-encoded"])
def test_forms_and_addresses_are_utf_8(server, raw):
    """As `curl -d q=TEXT` sends text (raw) and `curl --data-urlencode` (encoded)."""
    safe = "".join(letter for letter in WORDS if not letter.isascii()) if raw else ""
    q = "".join(letter if letter in safe else quote_plus(letter) for letter in WORDS).encode()
    fields = b"q=" + q + b"&source=de&target=de"
    assert server.ask("/translate", fields)[1] == {"translatedText": WORDS}
    fields = b"q=" + q + b"&q=%C3%A9&source=de&target=de"
    kind = "application/x-www-form-urlencoded; charset=utf-8"
    assert server.ask("/translate", fields, Content_Type=kind)[1] == {
        "translatedText": [WORDS, "é"]
    }
    request = (
        b"POST /translate?%s HTTP/1.0\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n" % fields
    )
    with connect(
        server, *(request[at : at + 10] for at in range(0, len(request), 10))
    ) as connection:
        answer = connection.makefile("rb").read()
    assert json.loads(answer.partition(b"\r\n\r\n")[2]) == {"translatedText": [WORDS, "é"]}


def test_the_parts_of_a_form_are_utf_8(server):
    parts = {"q": (None, WORDS), "source": (None, "de"), "target": (None, "de")}
    answer = httpx.post(f"{server.url}/translate", files=parts, timeout=PATIENCE)
    assert answer.json() == {"translatedText": WORDS}


@pytest.mark.parametrize(
    ("kind", "body", "problem"),
    [
        ("application/x-www-form-urlencoded", b"q=f\xfcr&source=de&target=de", "not valid UTF-8"),
        ("application/x-www-form-urlencoded", b"q=f%FCr&source=de&target=de", "not valid UTF-8"),
        ("application/x-www-form-urlencoded; charset=punycode", b"q=a", "charset=punycode"),
        ("application/json", b'{"q": "f\xfcr", "source": "de", "target": "de"}', "not valid UTF-8"),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="q"\r\n\r\nf\xfcr\r\n--b--\r\n',
            "not valid UTF-8",
        ),
    ],
)
def test_other_encodings_are_refused_unless_declared(server, kind, body, problem):
    status, answer = server.ask("/translate", body, Content_Type=kind)
    assert (status, problem in answer["error"]) == (400, True), answer


def test_a_declared_encoding_is_used(server):
    body, kind = (
        b"q=f%FCr&source=de&target=de",
        "application/x-www-form-urlencoded; charset=ISO-8859-1",
    )
    assert server.ask("/translate", body, Content_Type=kind)[1] == {"translatedText": "für"}


def test_source_auto_detects_and_returns_text_in_the_target_language(server):
    _, answer = server.translate(["ka lo", "mi"], source="auto")
    assert [language["language"] for language in answer["detectedLanguage"]] == ["en", "en"]
    assert server.translate("Das Haus", source="de", target="de") == (
        200,
        {"translatedText": "Das Haus"},
    )
    text = "Das Haus steht am Ende der Straße, und niemand wohnt darin."
    status, answer = server.translate(text, source="auto", format="html")
    assert (status, answer["translatedText"], answer["detectedLanguage"]["language"]) == (
        200,
        text,
        "de",
    )
    _, answer = server.ask("/detect", {"q": ["Hello", "World"]})
    assert [language["language"] for language in answer] == ["en", "de"]


SENTENCES = {
    "it": "Ciao, mi chiamo Paolo e ho venti anni.",
    "fr": "Je suis une fille et je parle avec ma mère.",
    "en": "Hello world, this is an English sentence.",
    "de": "Guten Tag, das ist ein deutscher Satz über die Sprache.",
}


@pytest.fixture(scope="module")
def polyglot(word_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a model for several pairs; into de, only from en."""
    folder = tmp_path_factory.mktemp("pairs")
    with serving(
        *as_pairs(word_model, folder, "en>de", "de>en", "it>en", "fr>en", "en>zh_TW", "en>pt-BR")
    ) as server:
        yield server


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


def test_a_language_without_a_model_into_the_target_is_an_error(polyglot):
    status, answer = polyglot.translate(SENTENCES["fr"], source="auto")
    problem = "French (fr) was detected, but no model translates it to German (de); "
    assert (status, answer["error"]) == (
        400,
        problem + "models into German (de) translate from: English (en)",
    )
    status, answer = polyglot.translate([SENTENCES["en"], SENTENCES["it"]], source="auto")
    assert (status, answer["error"].startswith("text 2: Italian (it) was detected")) == (400, True)
    assert polyglot.translate("ok", source="auto")[1]["detectedLanguage"]["language"] == "en"
    status, answer = upload(polyglot, "a.txt", SENTENCES["fr"].encode(), source="auto")
    assert (status, "French (fr) was detected" in answer["error"]) == (400, True)


def test_codes_in_other_forms_find_their_model(polyglot):
    expected = polyglot.translated(LINES[0])
    for source, target in (
        ("EN", "DE"),
        ("en-US", "de_AT"),
        ("eng", "deu_Latn"),
        ("en", "pt"),
        ("en", "zh-Hant"),
    ):
        assert polyglot.translated(LINES[0], source=source, target=target) == expected
    for target in ("Deutsch", "繁體中文"):
        assert polyglot.translated(LINES[0], target=target) == expected
    assert (
        polyglot.translate("ok", source="AUTO", target="De")[1]["detectedLanguage"]["language"]
        == "en"
    )
    assert upload(polyglot, "a.txt", b"ka", source="eng")[0] == 200
    for target, problem in (
        ("zh-CN", "Simplified Chinese (China) (zh-CN) is not supported"),
        ("zz", "zz is not supp"),
        ("jp", "jp is not supported; did you mean ja (Japanese)?"),
        ("at", "did you mean de (German)?"),
    ):
        status, answer = polyglot.translate("ka", target=target)
        assert (status, problem in answer["error"]) == (400, True), answer
        assert answer["languages"] == ["en", "de", "it", "fr", "zh_TW", "pt-BR"]
    languages = {language.pop("code"): language for language in polyglot.ask("/languages")[1]}
    names = {
        code: (language["name"], language["nativeName"]) for code, language in languages.items()
    }
    assert names["zh_TW"] == ("Traditional Chinese (Taiwan)", "繁體中文 (台灣)")
    assert names["pt-BR"] == ("Brazilian Portuguese", "Português (Brasil)")
    assert languages["zh_TW"]["tag"] == "zh-TW"


def test_a_file_is_translated_and_fetched_also_behind_a_prefix(server, expected):
    status, answer = upload(server, "../my notes.txt", "\n".join(LINES[:4]).encode(), source="auto")
    assert status == 200, answer
    assert answer["translatedFileUrl"].startswith(server.url + "/download_file/")
    for _ in range(2):
        file = httpx.get(answer["translatedFileUrl"])
        assert file.headers["Content-Disposition"] == 'attachment; filename="my notes_de.txt"'
        assert file.text == "\n".join(expected[:4])
    url = upload(server, "a.txt", b"ka", prefix="/mt/")[1]["translatedFileUrl"]
    assert url.startswith(f"{server.url}/mt/download_file/")
    path = url.removeprefix(f"{server.url}/mt")  # the proxy removes the prefix
    for address, prefix in (
        (path, "/mt"),
        *(("/languages", one) for one in ("/languages", "//evil.example", "/a b")),
    ):
        assert server.ask(address, X_Forwarded_Prefix=prefix)[0] == 200


@pytest.mark.parametrize(
    ("name", "content", "advice"),
    [
        ("a.txt", b'{"a": "ka lo"}', "its content is JSON, .* the suffix of json"),
        ("a.txt", b"<!DOCTYPE html><p>ka lo</p>", "its content is HTML"),
        ("a", b'{"a": "ka lo"}', "a: its content is JSON"),
        ("a.tr", b"let a = 1;\nlet b = 2;\n", "a.tr: its content is source code"),
        ("a.ipynb", b"{}", "a.ipynb: unsupported file type; run `jupytext"),
        ("../\u8a2d\u5b9a.xyz", b"ka lo", "^\u8a2d\u5b9a.xyz: unsupported file type; supported: "),
        ("a.txt.gz", b"\x1f\x8b", "a.txt.gz: unsupported file type; unpack it"),
        ("a", b"\x7fELF\0\0\0\0\xff\0", "a: "),
    ],
)
def test_files_that_would_be_damaged_are_refused(server, name, content, advice):
    status, answer = upload(server, name, content)
    assert status == 400
    assert re.search(advice, answer["error"])


def test_what_a_file_leaves_untranslated_is_in_the_answer(server):
    plain = upload(server, "a.md", b"ka lo\n")[1]
    assert plain.keys() == {"translatedFileUrl"}
    answer = upload(server, "a.md", b"---\ntitle: ka lo\n---\n\nka lo\n")[1]
    assert "title" in answer["notice"]


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        ("設定.txt", "設定_de.txt"),
        ("फ़ाइल (1).TXT", "फ़ाइल (1)_de.txt"),
        ("原稿 その1.txt", "原稿 その1_de.txt"),
        ("原稿", "原稿_de"),
        ("Notes of Mr. Smith", "Notes of Mr. Smith_de"),
        ("test.en", "test.de"),
        ("原稿.zh_CN", "原稿.de"),
        ("a:\x7f;c.txt", "a_c_de.txt"),
        ("a\u0308\u202egpj.txt", "ä_gpj_de.txt"),
        ("..\\..\\été.txt", "été_de.txt"),
        ("پرونده\u200cها.txt", "پرونده\u200cها_de.txt"),
        ("ö" * 300 + ".txt", "ö" * 100 + "_de.txt"),
    ],
)
def test_files_keep_their_names_in_all_languages(server, sent, name):
    """Oracle: the standard library's parser of such headers."""
    status, answer = upload(server, sent, b"ka")
    assert status == 200, answer
    assert answer["translatedFileUrl"].isascii()
    header = httpx.get(answer["translatedFileUrl"]).headers["Content-Disposition"]
    message = Message()
    message["Content-Disposition"] = re.sub(r' filename="[\w ().-]+";', "", header, flags=re.ASCII)
    assert message.get_filename() == unicodedata.normalize("NFC", name)


@pytest.mark.skipif(not shutil.which("curl"), reason="no curl")
@pytest.mark.parametrize(
    ("sent", "name"),
    [
        ("原稿 その1.txt", "translation_de.txt"),
        ("原稿", "translation_de"),
        ("原稿.en", "translation.de"),
        ("été (1).txt", "ete (1)_de.txt"),
        ("my notes.txt", "my notes_de.txt"),
    ],
)
def test_programs_that_only_know_ascii_get_a_useful_name(server, sent, name, tmp_path):
    url = upload(server, sent, b"ka")[1]["translatedFileUrl"]
    subprocess.run(["curl", "-sOJ", url], cwd=tmp_path, check=True)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_unsuitable_files_are_refused(server):
    for name, content, status, text in (
        ("a.exe", b"ka", 400, "unsupported file type"),
        ("a.txt", b"ka " * 10_000, 413, "more than 20,000 bytes"),
        ("a.html", b"<p>" + b"k" * 2001, 400, "a line (2001) exceeds text limit (2000)"),
    ):
        code, answer = upload(server, name, content)
        assert (code, text in answer["error"]) == (status, True), answer


def test_html_is_translated_with_its_tags_and_text_has_alternatives(server, expected):
    _, answer = server.translate([f"<p class='x'>{LINES[0]}</p>\n"], format="html")
    assert answer["translatedText"] == [
        f"<p class='x'>{html.escape(expected[0], quote=False)}</p>\n"
    ]
    _, answer = server.translate("<p>ka <b>lo</b> mi", format="html", alternatives=1)
    assert re.fullmatch("<p>[^<]*<b>[^<]*</b>[^<]*", answer["translatedText"])
    assert answer["alternatives"] == []
    _, answer = server.translate([LINES[0], ""], alternatives=3)
    assert [len(answer[key]) for key in ("translatedText", "alternatives")] == [2, 2]
    texts = [answer["translatedText"][0], *answer["alternatives"][0]]
    assert len(set(texts)) == len(texts) > 1


def test_the_promises_of_libretranslates_own_tests_hold(server):
    text = {"q": "Hello", "source": "en", "target": "de", "format": "text"}
    for path, fields, keys in (
        *(
            ("/languages", None, {"code", "name"}),
            ("/health", None, {"status"}),
            ("/spec", None, {"openapi", "paths"}),
        ),
        (
            "/frontend/settings",
            None,
            {"charLimit", "frontendTimeout", "keyRequired", "suggestions", "language"},
        ),
        *(
            ("/detect", {"q": "Hello"}, {"confidence", "language"}),
            ("/translate", text, {"translatedText"}),
        ),
    ):
        status, answer = server.ask(path, fields)
        assert (status, keys - {*(answer[0] if isinstance(answer, list) else answer)}) == (
            200,
            set(),
        ), path
        assert server.ask(path, {} if fields is None else None)[0] == 405  # the other method
    assert len(server.translated(["Hello", "World"])) == 2
    assert server.ask("/detect", {"q": "k" * 2000})[0] == 200
    for path, changes, status, problem in (
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
        *(("/translate", {"q": q}, 400, "") for q in ("\ud800", [""] * 2000 + ["k"])),
        (
            "/translate",
            {"alternatives": 11},
            400,
            "alternatives: Input should be less than or equal to 10",
        ),
        ("/translate", {"q": "k" * 100_000}, 413, "20,000 bytes"),
        *(
            ("/translate", body, 400, "")
            for body in (["q"], b"q=%ff&source=en", b'{"q": ' + b"[" * 9000)
        ),
    ):
        code, answer = server.ask(path, text | changes if isinstance(changes, dict) else changes)
        assert (code, "error" in answer, problem in answer["error"]) == (status, True, True), answer
    assert "Traceback" not in "".join(server.log)
    schemas = server.ask("/spec")[1]["components"]["schemas"]
    for name, form in (("Text", TextForm), ("Translate", TranslateForm), ("File", FileForm)):
        fields = form.model_fields
        assert {*schemas[name]["properties"]} == {*fields, "api_key"}
        assert {*schemas[name]["required"]} == {key for key in fields if fields[key].is_required()}


def test_suggestions_are_rows_to_train_on(word_model, tmp_path, nmt):
    fields = {"q": "ka\tlo\nmi", "s": "ol \u2028 ak\0", "source": "en", "target": "de"}
    words, texts = (
        (word_model, f"suggestions={tmp_path / 'all.tsv'}"),
        [f"{n} " * n for n in range(1, 41)],
    )
    with serving(*words) as one, serving(*words) as two, ThreadPoolExecutor(8) as pool:
        answers = pool.map(
            lambda text: (one, two)[len(text) % 2].ask("/suggest", fields | {"q": text}), texts
        )
        assert [*answers] == [(200, {"success": True})] * 40
        assert one.ask("/suggest", fields) == (200, {"success": True})
    rows = [line.split("\t") for line in (tmp_path / "all.tsv").read_text().splitlines()]
    assert sorted(len(row[0].split()) for row in rows[:40]) == [*range(1, 41)]
    assert rows[40][:4] == ["ka lo mi", "ol ak", "en", "de"]
    nmt("serve", str(word_model), f"suggestions={tmp_path}").refused("suggestions=", "directory")


KEPT = [
    *("می\u200cخواهم", "क्\u200dष", "Zu\xadcker", "👩\u200d💻", "a\u00a0: b\u202f!", "=1+1"),
    *("\u200eabc\u200f", "(\u2068%s\u2069)", "\U0010e001x\ue000", "\u2003a  b"),
]


@pytest.mark.parametrize(
    ("suggestion", "cell"),
    [
        *((text, text) for text in KEPT),
        (" a\r\n\r\nb\tc\x00d\x85e\u2029f\x1b[0m ", "a b c d e f [0m"),
        ("txt.\u202eexe", "txt.exe"),
        ("\u2069a\u2066", "a"),
    ],
)
def test_suggestions_keep_all_characters_that_do_not_break_a_row(
    server, suggestions, suggestion, cell
):
    fields = {
        "q": "This is a small house in the middle of the town.",
        "s": suggestion,
        "source": "auto",
        "target": "de",
    }
    assert server.ask("/suggest", fields) == (200, {"success": True})
    row = suggestions.read_bytes().decode().removesuffix("\n").split("\n")[-1]
    assert row.split("\t")[:4] == [fields["q"], cell, "en", "de"]


@pytest.mark.parametrize("blank", [" ", "\t\n", "\u00a0\u200d\u200b"])
def test_suggestions_without_text_are_refused(server, suggestions, blank):
    before = suggestions.read_bytes()
    for fields in ({"q": "ka", "s": blank}, {"q": blank, "s": "ka"}):
        status, answer = server.ask("/suggest", fields | {"source": "en", "target": "de"})
        assert (status, "contains no text" in answer["error"]) == (400, True)
    assert suggestions.read_bytes() == before


def test_another_word_follows_the_same_beginning_and_details_align_words(server, expected):
    line, details = " ".join(LINES[:2]), True
    _, answer = server.translate(f"{line}\n\nka", details=details)
    words, rows = answer["translatedText"].split("\n")[0].split(), answer["details"]
    assert (len(rows), rows[1]["flags"]) == (2, [])
    assert {target for _, target in rows[0]["alignment"]} == {*range(len(words))}
    returned = answer["translatedText"].split("\n")[0]
    assert [line[begin:end] for begin, end in rows[0]["source_words"]] == line.split()
    assert [returned[begin:end] for begin, end in rows[0]["target_words"]] == words
    for count in (
        0,
        2,
        -2,
        -3,
    ):  # from the end in the second sentence, also after a replaced word of the first
        before = words[:count]
        _, answer = server.translate(line, alternatives=8, prefix=" ".join([*before, ""]) or " ")
        others = [text.split() for text in (answer["translatedText"], *answer["alternatives"])]
        same = [
            other for other in others if other[: len(before)] == before and len(other) > len(before)
        ]
        assert len({other[len(before)] for other in same}) > 2
        words = same[1] if count == 2 else words


def test_spans_of_words_count_from_the_beginning_of_a_line_as_sent(server):
    text = "  ka lo\n\n\t\u8a2d\u5b9a ka \U0001f600!\n"
    _, answer = server.translate(text, details=True)
    for row, sent, returned in zip(
        answer["details"],
        filter(str.strip, text.split("\n")),
        filter(str.strip, answer["translatedText"].split("\n")),
        strict=True,
    ):
        assert [tuple(span) for span in row["source_words"]] == word_spans(sent)
        assert [tuple(span) for span in row["target_words"]] == word_spans(returned)
        assert {source for source, _ in row["alignment"]} <= {*range(len(row["source_words"]))}
        assert {target for _, target in row["alignment"]} <= {*range(len(row["target_words"]))}


def test_texts_of_clients_are_not_logged(server):
    before = len(server.log)
    for _ in range(50):
        assert (
            server.ask(
                "/translate", b"secret words", Content_Type="multipart/form-data; boundary=b"
            )[0]
            == 400
        )
    connect(server, b"secret words\r\n\r\n").close()
    server.translated("secret words")
    code, answer = server.ask("/nowhere?q=secret")
    assert (code, list(answer)) == (404, ["error"])
    assert "secret" not in "".join(server.log)
    assert len(server.log) - before <= 1


def test_other_sites_are_refused_and_browser_extensions_served(server):
    fields = {"q": "tu", "source": "en", "target": "de"}
    assert server.ask("/languages", Host="evil.example")[0] == 421
    assert server.ask("/languages", Host=f"localhost:{server.port}")[0] == 200
    for origin in ("https://evil.example", "http://localhost:1", "null"):
        assert server.ask("/translate", fields, Origin=origin)[0] == 403
    assert "default-src 'none'" in httpx.get(server.url).headers["Content-Security-Policy"]
    for origin in (server.url, "moz-extension://a1b2"):
        assert server.ask("/translate", fields, Origin=origin)[0] == 200


def test_clients_that_hang_disconnect_or_send_garbage_do_no_harm(server, expected):
    hanging = [connect(server), connect(server, PROMISE[:30]), connect(server, PROMISE % 1000)]
    for garbage in (
        b"\x16\x03\x01\x02",
        b"GET /\r\n\r\n",
        bytes(range(256)),
        PROMISE % 1000 + b"{[" * 500,
    ):
        connect(server, garbage).close()
    whole = json.dumps({"q": "\n".join([LINES[0]] * 100), "source": "en", "target": "de"}).encode()
    for _ in range(5):
        connect(server, PROMISE % len(whole), whole).close()
    assert server.translated(LINES[:4]) == expected[:4]
    for connection in hanging:
        connection.close()


def memory(server: Server) -> int:
    """The resident memory of a server in MiB."""
    return (
        int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1])
        * resource.getpagesize()
        // 2**20
    )


CHUNKED = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ", b"a"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"a: b\r\n"),
        (b"GET /?q=", b"a"),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HTTP/1.1\r\nX: ", b"a"),
        (CHUNKED + b"1;", b"a"),
        (CHUNKED + b"0\r\nX: ", b"a"),
        (b"", b"\r\n"),
    ],
)
def test_headers_of_any_size_are_cut_off(server, begin, more):
    before = memory(server)
    with (
        connect(server, begin) as connection,
        pytest.raises(OSError, match=r"reset|Broken pipe|aborted"),
    ):
        connection.sendall(more * (2**26 // len(more)))
    assert memory(server) < before + 16
    assert server.ask("/health")[0] == 200


@pytest.mark.parametrize(("size", "status"), [(60_000, 200), (70_000, 431)])
def test_large_headers_get_a_reason(server, size, status):
    assert server.ask("/health", X_Padding="a" * size)[0] == status
    # httpx refuses so long an address.
    with connect(
        server, b"GET /health?q=%s HTTP/1.0\r\nHost: localhost\r\n\r\n" % (b"a" * size)
    ) as connection:
        assert int(connection.makefile("rb").readline().split()[1]) == status


def test_several_models_serve_by_language_and_sigterm_answers_accepted_requests(
    word_model, tagged_model
):
    models = (word_model, tagged_model)
    with (
        serving(*models, "hosts=[translate.example.org]") as server,
        ThreadPoolExecutor(12) as pool,
    ):
        first = server.translated(LINES[0])
        for target in ("deu", "fra"):
            [expected] = by_command(tagged_model, LINES[:1], f"target={target}")
            assert server.translated(LINES[0], target=target) == expected != first
        assert server.ask("/languages", Host="translate.example.org")[0] == 200
        assert server.ask("/languages", Host="other.example.org")[0] == 421
        os.kill(server.process.pid, signal.SIGSTOP)
        answers = [pool.submit(server.translated, LINES[0]) for _ in range(4)]
        time.sleep(0.3)  # for all of them to arrive
        os.kill(server.process.pid, signal.SIGCONT)
        time.sleep(0.3)
        server.process.terminate()
        assert {answer.result() for answer in answers} == {first}
        assert server.process.wait(30) in (0, -signal.SIGTERM)


def test_keys_are_required_and_limits_hold(word_model, tmp_path, nmt):
    keys, key = tmp_path / "keys.txt", secrets.token_hex(32)
    keys.touch()
    nmt("serve", str(word_model), f"keys={keys}").refused("no key")
    keys.write_text(f"ann {sha256(key.encode()).hexdigest()}\n")
    limits = ["limits.seconds=3", "limits.requests_per_minute=5", "limits.connections=20"]
    with serving(word_model, f"keys={keys}", "host=0.0.0.0", *limits) as server:
        server.logged("loaded with")
        nmt("serve", str(word_model), f"port={server.port}").refused("port=", "in use")
        assert server.translate("ka") == (403, {"error": "this server requires an API key"})
        for wrong in ("wrong", sha256(key.encode()).hexdigest()):
            assert server.translate("ka", api_key=wrong) == (403, {"error": "invalid API key"})
        assert server.ask("/frontend/settings")[1]["keyRequired"]
        assert (
            server.ask("/translate", b"q=ka&source=en&target=de", Authorization=f"Bearer {key}")[0]
            == 200
        )
        assert LibreTranslateAPI(server.url, key).translate("ka", "en", "de")
        for _ in range(8):
            status, answer = server.translate("ka", api_key=key)
        assert (status, "too many requests" in answer["error"]) == (429, True)
        with connect(server, PROMISE % 10) as slow:
            assert b" 504 " in slow.recv(1000)
        with connect(server, PROMISE[:20]) as slow, connect(server) as silent:
            assert b" 408 " in slow.recv(1000)
            assert silent.recv(1000) == b""
        assert key not in "".join(server.log)
        idle = [connect(server) for _ in range(21)]
        time.sleep(0.2)
        assert server.ask("/health")[0] == 503
        for connection in idle:
            connection.close()


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_each_engine_serves_the_same_with_a_glossary(word_model, expected, tmp_path, engine):
    (tmp_path / "terms.tsv").write_text("mivari\tut avolir\n")
    with serving(word_model, f"engine={engine}", f"glossary={tmp_path / 'terms.tsv'}") as server:
        assert server.translated(LINES[:3]) == expected[:3]
        assert server.ask("/frontend/settings")[1]["glossary"] == {"name": "terms.tsv", "terms": 1}
        _, answer = server.translate(LINES[3], alternatives=10)
        texts = [answer["translatedText"], *answer["alternatives"]]
        words = texts[0].split()
        for count in range(len(words)):
            before, after = (" ".join(part) for part in (words[:count], words[count:]))
            _, answer = server.translate(LINES[3], alternatives=10, prefix=f"{before} ", rest=after)
            texts += [answer["translatedText"], *answer["alternatives"]]
        assert len(set(texts)) > 5
        assert [text for text in texts if "ut avolir" not in text] == []
        # Concurrent searches of torch must not mix up the attention that they read.
        with ThreadPoolExecutor(8) as pool:
            assert all("ut avolir" in text for text in pool.map(server.translated, [LINES[3]] * 8))
            formats = ("text", "html", "text")
            answers = list(
                pool.map(
                    lambda n: server.translated(LINES[n % 2], format=formats[n % 3]), range(24)
                )
            )
        assert answers == [expected[n % 2] for n in range(24)]
        assert f"loaded with {engine}" in "".join(server.log)
        assert "".join(server.log).count("loading engine=torch") == (engine != "torch")
