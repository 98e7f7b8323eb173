"""`nmt translate` with documents."""

import gzip
import os
import pty
import select
import subprocess
from pathlib import Path

import pytest

from tests.helpers.preloaded import python
from tests.plugins.documents.test_documents import archive_of

BEGIN = "<!DOCTYPE html>\n<p class='x'>"
END = "</p>\n<pre> va  so </pre>\n"
PAGE = f"{BEGIN}va so <b>tu pe</b> mika.<br>\n<code>nu()</code> nu pe.{END}"


def translate(model: Path, *words: str, content: str = "", code: int = 0) -> str:
    command = [python(), "-m", "nmt", "translate", f"run={model}", "device=cpu", *words]
    done = subprocess.run(command, input=content.encode(), capture_output=True, timeout=300)
    assert done.returncode == code, done.stderr.decode()
    return (done.stderr if code else done.stdout).decode()


@pytest.mark.slow
def test_a_page_keeps_its_tags_with_either_engine(word_model, tmp_path):
    page = tmp_path / "page.html"
    output = tmp_path / "out"
    page.write_bytes(PAGE.encode())
    result = translate(word_model, str(page))
    assert result.startswith(BEGIN)
    assert result.endswith(END)
    for markup in ("<b>", "</b>", "<br>", "<code>nu()</code>"):
        assert result.count(markup) == 1
    assert "va so" not in result.removesuffix(END)
    assert translate(word_model, "format=html", content=PAGE) == result
    translate(word_model, f"input={page}", f"output={output}", "engine=ctranslate2")
    assert output.read_bytes().decode() == result
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["out", "page.html"]


@pytest.mark.slow
def test_an_archive_is_not_written_to_a_terminal(word_model, tmp_path):
    document = tmp_path / "a.docx"
    document.write_bytes(archive_of("<p/>", "word/document.xml"))
    ours, theirs = pty.openpty()
    command = [python(), "-m", "nmt", "translate", f"run={word_model}", f"input={document}"]
    done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, timeout=300)
    written, _, _ = select.select([ours], [], [], 0)
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 2
    assert b"output=FILE.docx" in done.stderr
    assert written == []


TEMPLATE = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=CHARSET"\n'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content", "option", "problem"),
    [
        ("a.html", "<p>va", "format=jsonl", "a.html is a document"),
        ("a.html", "<p>va", "output=o.docx", "output=o.docx"),
        ("a.po", TEMPLATE, "format=auto", "a.po: this is a template"),
    ],
)
def test_an_unsuitable_document_is_an_error_of_one_line(
    word_model, tmp_path, name, content, option, problem
):
    (tmp_path / name).write_text(content)
    error = translate(word_model, f"input={tmp_path / name}", option, code=2)
    assert error.count("\n") == 1
    assert problem in error


@pytest.mark.slow
def test_the_suffix_gz_compresses_a_document(word_model, tmp_path):
    page = tmp_path / "page.html.gz"
    output = tmp_path / "out.html.gz"
    page.write_bytes(gzip.compress(PAGE.encode()))
    translate(word_model, f"input={page}", f"output={output}")
    expected = translate(word_model, "format=html", content=PAGE)
    assert gzip.decompress(output.read_bytes()).decode() == expected
