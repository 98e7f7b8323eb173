"""How clients send requests to `nmt serve`: JSON, forms and addresses, and their encodings."""

import json
from typing import Any
from urllib.parse import quote_plus

import httpx
import pytest

from tests.plugins.serve.serving import LINES, PATIENCE, connect

WORDS = "für 設定 a+b & c=d\N{ZERO WIDTH NON-JOINER}x \U0001f600"


def test_fields_in_forms_and_addresses(server, expected):
    form = b"q=va+so+tu+pe+mika.&source=EN&target=de&format="
    assert server.ask("/translate", form)[1] == {"translatedText": expected[0]}
    assert server.ask("/translate?" + form.decode(), b"")[1] == {"translatedText": expected[0]}
    parts: Any = {"q": (None, LINES[0]), "source": (None, "en"), "target": (None, "de")}
    answer = httpx.post(f"{server.url}/translate", files=parts, timeout=PATIENCE)
    assert answer.json() == {"translatedText": expected[0]}
    assert server.ask("/translate", b"q=ka&" + form)[1]["translatedText"][1:] == [expected[0]]


def test_batches_as_nemo_curator_sends_them(server, expected):
    fields = {"texts": LINES, "src_lang": "en", "tgt_lang": "de"}
    translations = [*expected[:4], f"  {expected[4]}  "]
    assert server.ask("/translate", fields) == (200, {"translations": translations})
    # FLORES and ISO 639-3 codes, and BCP 47 in lower case, as Nemotron writes it.
    for source, target in (("eng_Latn", "deu_Latn"), ("eng", "de-de"), ("en-us", "DE")):
        answer = server.ask("/translate", fields | {"src_lang": source, "tgt_lang": target})
        assert answer == (200, {"translations": translations})
    assert server.ask("/translate", fields | {"texts": []}) == (200, {"translations": []})
    # A client may send a field that it does not use.
    assert server.ask("/translate", fields | {"q": None}) == (200, {"translations": translations})
    detected = {"texts": ["ka lo", "mi"], "src_lang": "auto", "alternatives": 1}
    _, answer = server.ask("/translate", fields | detected)
    assert set(answer) == {"translations", "alternatives", "detectedLanguage"}
    assert {len(values) for values in answer.values()} == {2}
    # Without JSON, a list of one text is a text; the answer is a list all the same.
    form = b"texts=va+so+tu+pe+mika.&src_lang=en&tgt_lang=de"
    assert server.ask("/translate", form)[1] == {"translations": [expected[0]]}
    assert server.ask("/translate", b"texts=&" + form)[1] == {"translations": ["", expected[0]]}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"texts": None}, "Invalid request: missing q parameter"),
        ({"src_lang": None}, "Invalid request: missing src_lang parameter"),
        ({"tgt_lang": None, "target": "de"}, "Invalid request: missing tgt_lang parameter"),
        ({"texts": [1]}, "texts: must be a text or a list of texts"),
        ({"texts": 5}, "texts: must be a text or a list of texts"),
        ({"q": "ka"}, "q, texts: send one of them"),
        ({"tgt_lang": "zz"}, "zz is not supported"),
        ({"src_lang": "de", "tgt_lang": "en"}, "not available as a target language from German"),
        ({"texts": ["k" * 1000, "k" * 1001]}, "request (2001) exceeds text limit (2000)"),
    ],
    ids=str,
)
def test_invalid_batches_are_refused(server, changes, problem):
    fields = {"texts": ["ka"], "src_lang": "en", "tgt_lang": "de"}
    status, answer = server.ask("/translate", fields | changes)
    assert status == 400
    assert problem in answer["error"]


@pytest.mark.parametrize("options", [{"format": None, "alternatives": None}, {"alternatives": -1}])
def test_optional_fields_may_be_empty(server, expected, options):
    assert server.translate(LINES[0], **options) == (200, {"translatedText": expected[0]})


@pytest.mark.parametrize("raw", [True, False], ids=["raw bytes", "percent-encoded"])
def test_forms_and_addresses_are_utf_8(server, raw):
    """As `curl -d q=TEXT` sends text (raw) and `curl --data-urlencode` (encoded)."""
    q = encoded(WORDS, raw)
    fields = b"q=" + q + b"&source=de&target=de"
    assert server.ask("/translate", fields)[1] == {"translatedText": WORDS}

    fields = b"q=" + q + b"&q=%C3%A9&source=de&target=de"
    translated = {"translatedText": [WORDS, "é"]}
    kind = "application/x-www-form-urlencoded; charset=utf-8"
    assert server.ask("/translate", fields, Content_Type=kind)[1] == translated

    # In small pieces, which cut characters.
    request = b"POST /translate?%s HTTP/1.0\r\n" % fields
    request += b"Host: localhost\r\nContent-Length: 0\r\n\r\n"
    pieces = [request[at : at + 10] for at in range(0, len(request), 10)]
    with connect(server, *pieces) as connection:
        answer = connection.makefile("rb").read()
    _, _, content = answer.partition(b"\r\n\r\n")
    assert json.loads(content) == translated


def encoded(text: str, raw: bool) -> bytes:
    """A percent-encoded text; if `raw`, only its ASCII characters are encoded."""
    characters = ""
    for character in text:
        keep = raw and not character.isascii()
        characters += character if keep else quote_plus(character)
    return characters.encode()


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
    body = b"q=f%FCr&source=de&target=de"
    kind = "application/x-www-form-urlencoded; charset=ISO-8859-1"
    assert server.ask("/translate", body, Content_Type=kind)[1] == {"translatedText": "für"}
