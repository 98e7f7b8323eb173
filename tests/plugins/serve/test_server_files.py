"""Files that clients of `nmt serve` upload and download."""

import re
import shutil
import subprocess
import unicodedata
from email.message import Message

import httpx
import pytest

from tests.plugins.serve.serving import LINES, upload


def test_a_file_is_translated_and_downloaded(server, expected):
    status, answer = upload(server, "../my notes.txt", "\n".join(LINES[:4]).encode(), source="auto")
    assert status == 200, answer
    assert answer["translatedFileUrl"].startswith(server.url + "/download_file/")
    for _ in range(2):
        file = httpx.get(answer["translatedFileUrl"])
        assert file.headers["Content-Disposition"] == 'attachment; filename="my notes_de.txt"'
        assert file.text == "\n".join(expected[:4])


def test_downloads_behind_a_proxy_have_its_prefix(server):
    _, answer = upload(server, "a.txt", b"ka", prefix="/mt/")
    url = answer["translatedFileUrl"]
    assert url.startswith(f"{server.url}/mt/download_file/")
    path = url.removeprefix(f"{server.url}/mt")  # the proxy removes the prefix
    assert server.ask(path, X_Forwarded_Prefix="/mt")[0] == 200


@pytest.mark.parametrize("prefix", ["/languages", "//evil.example", "/a b"])
def test_unusual_prefixes_do_no_harm(server, prefix):
    assert server.ask("/languages", X_Forwarded_Prefix=prefix)[0] == 200


@pytest.mark.parametrize(
    ("name", "content", "advice"),
    [
        ("a.txt", b'{"a": "ka lo"}', "its content is JSON, .* the suffix of json"),
        ("a.txt", b"<!DOCTYPE html><p>ka lo</p>", "its content is HTML"),
        ("a", b'{"a": "ka lo"}', "a: its content is JSON"),
        ("a.tr", b"let a = 1;\nlet b = 2;\n", "a.tr: its content is source code"),
        ("a.pdf", b"{}", "a.pdf: unsupported file type; run `pdftotext"),
        ("../\u8a2d\u5b9a.xyz", b"ka lo", "^\u8a2d\u5b9a.xyz: unsupported file type; supported: "),
        ("a.txt.gz", b"\x1f\x8b", "a.txt.gz: unsupported file type; unpack it"),
        ("a", b"\x7fELF\0\0\0\0\xff\0", "a: "),
    ],
)
def test_files_in_unsupported_formats_are_refused_with_advice(server, name, content, advice):
    status, answer = upload(server, name, content)
    assert status == 400
    assert re.search(advice, answer["error"])


def test_a_client_may_name_the_format_of_a_file(server):
    content = b'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "ka lo"\nmsgstr ""\n'
    status, answer = upload(server, "messages.bin", content, format="po")
    assert status == 200, answer
    translated = httpx.get(answer["translatedFileUrl"]).text
    assert '#, fuzzy\nmsgid "ka lo"' in translated
    status, answer = upload(server, "messages.bin", content, format="shorthand")
    assert status == 400
    assert answer["error"].startswith("messages.bin: unknown format; supported: ")


def test_untranslated_parts_of_a_file_are_in_the_answer(server):
    plain = upload(server, "a.md", b"ka lo\n")[1]
    assert plain.keys() == {"translatedFileUrl"}
    answer = upload(server, "a.md", b"---\nteaser: ka lo\n---\n\nka lo\n")[1]
    assert "teaser" in answer["notice"]


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        ("設定.txt", "設定_de.txt"),
        ("फ़ाइल (1).TXT", "फ़ाइल (1)_de.txt"),
        ("原稿 その1.txt", "原稿 その1_de.txt"),
        ("原稿", "原稿_de"),
        ("Notes of Mr. Smith", "Notes of Mr. Smith_de"),
        ("test.en", "test.de"),
        ("app.ts", "app_de.ts"),
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
def test_curl_gets_a_name_in_ascii(server, sent, name, tmp_path):
    url = upload(server, sent, b"ka")[1]["translatedFileUrl"]
    subprocess.run(["curl", "-sOJ", url], cwd=tmp_path, check=True)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("name", "content", "status", "problem"),
    [
        ("a.exe", b"ka", 400, "unsupported file type"),
        ("a.txt", b"ka " * 10_000, 413, "more than 20,000 bytes"),
        ("a.html", b"<p>" + b"k" * 2001, 400, "a line (2001) exceeds text limit (2000)"),
    ],
    ids=["format", "size", "line"],
)
def test_unsuitable_files_are_refused(server, name, content, status, problem):
    code, answer = upload(server, name, content)
    assert code == status
    assert problem in answer["error"]
