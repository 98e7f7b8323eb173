"""`nmt serve` as its clients see it: real processes, the real LibreTranslate client, and what goes wrong."""

import html
import json
import os
import re
import shutil
import signal
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from libretranslatepy import LibreTranslateAPI

from nmt.commands import compose
from nmt.plugins import serve as nmt_server
from nmt.translation import load_translator
from tests.plugins.serve.serving import PATIENCE, Server, serving

WORDS = ["tu", "pe", "mi", "nusova", "ka", "rilova", "so", "va", "mika", "ritu"]
LINES = ["va so tu pe mika.", "mika nu nu pe.", "", "756 mivari tu so rilova ri.", "  pelowe.  "]


@pytest.fixture(scope="module")
def server(word_model: Path) -> Iterator[Server]:
    with serving(word_model, "limits.characters=2000", "limits.file_bytes=20000") as found:
        found.translated("ka")
        yield found


@pytest.fixture(scope="module")
def expected(word_model: Path) -> list[str]:
    """What `nmt translate` makes of LINES."""
    translator = load_translator(compose("translate", [f"run={word_model}", "engine=ctranslate2"]), lambda words: None)
    return [found[0].text for found in translator.translate(LINES)]


def test_translations_are_those_of_nmt_translate(server, expected):
    assert server.translated(LINES) == [
        a if "  " not in b else f"  {a}  " for a, b in zip(expected, LINES, strict=True)
    ]
    assert server.translated("\n".join(LINES[:4]) + "\r\n") == "\n".join(expected[:4]) + "\r\n"


def test_the_client_of_libretranslate_works_unchanged(server, expected):
    client = LibreTranslateAPI(server.url)
    assert client.translate(LINES[0], "en", "de") == expected[0]
    assert client.languages() == [
        {"code": "en", "name": "English", "targets": ["de"]},
        {"code": "de", "name": "German", "targets": []},
    ]
    assert client.detect("This is a small house in the middle of the town.")[0]["language"] == "en"


def test_fields_come_as_json_as_a_form_and_in_the_address(server, expected):
    form = b"q=va+so+tu+pe+mika.&source=en&target=de"
    assert server.ask("/translate", form)[1] == {"translatedText": expected[0]}
    assert server.ask("/translate?" + form.decode(), b"")[1] == {"translatedText": expected[0]}
    part = '--b\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    parts = "".join(part.format(*each) for each in (("q", LINES[0]), ("source", "en"), ("target", "de"))) + "--b--\r\n"
    found = server.ask("/translate", parts.encode(), Content_Type="multipart/form-data; boundary=b")
    assert found[1] == {"translatedText": expected[0]}


def test_a_language_is_detected_and_told(server):
    status, found = server.translate(["ka lo", "mi"], source="auto")
    assert status == 200
    assert [each["language"] for each in found["detectedLanguage"]] == ["en", "en"]


def test_a_text_in_the_target_language_stays_as_it_is(server):
    for language in ("de", "en"):
        assert server.translate("Das Haus", source=language, target=language) == (200, {"translatedText": "Das Haus"})


def test_alternatives_differ(server):
    _, found = server.translate(LINES[0], alternatives=3)
    texts = [found["translatedText"], *found["alternatives"]]
    assert len(texts) > 1
    assert len(set(texts)) == len(texts)
    _, found = server.translate(["ka lo", ""], alternatives=2)
    assert [len(found[key]) for key in ("translatedText", "alternatives")] == [2, 2]


def test_details_tell_words_alignment_and_confidence(server, expected):
    _, found = server.translate("\n".join(LINES[:4]), details=True)
    assert [each["line"] for each in found["details"]] == [0, 1, 3]
    for each, translation in zip(found["details"], [*expected[:2], expected[3]], strict=True):
        assert each["words"] == translation.split()
        assert len(each["confidence"]) == len(each["words"])
        assert all(0 <= confidence <= 1 for confidence in each["confidence"])
        assert all(s < len(each["sourceWords"]) and t < len(each["words"]) for s, t in each["alignment"])
        assert each["sourceWords"] == each["source"].split()
    assert found["details"][0]["source"] == LINES[0]


def test_other_words_can_stand_at_a_place(server, expected):
    first, *rest = expected[3].split()
    status, found = server.ask(
        "/alternatives", {"q": LINES[3], "source": "en", "target": "de", "before": first, "count": 4}
    )
    assert status == 200
    found = found["alternatives"]
    assert len({each["word"] for each in found}) == len(found) > 1
    assert all(each["translation"].split()[:2] == [first, each["word"]] for each in found)
    assert rest[0] in [each["word"] for each in found]


def test_a_long_text_is_streamed_in_order(server, expected):
    _, found = server.translate("\n".join(LINES[:4]), stream=True)
    parts = [json.loads(line) for line in found.splitlines()]
    assert [part["line"] for part in parts] == [0, 1, 2, 3]
    assert [part["translatedText"] for part in parts] == expected[:4]


def test_a_file_is_translated_and_fetched_once_or_more(server, expected):
    boundary = 'form-data; name="file"; filename="my notes.txt"'
    body = f"--b\r\nContent-Disposition: {boundary}\r\nContent-Type: text/plain\r\n\r\n" + "\n".join(LINES[:4])
    for name, value in (("source", "auto"), ("target", "de")):
        body += f'\r\n--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}'
    kind = "multipart/form-data; boundary=b"
    status, found = server.ask("/translate_file", f"{body}\r\n--b--\r\n".encode(), Content_Type=kind)
    assert status == 200, found
    url = found["translatedFileUrl"]
    assert url.startswith(server.url + "/download_file/")
    with urllib.request.urlopen(url) as answer:
        assert answer.headers["Content-Disposition"] == 'attachment; filename="my_notes_de.txt"'
        assert answer.read().decode() == "\n".join(expected[:4])
    memory = "<tmx><header srclang='fr'/><tu><tuv xml:lang='fr'><seg>a</seg></tuv></tu></tmx>"
    foreign = body.replace("notes.txt", "notes.tmx").replace("\n".join(LINES[:4]), memory)
    for damaged in (body.replace("notes.txt", "notes.exe"), body.replace('name="file"', 'name="other"'), foreign):
        status, found = server.ask("/translate_file", f"{damaged}\r\n--b--\r\n".encode(), Content_Type=kind)
        assert status == 400
        assert "file" in found["error"]


def test_html_is_translated_with_its_tags(server, expected):
    _, found = server.translate([f"<p class='x'>{LINES[0]}</p>\n"], format="html")
    assert found["translatedText"] == [f"<p class='x'>{html.escape(expected[0], quote=False)}</p>\n"]
    status, found = server.translate("<p>ka <b>lo</b> mi", format="html", alternatives=1, details=True)
    assert status == 200
    assert re.fullmatch("<p>[^<]*<b>[^<]*</b>[^<]*", found["translatedText"])
    assert found["details"][0]["source"] == "ka lo mi"


def test_the_pages_load_nothing_from_elsewhere_and_run_no_text(server):
    for path in ("/", "/page.js", "/page.css"):
        with urllib.request.urlopen(server.url + path) as answer:
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert "Access-Control-Allow-Origin" not in answer.headers
            assert b"//cdn" not in answer.read()
    with urllib.request.urlopen(f"{server.url}/?name=/etc/passwd") as answer:
        assert b"root:" not in answer.read()


def test_the_api_describes_itself(server):
    status, found = server.ask("/openapi.json")
    assert status == 200
    assert {"/translate", "/translate_file", "/detect", "/languages", "/health", "/alternatives"} <= set(found["paths"])
    schema = found["paths"]["/translate"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert {"q", "source", "target", "format", "alternatives"} <= set(schema["properties"])


def test_health_and_metrics_tell_how_it_is(server):
    server.translated(["ka", "lo"])
    assert server.ask("/health") == (200, {"status": "ok"})
    _, found = server.ask("/metrics")
    values = dict(line.rsplit(" ", 1) for line in found.splitlines() if not line.startswith("#"))
    assert float(values['nmt_requests_total{path="/translate",status="200"}']) > 0
    [memory] = [float(value) for name, value in values.items() if name.startswith("nmt_model_memory_bytes")]
    assert memory > 10**7


@pytest.mark.parametrize(
    ("fields", "status", "told"),
    [
        ({"q": "ka", "source": "en"}, 400, "Invalid request: missing target parameter"),
        ({"q": "ka", "target": "de"}, 400, "Invalid request: missing source parameter"),
        ({"q": "ka", "source": "fr", "target": "de"}, 400, "fr is not supported"),
        ({"q": "ka", "source": "en", "target": "auto"}, 400, "auto is not supported"),
        (
            {"q": "ka", "source": "de", "target": "en"},
            400,
            "English (en) is not available as a target language from German (de)",
        ),
        ({"q": "", "source": "en", "target": "de"}, 400, "Invalid request: missing q parameter"),
        ({"q": None, "source": "en", "target": "de"}, 400, "Invalid request: missing q parameter"),
        ({"q": [], "source": "en", "target": "de"}, 400, "Invalid request: missing q parameter"),
        (b"q=ka&source=en&target=zz&format=text", 400, "zz is not supported"),
        (b"q=ka&source=en&target=de&alternatives=x", 400, "Invalid request: alternatives parameter is not a number"),
        ({"q": 5, "source": "en", "target": "de"}, 400, "q"),
        ({"q": "ka", "source": "en", "target": "de", "format": "pdf"}, 400, "pdf format is not supported"),
        ({"q": "ka", "source": "en", "target": "de", "format": "html", "stream": True}, 400, "format=text"),
        (
            {"q": "ka", "source": "en", "target": "de", "alternatives": 11},
            400,
            "Invalid request: alternatives parameter must be <= 10",
        ),
        ({"q": "k" * 2001, "source": "en", "target": "de"}, 400, "exceeds text limit (2000)"),
        ({"q": "k" * 20001, "source": "en", "target": "de"}, 413, "20,000 bytes"),
        ({"q": ["k"] * 2001, "source": "en", "target": "de"}, 400, "exceeds text limit (2000)"),
        ({"q": [""] * 2000 + ["k"], "source": "en", "target": "de"}, 400, "exceeds text limit (2000)"),
        (["q"], 400, "JSON"),
        (b"\xff\xfe", 400, "form"),
        (b"q=%ff&source=en&target=de", 400, "form"),
        ({}, 400, "q"),
    ],
)
def test_a_wrong_request_is_told_in_a_line_as_libretranslate_tells_it(server, fields, status, told):
    found = server.ask("/translate", fields)
    assert found[0] == status, found
    assert told in found[1]["error"]
    assert "Traceback" not in "".join(server.log)


@pytest.mark.parametrize(
    ("method", "path", "fields", "status"),
    [
        ("POST", "/detect", b"q=Hello", 200),
        ("POST", "/detect", b"", 400),
        ("GET", "/detect", None, 405),
        ("GET", "/frontend/settings", None, 200),
        ("GET", "/languages", None, 200),
        ("POST", "/languages", b"", 405),
        ("GET", "/health", None, 200),
        ("POST", "/health", b"", 405),
        ("GET", "/spec", None, 200),
        ("POST", "/spec", b"", 405),
    ],
)
def test_routes_answer_as_those_of_libretranslate(server, method, path, fields, status):
    assert (method == "GET") == (fields is None)
    found = server.ask(path, fields)
    assert found[0] == status
    if status >= 400:
        assert list(found[1]) == ["error"]


@pytest.mark.parametrize(
    "options", [{}, {"format": None, "alternatives": None, "stream": None, "glossary": None}, {"alternatives": -1}]
)
def test_options_that_are_null_are_as_if_left_out(server, expected, options):
    assert server.translate(LINES[0], **options) == (200, {"translatedText": expected[0]})


def test_texts_of_a_form_are_a_list(server, expected):
    form = b"q=va+so+tu+pe+mika.&q=mika+nu+nu+pe.&source=EN&target=de&format="
    assert server.ask("/translate", form)[1] == {"translatedText": expected[:2]}
    part = '--b\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    parts = [("q", LINES[0]), ("q", LINES[1]), ("source", "en"), ("target", "de")]
    body = "".join(part.format(*each) for each in parts) + "--b--\r\n"
    found = server.ask("/translate", body.encode(), Content_Type="multipart/form-data; boundary=b")
    assert found[1] == {"translatedText": expected[:2]}


def test_a_text_that_is_in_the_target_language_already_comes_back(server):
    text = "Das Haus steht am Ende der Straße, und niemand wohnt darin."
    for fields in ({}, {"format": "html"}):
        status, found = server.translate(text, source="auto", **fields)
        assert (status, found["translatedText"], found["detectedLanguage"]["language"]) == (200, text, "de")


def test_only_languages_of_the_server_are_detected(server):
    status, found = server.ask("/detect", {"q": "Hello"})
    assert status == 200
    assert [each["language"] for each in found] == ["en", "de"]
    assert server.ask("/detect", {"q": ["Hello", "World"]})[0] == 200


def upload(server: Server, name: str, content: bytes, **headers: str) -> tuple[int, Any]:
    """The status and the answer to a file."""
    fields = (("source", "en"), ("target", "de"))
    part = '--b\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    body = "".join(part.format(*each) for each in fields).encode()
    body += f'--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
    body += content + b"\r\n--b--\r\n"
    return server.ask("/translate_file", body, Content_Type="multipart/form-data; boundary=b", **headers)


def test_behind_a_prefix_all_addresses_have_it(server):
    _, found = upload(server, "a.txt", b"ka", X_Forwarded_Prefix="/mt/")
    assert found["translatedFileUrl"].startswith(f"{server.url}/mt/download_file/")
    path = found["translatedFileUrl"].removeprefix(f"{server.url}/mt")  # which the proxy cuts off
    assert server.ask(path, X_Forwarded_Prefix="/mt")[0] == 200
    for prefix in ("/languages", "//evil.example", "/a b"):
        assert server.ask("/languages", X_Forwarded_Prefix=prefix)[0] == 200
    for name in ("docs.html", "docs.js"):
        content = (Path(nmt_server.__file__).parent / "page" / name).read_text()
        assert 'href="/' not in content
        assert "location.origin" not in content


def test_uploads_and_lines_that_are_too_large_are_refused_in_a_line(server):
    for name, content, status, words in [
        ("a.txt", b"ka " * 10_000, 413, "more than 20,000 bytes"),
        ("a.txt", b"k" * 2001, 400, "a line (2001) exceeds text limit (2000)"),
        ("a.html", b"<p>" + b"k" * 2001, 400, "a line (2001) exceeds text limit (2000)"),
    ]:
        found = upload(server, name, content)
        assert (found[0], words in found[1]["error"]) == (status, True), found


def test_large_files_leave_short_lines_their_turns(word_model):
    with serving(word_model) as server:
        server.translated("ka")
        page = ("<p>" + " ".join(WORDS * 3) + "</p>\n").encode() * 100
        with ThreadPoolExecutor(4) as pool:
            uploads = [pool.submit(upload, server, "a.html", page) for _ in range(4)]
            time.sleep(0.5)
            answered = 0
            while not any(each.done() for each in uploads):
                server.translated("tu pe")
                answered += 1
            assert {each.result()[0] for each in uploads} == {200}
        assert answered > 5


def test_too_many_connections_are_told_as_anything_else(word_model):
    with serving(word_model, "limits.connections=2") as server:
        server.translated("ka")
        idle = [send(server) for _ in range(3)]
        time.sleep(0.2)
        assert server.ask("/health") == (503, {"error": "too many connections; try again later"})
        for each in idle:
            each.close()


def test_what_clients_send_is_not_logged_however_often_they_send_it(server):
    before = len(server.log)
    for _ in range(50):
        assert server.ask("/translate", b"secret words", Content_Type="multipart/form-data; boundary=b")[0] == 400
    send(server, b"secret words\r\n\r\n").close()
    server.translated("ka")
    assert "secret" not in "".join(server.log)
    assert len(server.log) - before <= 1


def test_half_a_character_and_deep_json_are_refused(server):
    for body in (b'{"q": "\\ud800", "source": "en", "target": "de"}', b'{"q": ' + b"[" * 9000 + b"]" * 9000 + b"}"):
        status, found = server.ask("/translate", body, Content_Type="application/json")
        assert (status, list(found)) == (400, ["error"])


def test_a_page_elsewhere_whose_name_leads_here_gets_nothing(server):
    assert server.ask("/languages", Host="evil.example")[0] == 421
    assert server.ask("/languages", Host=f"localhost:{server.port}")[0] == 200


def test_a_page_elsewhere_may_not_ask_and_an_extension_may(server):
    fields = {"q": "tu", "source": "en", "target": "de"}
    for origin in ("https://evil.example", "http://localhost:1", "null"):
        assert server.ask("/translate", fields, Origin=origin)[0] == 403
    for origin in (server.url, "moz-extension://a1b2"):
        assert server.ask("/translate", fields, Origin=origin)[0] == 200


def test_a_proxy_may_pass_its_name_on(word_model):
    with serving(word_model, "hosts=[translate.example.org]") as server:
        assert server.ask("/languages", Host="translate.example.org")[0] == 200
        assert server.ask("/languages", Host="other.example.org")[0] == 421


def test_texts_are_not_logged(server):
    server.translated("mi nu pe")
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(f"{server.url}/nowhere?q=mi+nu+pe")
    assert "mi" not in "".join(server.log).replace("limits", "").split()
    assert "nu pe" not in "".join(server.log)


def send(server: Server, *parts: bytes) -> socket.socket:
    found = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    for part in parts:
        found.sendall(part)
    return found


def read_to_end(connection: socket.socket) -> bytes:
    """All that comes until the server closes a connection."""
    parts = []
    while part := connection.recv(1000):
        parts.append(part)
    return b"".join(parts)


def test_clients_that_hang_cut_the_line_or_send_garbage_harm_nobody(server, expected):
    promise = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"
    hanging = [send(server), send(server, promise[:30]), send(server, promise)]
    for garbage in (b"\x16\x03\x01\x02", b"GET /\r\n\r\n", bytes(range(256)), promise + b"{[" * 500):
        send(server, garbage).close()
    whole = json.dumps({"q": "\n".join([LINES[0]] * 200), "source": "en", "target": "de"}).encode()
    for _ in range(5):  # they ask for much, and go
        send(
            server, b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(whole), whole)
        ).close()
    assert server.translated(LINES[:4]) == expected[:4]
    for each in hanging:
        each.close()
    _, found = server.ask("/metrics")
    assert 'nmt_waiting_lines{model="' in found
    assert all(line.endswith(" 0.0") for line in found.splitlines() if line.startswith("nmt_waiting_lines{"))


def test_many_clients_get_their_own_answers(server, word_model):
    lines = [
        " ".join(words)
        for words in zip(*[iter(["ka", "lo", "mi", "nu", "pe", "ri", "so", "tu", "va", "we"] * 30)] * 4, strict=False)
    ]
    translator = load_translator(compose("translate", [f"run={word_model}", "engine=ctranslate2"]), lambda words: None)
    wanted = [found[0].text for found in translator.translate(lines)]
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(server.translated, lines)) == wanted


def test_no_text_is_lost_with_a_killed_process(word_model):
    with serving(word_model, "batch_lines=1") as server:
        server.translated("ka")
        before = server.workers()[-1]
        with ThreadPoolExecutor(12) as pool:
            os.kill(before, signal.SIGSTOP)
            found = [pool.submit(server.translate, LINES[0]) for _ in range(12)]
            time.sleep(0.5)  # all of them have arrived
            os.kill(before, signal.SIGKILL)
            assert [each.result()[0] for each in found] == [200] * 12
        assert server.workers()[-1] != before
        assert "nmt_model_deaths_total" in server.ask("/metrics")[1]


def test_sigterm_answers_what_was_accepted(word_model):
    with serving(word_model) as server:
        server.translated("ka")
        worker = server.workers()[-1]
        os.kill(worker, signal.SIGSTOP)
        with ThreadPoolExecutor(4) as pool:
            found = [pool.submit(server.translated, LINES[0]) for _ in range(4)]
            time.sleep(0.3)
            server.process.terminate()
            time.sleep(0.3)
            os.kill(worker, signal.SIGCONT)
            assert len({each.result() for each in found}) == 1
        assert server.process.wait(30) in (0, -signal.SIGTERM)
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)


@pytest.mark.slow
def test_a_model_is_replaced_by_one_with_tags_and_back(word_model, tagged_model, tmp_path):
    """Whatever a client gets, it is by one of both models, whose sources begin with its own tag."""
    expected = {}
    for model, target in ((word_model, None), (tagged_model, "deu")):
        words = [f"run={model}", "engine=ctranslate2", *([f"target={target}"] if target else [])]
        expected[model] = (
            load_translator(compose("translate", words), lambda notice: None).translate(LINES[:1])[0][0].text
        )
    latest = tmp_path / "latest"
    latest.symlink_to(word_model)
    with serving(latest) as server:
        assert server.translated(LINES[0]) == expected[word_model]
        answers, stop = [], threading.Event()

        def ask_on(target: str) -> None:
            while not stop.is_set():
                answers.append((target, *server.translate(LINES[0], target=target)))

        asking = [threading.Thread(target=ask_on, args=(target,)) for target in ("de", "deu") * 4]
        for each in asking:
            each.start()
        try:
            for model in (tagged_model, word_model, tagged_model):
                count = len(server.log)
                (tmp_path / "next").symlink_to(model)
                (tmp_path / "next").replace(latest)
                server.logged("loaded in", after=count)
                time.sleep(0.3)
        finally:
            stop.set()
            for each in asking:
                each.join()
    found = {(target, answer["translatedText"]) for target, status, answer in answers if status == 200}
    assert found == {("de", expected[word_model]), ("deu", expected[tagged_model])}
    assert {status for _, status, _ in answers} <= {200, 400, 503}


def test_a_model_is_replaced_without_losing_a_request(word_model, checkpoint, tmp_path):
    shutil.copytree(word_model, tmp_path / "model")
    with serving(tmp_path / "model") as server:
        first, count = server.translated(LINES[0]), len(server.log)
        answers, stop = [], threading.Event()

        def ask_on() -> None:
            while not stop.is_set():
                answers.append(server.translate(LINES[0]))

        asking = threading.Thread(target=ask_on)
        asking.start()
        try:
            for path in Path(checkpoint).iterdir():
                shutil.copyfile(path, tmp_path / path.name)
                (tmp_path / path.name).replace(tmp_path / "model" / path.name)
            server.logged("loaded in", after=count)
            second = server.translated(LINES[0])
        finally:
            stop.set()
            asking.join()
        assert {status for status, _ in answers} == {200}
        texts = [answer["translatedText"] for _, answer in answers]
        assert texts[0] == first != second
        assert set(texts) <= {first, second}


def test_a_broken_replacement_leaves_the_old_model(word_model, tmp_path):
    shutil.copytree(word_model, tmp_path / "model")
    with serving(tmp_path / "model") as server:
        first, count = server.translated(LINES[0]), len(server.log)
        (tmp_path / "model" / "config.json").write_text("{")
        server.logged("not replaced by what lies there now", after=count)
        assert server.translated(LINES[0]) == first


def test_models_are_loaded_when_asked_for_and_unloaded_when_memory_is_short(word_model, checkpoint, tmp_path):
    shutil.copytree(checkpoint, tmp_path / "other")
    config = json.loads((tmp_path / "other" / "config.json").read_text())
    (tmp_path / "other" / "config.json").write_text(json.dumps(config | {"target": "fr"}))
    with serving(word_model, tmp_path / "other", "free_memory=100000") as server:
        assert not any("loaded in" in line for line in server.log)
        first = server.translated(LINES[0])
        count = len(server.log)
        assert server.translate("ka lo", target="fr")[0] == 200
        server.logged(f"{word_model}: unloaded", after=count)
        assert server.translated(LINES[0]) == first


def test_keys_are_asked_for_and_limited(word_model, tmp_path, nmt):
    keys = tmp_path / "keys.txt"
    key = nmt("serve", f"keys={keys}", "new_key=ann").out.strip()
    with serving(word_model, f"keys={keys}", "limits.requests_per_minute=3", "host=0.0.0.0") as server:
        server.url = server.url.replace("0.0.0.0", "127.0.0.1")
        assert server.translate("ka") == (403, {"error": "this server needs an API key"})
        assert server.translate("ka", api_key="wrong") == (403, {"error": "wrong API key"})
        assert server.ask("/metrics")[0] == 403
        assert server.ask("/frontend/settings")[1]["keyRequired"]
        assert server.translate("ka", api_key=key)[0] == 200
        assert LibreTranslateAPI(server.url, key).translate("ka", "en", "de")
        assert server.ask("/metrics", Authorization=f"Bearer {key}")[0] == 200
        status, found = server.translate("ka", api_key=key)
        assert status == 429
        assert "wait" in found["error"]
        assert key not in "".join(server.log)


def test_what_takes_too_long_is_told_and_given_up(word_model):
    with serving(word_model, "limits.seconds=2", "limits.upload_seconds=0.5") as server:
        server.translated("ka")
        os.kill(server.workers()[-1], signal.SIGSTOP)
        begun = time.monotonic()
        status, found = server.translate("ka lo")
        assert (status, "within 2 seconds" in found["error"]) == (504, True)
        assert time.monotonic() - begun < 20
        with send(server, b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n") as slow:
            assert b" 408 " in read_to_end(slow)
        # A second request whose head does not end: the connection is closed, too.
        with send(server, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /health HTTP/1.1\r\nHo") as slow:
            assert read_to_end(slow).count(b" 200 ") == 1
        # The process that did not answer is ended, and a later request gets a new one, however long that takes to load.
        while server.translate("ka")[0] != 200:
            assert time.monotonic() - begun < PATIENCE
        assert len(server.workers()) == 2


def test_what_cannot_be_served_is_told_in_a_line(nmt, word_model, tmp_path):
    nmt("serve", str(tmp_path / "nothing")).refused("no such file or folder")
    nmt("serve", str(tmp_path)).refused("neither a run nor a model directory")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        (tmp_path / "terms.tsv").write_text("ka\tWort\nlo\n")
        for given in (f"{tmp_path}/terms.tsv", f"[{tmp_path}/terms.tsv]"):
            nmt("serve", str(word_model), f"glossary={given}").refused("terms.tsv, line 2: no tab")
        nmt("serve", str(word_model), "precision=int8").refused("precision=int8", "engine=ctranslate2")
        nmt("serve", str(word_model), f"port={taken.getsockname()[1]}").refused("port=", "in use")


def test_torch_serves_the_same(word_model, expected):
    with serving(word_model, "engine=torch") as server:
        assert server.translated(LINES[:4]) == expected[:4]
        body = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nmika'
        for name, value in (("source", "en"), ("target", "de"), ("glossary", '{"mika": "ut"}')):
            body += f'\r\n--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}'
        kind = "multipart/form-data; boundary=b"
        _, found = server.ask("/translate_file", f"{body}\r\n--b--\r\n".encode(), Content_Type=kind)
        with urllib.request.urlopen(found["translatedFileUrl"]) as answer:
            assert "ut" in answer.read().decode()
        # Many at once: a model of torch is watched while its attention is read.
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda n: server.translate(LINES[n % 2], details=n % 3 > 0), range(24)))
        assert [answer["translatedText"] for _, answer in found] == [expected[n % 2] for n in range(24)]
        assert all(
            answer["details"][0]["words"] == expected[n % 2].split() for n, (_, answer) in enumerate(found) if n % 3
        )
