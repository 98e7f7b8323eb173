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
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from libretranslatepy import LibreTranslateAPI

from nmt.commands import compose
from nmt.plugins import serve
from nmt.translation import load_translator
from tests.plugins.serve.serving import PATIENCE, Server, serving

LINES = ["va so tu pe mika.", "mika nu nu pe.", "", "756 mivari tu so rilova ri.", "  pelowe.  "]
PART = '--b\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
MULTIPART = {"Content_Type": "multipart/form-data; boundary=b"}


@pytest.fixture(scope="module")
def server(word_model: Path) -> Iterator[Server]:
    with serving(word_model, "limits.characters=2000", "limits.file_bytes=20000") as server:
        server.translated("ka")
        yield server


def by_command(model: Path, lines: list[str], *words: str) -> list[str]:
    """What `nmt translate` makes of lines."""
    config = compose("translate", [f"run={model}", "engine=ctranslate2", *words])
    return [row[0].text for row in load_translator(config.translator, lambda notice: None).translate(lines)]


@pytest.fixture(scope="module")
def expected(word_model: Path) -> list[str]:
    return by_command(word_model, LINES)


def upload(server: Server, name: str, content: bytes, **more: str) -> tuple[int, Any]:
    """The status and the answer to a file."""
    fields = {"source": "en", "target": "de", **more}
    body = "".join(PART.format(*field) for field in fields.items()).encode()
    body += f'--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
    return server.ask("/translate_file", body + content + b"\r\n--b--\r\n", **MULTIPART)


def fetch(url: str) -> tuple[Any, str]:
    """The headers and the text at an address."""
    with urllib.request.urlopen(url) as answer:
        return answer.headers, answer.read().decode()


def connect(server: Server, *parts: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    for part in parts:
        connection.sendall(part)
    return connection


@contextmanager
def asking(*work: Callable[[], Any]) -> Iterator[list[Any]]:
    """Repeat requests while the block runs; their results."""
    results, stop = [], threading.Event()

    def repeat(ask: Callable[[], Any]) -> None:
        while not stop.is_set():
            results.append(ask())

    threads = [threading.Thread(target=repeat, args=(ask,)) for ask in work]
    for thread in threads:
        thread.start()
    try:
        yield results
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_translations_are_those_of_nmt_translate(server, expected):
    assert server.translated(LINES) == [*expected[:4], f"  {expected[4]}  "]
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
    form = b"q=va+so+tu+pe+mika.&source=EN&target=de&format="
    assert server.ask("/translate", form)[1] == {"translatedText": expected[0]}
    assert server.ask("/translate?" + form.decode(), b"")[1] == {"translatedText": expected[0]}
    assert server.ask("/translate", b"q=mika+nu+nu+pe.&" + form)[1] == {"translatedText": expected[1::-1]}
    for texts, answer in ((LINES[:1], expected[0]), (LINES[:2], expected[:2])):
        fields = [*(("q", text) for text in texts), ("source", "en"), ("target", "de")]
        body = "".join(PART.format(*field) for field in fields) + "--b--\r\n"
        assert server.ask("/translate", body.encode(), **MULTIPART)[1] == {"translatedText": answer}


def test_source_auto_detects_and_returns_text_in_the_target_language(server):
    _, answer = server.translate(["ka lo", "mi"], source="auto")
    assert [language["language"] for language in answer["detectedLanguage"]] == ["en", "en"]
    for language in ("de", "en"):
        assert server.translate("Das Haus", source=language, target=language) == (200, {"translatedText": "Das Haus"})
    text = "Das Haus steht am Ende der Straße, und niemand wohnt darin."
    for fields in ({}, {"format": "html"}):
        status, answer = server.translate(text, source="auto", **fields)
        assert (status, answer["translatedText"], answer["detectedLanguage"]["language"]) == (200, text, "de")
    _, answer = server.ask("/detect", {"q": ["Hello", "World"]})
    assert [language["language"] for language in answer] == ["en", "de"]


def test_alternatives_differ(server):
    _, answer = server.translate(LINES[0], alternatives=3)
    texts = [answer["translatedText"], *answer["alternatives"]]
    assert len(set(texts)) == len(texts) > 1
    _, answer = server.translate(["ka lo", ""], alternatives=2)
    assert [len(answer[key]) for key in ("translatedText", "alternatives")] == [2, 2]


def test_details_contain_words_alignment_and_confidence(server, expected):
    _, answer = server.translate("\n".join(LINES[:4]), details=True)
    assert [line["line"] for line in answer["details"]] == [0, 1, 3]
    for line, translation in zip(answer["details"], [*expected[:2], expected[3]], strict=True):
        assert (line["words"], line["sourceWords"]) == (translation.split(), line["source"].split())
        assert len(line["confidence"]) == len(line["words"])
        assert all(0 <= confidence <= 1 for confidence in line["confidence"])
        assert all(s < len(line["sourceWords"]) and t < len(line["words"]) for s, t in line["alignment"])


def test_other_words_can_stand_at_a_place(server, expected):
    first, second, *_ = expected[3].split()
    fields = {"q": LINES[3], "source": "en", "target": "de", "before": first, "count": 4}
    _, answer = server.ask("/alternatives", fields)
    rows = answer["alternatives"]
    assert len({row["word"] for row in rows}) == len(rows) > 1
    assert all(row["translation"].split()[:2] == [first, row["word"]] for row in rows)
    assert second in [row["word"] for row in rows]


def test_a_long_text_is_streamed_in_order(server, expected):
    parts = [json.loads(line) for line in server.translate("\n".join(LINES[:4]), stream=True)[1].splitlines()]
    assert [(part["line"], part["translatedText"]) for part in parts] == list(enumerate(expected[:4]))


def test_a_file_is_translated_and_fetched(server, expected):
    status, answer = upload(server, "my notes.txt", "\n".join(LINES[:4]).encode(), source="auto")
    assert status == 200, answer
    assert answer["translatedFileUrl"].startswith(server.url + "/download_file/")
    for _ in range(2):
        headers, text = fetch(answer["translatedFileUrl"])
        assert headers["Content-Disposition"] == 'attachment; filename="my_notes_de.txt"'
        assert text == "\n".join(expected[:4])


@pytest.mark.parametrize(
    ("name", "content", "status", "text"),
    [
        ("a.exe", b"ka", 400, "files of this kind"),
        ("a.xlf", b"<xliff><file source-language='fr'/></xliff>", 400, "file"),
        ("a.txt", b"ka " * 10_000, 413, "more than 20,000 bytes"),
        ("a.txt", b"k" * 2001, 400, "a line (2001) exceeds text limit (2000)"),
        ("a.html", b"<p>" + b"k" * 2001, 400, "a line (2001) exceeds text limit (2000)"),
    ],
)
def test_files_that_cannot_be_translated_are_refused(server, name, content, status, text):
    found, answer = upload(server, name, content)
    assert (found, text in answer["error"]) == (status, True), answer


def test_html_is_translated_with_its_tags(server, expected):
    _, answer = server.translate([f"<p class='x'>{LINES[0]}</p>\n"], format="html")
    assert answer["translatedText"] == [f"<p class='x'>{html.escape(expected[0], quote=False)}</p>\n"]
    _, answer = server.translate("<p>ka <b>lo</b> mi", format="html", alternatives=1, details=True)
    assert re.fullmatch("<p>[^<]*<b>[^<]*</b>[^<]*", answer["translatedText"])
    assert answer["details"][0]["source"] == "ka lo mi"


def test_the_pages_load_nothing_from_elsewhere_and_no_other_file(server):
    for path in ("/", "/page.js", "/page.css"):
        headers, text = fetch(server.url + path)
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "Access-Control-Allow-Origin" not in headers
        assert "//cdn" not in text
    assert "root:" not in fetch(f"{server.url}/?name=/etc/passwd")[1]


def test_the_api_describes_itself_and_its_state(server):
    _, answer = server.ask("/openapi.json")
    routes = {"/translate", "/translate_file", "/detect", "/languages", "/health", "/alternatives"}
    assert routes <= set(answer["paths"])
    schema = answer["paths"]["/translate"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert {"q", "source", "target", "format", "alternatives"} <= set(schema["properties"])
    values = dict(line.rsplit(" ", 1) for line in server.ask("/metrics")[1].splitlines() if not line.startswith("#"))
    assert float(values['nmt_requests_total{path="/translate",status="200"}']) > 0
    [memory] = [float(value) for name, value in values.items() if name.startswith("nmt_model_memory_bytes")]
    assert memory > 10**7


@pytest.mark.parametrize(
    ("fields", "status", "text"),
    [
        ({"target": None}, 400, "Invalid request: missing target parameter"),
        ({"source": "fr"}, 400, "fr is not supported"),
        ({"target": "auto"}, 400, "auto is not supported"),
        ({"source": "de", "target": "en"}, 400, "English (en) is not available as a target language from German (de)"),
        ({"q": ""}, 400, "Invalid request: missing q parameter"),
        ({"q": []}, 400, "Invalid request: missing q parameter"),
        (b"q=ka&source=en&target=zz&format=text", 400, "zz is not supported"),
        (b"q=ka&source=en&target=de&alternatives=x", 400, "Invalid request: alternatives parameter is not a number"),
        ({"q": 5}, 400, "q"),
        ({"q": "\ud800"}, 400, "q"),
        ({"format": "pdf"}, 400, "pdf format is not supported"),
        ({"format": "html", "stream": True}, 400, "format=text"),
        ({"alternatives": 11}, 400, "Invalid request: alternatives parameter must be <= 10"),
        ({"q": "k" * 2001}, 400, "exceeds text limit (2000)"),
        ({"q": [""] * 2000 + ["k"]}, 400, "exceeds text limit (2000)"),
        ({"q": "k" * 100_000}, 413, "20,000 bytes"),
        (["q"], 400, "JSON"),
        (b"q=%ff&source=en&target=de", 400, "form"),
        (b'{"q": ' + b"[" * 9000 + b"]" * 9000 + b"}", 400, ""),
    ],
)
def test_a_wrong_request_is_answered_in_libretranslates_words(server, fields, status, text):
    if isinstance(fields, dict):
        fields = {"q": "ka", "source": "en", "target": "de", **fields}
    found, answer = server.ask("/translate", fields)
    assert (found, list(answer)) == (status, ["error"])
    assert text in answer["error"]
    assert "Traceback" not in "".join(server.log)


@pytest.mark.parametrize(
    ("path", "fields", "status"),
    [
        ("/detect", b"", 400),
        ("/detect", None, 405),
        ("/frontend/settings", None, 200),
        ("/health", None, 200),
        ("/health", b"", 405),
        ("/spec", None, 200),
        ("/nowhere", None, 404),
    ],
)
def test_routes_answer_as_those_of_libretranslate(server, path, fields, status):
    found, answer = server.ask(path, fields)
    assert found == status
    assert status < 400 or list(answer) == ["error"]


@pytest.mark.parametrize(
    "options", [{"format": None, "alternatives": None, "stream": None, "glossary": None}, {"alternatives": -1}]
)
def test_options_that_are_null_are_ignored(server, expected, options):
    assert server.translate(LINES[0], **options) == (200, {"translatedText": expected[0]})


def test_behind_a_prefix_all_addresses_have_it(server):
    body = "".join(PART.format(*field) for field in (("source", "en"), ("target", "de"))).encode()
    body += b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nka\r\n--b--\r\n'
    url = server.ask("/translate_file", body, X_Forwarded_Prefix="/mt/", **MULTIPART)[1]["translatedFileUrl"]
    assert url.startswith(f"{server.url}/mt/download_file/")
    path = url.removeprefix(f"{server.url}/mt")  # which the proxy cuts off
    assert server.ask(path, X_Forwarded_Prefix="/mt")[0] == 200
    for prefix in ("/languages", "//evil.example", "/a b"):
        assert server.ask("/languages", X_Forwarded_Prefix=prefix)[0] == 200
    for name in ("docs.html", "docs.js"):
        content = (Path(serve.__file__).parent / "page" / name).read_text()
        assert 'href="/' not in content
        assert "location.origin" not in content


def test_large_files_leave_short_lines_their_turns(word_model):
    page = ("<p>" + "tu pe mi nusova ka rilova so va mika ritu " * 3 + "</p>\n").encode() * 100
    with serving(word_model) as server, ThreadPoolExecutor(4) as pool:
        server.translated("ka")
        uploads = [pool.submit(upload, server, "a.html", page) for _ in range(4)]
        time.sleep(0.5)
        answered = 0
        while not any(future.done() for future in uploads):
            server.translated("tu pe")
            answered += 1
        assert {future.result()[0] for future in uploads} == {200}
    assert answered > 5


def test_too_many_connections_are_answered_in_json(word_model):
    with serving(word_model, "limits.connections=2") as server:
        server.translated("ka")
        idle = [connect(server) for _ in range(3)]
        time.sleep(0.2)
        assert server.ask("/health") == (503, {"error": "too many connections; try again later"})
        for connection in idle:
            connection.close()


def test_what_clients_send_is_not_logged_however_often_they_send_it(server):
    before = len(server.log)
    for _ in range(50):
        assert server.ask("/translate", b"secret words", **MULTIPART)[0] == 400
    connect(server, b"secret words\r\n\r\n").close()
    server.translated("secret words")
    assert server.ask("/nowhere?q=secret")[0] == 404
    assert "secret" not in "".join(server.log)
    assert len(server.log) - before <= 1


def test_pages_elsewhere_get_nothing_and_extensions_and_named_hosts_do(server, word_model):
    fields = {"q": "tu", "source": "en", "target": "de"}
    assert server.ask("/languages", Host="evil.example")[0] == 421
    assert server.ask("/languages", Host=f"localhost:{server.port}")[0] == 200
    for origin in ("https://evil.example", "http://localhost:1", "null"):
        assert server.ask("/translate", fields, Origin=origin)[0] == 403
    for origin in (server.url, "moz-extension://a1b2"):
        assert server.ask("/translate", fields, Origin=origin)[0] == 200
    with serving(word_model, "hosts=[translate.example.org]") as other:
        assert other.ask("/languages", Host="translate.example.org")[0] == 200
        assert other.ask("/languages", Host="other.example.org")[0] == 421


def test_clients_that_hang_cut_the_line_or_send_garbage_harm_nobody(server, expected):
    promise = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    hanging = [connect(server), connect(server, promise[:30]), connect(server, promise % 1000)]
    for garbage in (b"\x16\x03\x01\x02", b"GET /\r\n\r\n", bytes(range(256)), promise % 1000 + b"{[" * 500):
        connect(server, garbage).close()
    whole = json.dumps({"q": "\n".join([LINES[0]] * 200), "source": "en", "target": "de"}).encode()
    for _ in range(5):  # they ask for much, and go
        connect(server, promise % len(whole), whole).close()
    assert server.translated(LINES[:4]) == expected[:4]
    for connection in hanging:
        connection.close()
    waiting = re.findall(r"nmt_waiting_lines\{.*\} (\S+)", server.ask("/metrics")[1])
    assert waiting == ["0.0"]


def test_many_clients_get_their_own_answers(server, word_model):
    words = ["ka", "lo", "mi", "nu", "pe", "ri", "so", "tu", "va", "we"] * 30
    lines = [" ".join(words[n : n + 4]) for n in range(0, 300, 4)]
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(server.translated, lines)) == by_command(word_model, lines)


def test_no_text_is_lost_with_a_killed_process(word_model):
    with serving(word_model, "batch_lines=1") as server:
        server.translated("ka")
        before = server.workers()[-1]
        with ThreadPoolExecutor(12) as pool:
            os.kill(before, signal.SIGSTOP)
            answers = [pool.submit(server.translate, LINES[0]) for _ in range(12)]
            time.sleep(0.5)  # all of them have arrived
            os.kill(before, signal.SIGKILL)
            assert [answer.result()[0] for answer in answers] == [200] * 12
        assert server.workers()[-1] != before
        assert re.search(r"nmt_model_deaths_total\{.*\} 1.0", server.ask("/metrics")[1])


def test_sigterm_answers_what_was_accepted(word_model):
    with serving(word_model) as server:
        server.translated("ka")
        worker = server.workers()[-1]
        os.kill(worker, signal.SIGSTOP)
        with ThreadPoolExecutor(4) as pool:
            answers = [pool.submit(server.translated, LINES[0]) for _ in range(4)]
            time.sleep(0.3)
            server.process.terminate()
            time.sleep(0.3)
            os.kill(worker, signal.SIGCONT)
            assert len({answer.result() for answer in answers}) == 1
        assert server.process.wait(30) in (0, -signal.SIGTERM)
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)


@pytest.mark.slow
def test_a_model_is_replaced_by_one_with_tags_and_back(word_model, tagged_model, tmp_path):
    """Whatever a client gets, it is by one of both models, whose sources begin with its own tag."""
    plain, tagged = by_command(word_model, LINES[:1]), by_command(tagged_model, LINES[:1], "target=deu")
    latest = tmp_path / "latest"
    latest.symlink_to(word_model)
    with serving(latest) as server:
        assert [server.translated(LINES[0])] == plain
        work = [lambda target=target: (target, *server.translate(LINES[0], target=target)) for target in ("de", "deu")]
        with asking(*work * 4) as answers:
            for model in (tagged_model, word_model, tagged_model):
                count = len(server.log)
                (tmp_path / "next").symlink_to(model)
                (tmp_path / "next").replace(latest)
                server.logged("loaded in", after=count)
                time.sleep(0.3)
    pairs = {(target, answer["translatedText"]) for target, status, answer in answers if status == 200}
    assert pairs == {("de", plain[0]), ("deu", tagged[0])}
    assert {status for _, status, _ in answers} <= {200, 400, 503}


def test_a_model_is_replaced_without_losing_a_request_but_not_by_a_broken_one(word_model, checkpoint, tmp_path):
    shutil.copytree(word_model, tmp_path / "model")
    with serving(tmp_path / "model") as server:
        first, count = server.translated(LINES[0]), len(server.log)
        with asking(lambda: server.translate(LINES[0])) as answers:
            for path in Path(checkpoint).iterdir():
                shutil.copyfile(path, tmp_path / path.name)
                (tmp_path / path.name).replace(tmp_path / "model" / path.name)
            server.logged("loaded in", after=count)
            second = server.translated(LINES[0])
        assert {status for status, _ in answers} == {200}
        texts = [answer["translatedText"] for _, answer in answers]
        assert texts[0] == first != second
        assert set(texts) <= {first, second}
        count = len(server.log)
        (tmp_path / "model" / "config.json").write_text("{")
        server.logged("not replaced by what lies there now", after=count)
        assert server.translated(LINES[0]) == second


def test_models_are_loaded_when_asked_for_and_unloaded_when_memory_is_short(word_model, checkpoint, tmp_path):
    shutil.copytree(checkpoint, tmp_path / "other")
    config = json.loads((tmp_path / "other" / "config.json").read_text())
    (tmp_path / "other" / "config.json").write_text(json.dumps(config | {"target": "fr"}))
    with serving(word_model, tmp_path / "other", "free_memory=100000") as server:
        assert not any("loaded in" in line for line in server.log)
        first, count = server.translated(LINES[0]), len(server.log)
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
        status, answer = server.translate("ka", api_key=key)
        assert (status, "wait" in answer["error"]) == (429, True)
        assert key not in "".join(server.log)


def test_what_takes_too_long_is_given_up(word_model):
    with serving(word_model, "limits.seconds=2", "limits.upload_seconds=0.5") as server:
        deadline = time.monotonic() + PATIENCE
        while server.translate("ka")[0] != 200:  # a model may take longer than that to load
            assert time.monotonic() < deadline
        os.kill(server.workers()[-1], signal.SIGSTOP)
        begun = time.monotonic()
        status, answer = server.translate("ka lo")
        assert (status, "within 2 seconds" in answer["error"]) == (504, True)
        assert time.monotonic() - begun < 20
        promise = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n"
        with connect(server, promise) as slow:
            assert b" 408 " in slow.recv(1000)
        # The process that did not answer is ended, and a later request gets a new one, however long that takes to load.
        while server.translate("ka")[0] != 200:
            assert time.monotonic() - begun < PATIENCE
        assert len(server.workers()) == 2


def test_what_cannot_be_served_is_refused(nmt, word_model, tmp_path):
    nmt("serve", str(tmp_path / "nothing")).refused("no such file or folder")
    nmt("serve", str(tmp_path)).refused("neither a run nor a model directory")
    (tmp_path / "terms.tsv").write_text("ka\tWort\nlo\n")
    for glossary in (f"{tmp_path}/terms.tsv", f"[{tmp_path}/terms.tsv]"):
        nmt("serve", str(word_model), f"glossary={glossary}").refused("terms.tsv, line 2: no tab")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        nmt("serve", str(word_model), f"port={taken.getsockname()[1]}").refused("port=", "in use")


def test_torch_serves_the_same(word_model, expected):
    with serving(word_model, "engine=torch") as server:
        assert server.translated(LINES[:4]) == expected[:4]
        _, answer = upload(server, "a.txt", b"mika", glossary='{"mika": "ut"}')
        assert "ut" in fetch(answer["translatedFileUrl"])[1]
        # Many at once: a model of torch is watched while its attention is read.
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda n: server.translate(LINES[n % 2], details=n % 3 > 0)[1], range(24)))
        assert [answer["translatedText"] for answer in answers] == [expected[n % 2] for n in range(24)]
        assert all(answers[n]["details"][0]["words"] == expected[n % 2].split() for n in range(24) if n % 3)
