"""`nmt serve` and clients that are hostile, broken or too many: sites, keys, sizes and times."""

import json
import resource
import secrets
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import httpx
import pytest
from libretranslatepy import LibreTranslateAPI

from nmt.plugins.serve.keys import faulty_lines, name_of_key
from tests.plugins.serve.serving import LINES, PATIENCE, Server, connect, serving

PROMISE = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"


CHUNKED = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.slow
def test_texts_of_clients_are_not_logged(server):
    before = len(server.log)
    kind = "multipart/form-data; boundary=b"
    for _ in range(50):
        status, _ = server.ask("/translate", b"secret words", Content_Type=kind)
        assert status == 400
    connect(server, b"secret words\r\n\r\n").close()
    server.translated("secret words")
    status, answer = server.ask("/nowhere?q=secret")
    assert (status, list(answer)) == (404, ["error"])
    assert "secret" not in "".join(server.log)
    assert len(server.log) - before <= 1


@pytest.mark.parametrize("origin", ["https://evil.example", "http://localhost:1", "null"])
def test_other_sites_are_refused(server, origin):
    assert server.translate_from(origin)[0] == 403


def test_the_page_and_browser_extensions_are_served(server):
    for origin in (server.url, "moz-extension://a1b2"):
        assert server.translate_from(origin)[0] == 200


def test_unknown_host_names_are_refused(server):
    assert server.ask("/languages", Host="evil.example")[0] == 421
    assert server.ask("/languages", Host=f"localhost:{server.port}")[0] == 200


def test_pages_have_a_security_policy(server):
    assert "default-src 'none'" in httpx.get(server.url).headers["Content-Security-Policy"]


def test_clients_that_hang_disconnect_or_send_garbage_do_no_harm(server, expected):
    hanging = [
        connect(server),
        connect(server, PROMISE[:30]),
        connect(server, PROMISE % 1000),
    ]
    all_garbage = [
        b"\x16\x03\x01\x02",
        b"GET /\r\n\r\n",
        bytes(range(256)),
        PROMISE % 1000 + b"{[" * 500,
    ]
    for garbage in all_garbage:
        connect(server, garbage).close()
    fields = {"q": "\n".join([LINES[0]] * 100), "source": "en", "target": "de"}
    content = json.dumps(fields).encode()
    for _ in range(5):
        connect(server, PROMISE % len(content), content).close()
    assert server.translated(LINES[:4]) == expected[:4]
    for connection in hanging:
        connection.close()


def memory(server: Server) -> int:
    """The resident memory of a server in MiB."""
    statistics = Path(f"/proc/{server.process.pid}/statm").read_text()
    resident_pages = int(statistics.split()[1])
    return resident_pages * resource.getpagesize() // 2**20


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
    endless = more * (2**26 // len(more))
    with (
        connect(server, begin) as connection,
        pytest.raises(OSError, match=r"reset|Broken pipe|aborted"),
    ):
        connection.sendall(endless)
    assert memory(server) < before + 16
    assert server.ask("/health")[0] == 200


@pytest.mark.parametrize(("size", "status"), [(60_000, 200), (70_000, 431)])
def test_large_headers_are_refused_with_a_status(server, size, status):
    assert server.ask("/health", X_Padding="a" * size)[0] == status
    # httpx refuses such a long address.
    request = b"GET /health?q=%s HTTP/1.0\r\nHost: localhost\r\n\r\n" % (b"a" * size)
    with connect(server, request) as connection:
        status_line = connection.makefile("rb").readline()
        assert int(status_line.split()[1]) == status


@pytest.fixture(scope="module")
def key() -> str:
    return secrets.token_hex(32)


@pytest.fixture(scope="module")
def guarded(
    word_model: Path, tmp_path_factory: pytest.TempPathFactory, key: str
) -> Iterator[Server]:
    """A public server with a key and low limits."""
    keys = tmp_path_factory.mktemp("keys") / "keys.txt"
    keys.write_text(f"ann {sha256(key.encode()).hexdigest()}\n")
    limits = ["limits.seconds=3", "limits.requests_per_minute=5", "limits.connections=20"]
    with serving(word_model, f"keys={keys}", "host=0.0.0.0", *limits) as server:
        server.logged("loaded with")
        yield server


def test_a_file_without_keys_is_refused(word_model, tmp_path, nmt):
    keys = tmp_path / "keys.txt"
    keys.touch()
    nmt("serve", str(word_model), f"keys={keys}").refused("no key")


def test_a_port_in_use_is_refused(guarded, word_model, nmt):
    nmt("serve", str(word_model), f"port={guarded.port}").refused("port=", "in use")


# One test, because requests without a valid key count for the rate of their address, too.
def test_keys_are_required_and_limits_hold(guarded, key):
    assert guarded.translate("ka") == (403, {"error": "this server requires an API key"})
    for wrong in ("wrong", sha256(key.encode()).hexdigest()):
        assert guarded.translate("ka", api_key=wrong) == (403, {"error": "invalid API key"})
    assert guarded.ask("/frontend/settings")[1]["keyRequired"]
    form = b"q=ka&source=en&target=de"
    assert guarded.ask("/translate", form, Authorization=f"Bearer {key}")[0] == 200
    assert LibreTranslateAPI(guarded.url, key).translate("ka", "en", "de")
    for _ in range(8):
        status, answer = guarded.translate("ka", api_key=key)
    assert status == 429
    assert "too many requests" in answer["error"]
    assert key not in "".join(guarded.log)


@pytest.mark.slow
def test_slow_requests_are_ended(guarded):
    with connect(guarded, PROMISE % 10) as slow:
        assert b" 504 " in slow.recv(1000)
    with connect(guarded, PROMISE[:20]) as slow, connect(guarded) as silent:
        assert b" 408 " in slow.recv(1000)
        assert silent.recv(1000) == b""


def test_connections_above_the_limit_are_refused(guarded):
    idle = [connect(guarded) for _ in range(21)]
    time.sleep(0.2)
    assert guarded.ask("/health")[0] == 503
    for connection in idle:
        connection.close()


@pytest.mark.slow
def test_a_page_of_an_allowed_site_may_send_json_and_a_key(word_model):
    """A browser asks first, and sends the request only if the answer allows it."""
    origin = "https://example.org"
    with serving(word_model, f"cors=[{origin}]") as server:
        headers = {
            "Origin": origin,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,content-type",
        }
        answer = httpx.options(f"{server.url}/translate", headers=headers, timeout=PATIENCE)
        assert answer.status_code == 200
        assert answer.headers["Access-Control-Allow-Origin"] == origin
        assert "POST" in answer.headers["Access-Control-Allow-Methods"]
        assert server.translate_from(origin)[0] == 200
        assert server.translate_from("https://example.com")[0] == 403


@pytest.mark.parametrize(
    "word",
    [
        "cors=[example.org]",
        "cors=[https://example.org/]",
        "cors=['*']",
        "hosts=[https://example.org]",
        "hosts=[example.org:443]",
    ],
)
def test_sites_that_no_request_could_match_are_refused(word, word_model, nmt):
    nmt("serve", str(word_model), word).refused(word.partition("=")[0], "must be")


def test_lines_that_are_no_keys_are_reported(tmp_path):
    path = tmp_path / "keys.txt"
    digest = sha256(b"key").hexdigest().upper()
    path.write_text(f"# people\n\nann {digest}\nbob 123\n{digest}\n")
    assert faulty_lines(path) == [4, 5]
    assert name_of_key(path, "key") == "ann"
