"""`nmt translate` with documents."""

import gzip
import pty
import select
import subprocess
from pathlib import Path

from preloaded import python
from test_documents import archive_of

PAGE = "<!DOCTYPE html>\n<p class='x'>va so <b>tu pe</b> mika.<br>\n<code>nu()</code> nu pe.</p>\n<pre> va  so </pre>\n"


def translate(model: Path, *words: str, content: str = "", code: int = 0) -> str:
    command = [python(), "-m", "nmt", "translate", f"run={model}", "device=cpu", *words]
    done = subprocess.run(command, input=content.encode(), capture_output=True, timeout=300)
    assert done.returncode == code, done.stderr.decode()
    return (done.stderr if code else done.stdout).decode()


def test_a_page_keeps_its_tags_with_either_engine(word_model, tmp_path):
    page, output = tmp_path / "page.html", tmp_path / "out"
    page.write_bytes(PAGE.encode())
    result = translate(word_model, str(page))
    assert result.startswith("<!DOCTYPE html>\n<p class='x'>")
    assert result.endswith("</p>\n<pre> va  so </pre>\n")
    assert [result.count(part) for part in ("<b>", "</b>", "<br>", "<code>nu()</code>")] == [
        1,
        1,
        1,
        1,
    ]
    assert "va so" not in result.removesuffix("<pre> va  so </pre>\n")
    assert translate(word_model, "format=html", content=PAGE) == result
    translate(word_model, f"input={page}", f"output={output}", "engine=ctranslate2")
    assert output.read_bytes().decode() == result
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["out", "page.html"]


def test_a_file_that_is_not_text_is_not_written_to_a_terminal(word_model, tmp_path):
    (tmp_path / "a.docx").write_bytes(archive_of("<p/>", "word/document.xml"))
    ours, theirs = pty.openpty()
    command = [
        python(),
        "-m",
        "nmt",
        "translate",
        f"run={word_model}",
        f"input={tmp_path / 'a.docx'}",
    ]
    done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, timeout=300)
    assert (
        done.returncode,
        b"output=FILE.docx" in done.stderr,
        select.select([ours], [], [], 0)[0],
    ) == (2, True, [])


def test_unsuitable_documents_are_refused_in_one_line(word_model, tmp_path):
    (tmp_path / "a.html").write_bytes(b"<p>va")
    (tmp_path / "a.po").write_bytes(
        b'msgid ""\nmsgstr "Content-Type: text/plain; charset=CHARSET"\n'
    )
    for name, option, problem in (
        ("a.html", "format=jsonl", "a.html is a document"),
        ("a.html", "output=o.docx", "output=o.docx"),
        ("a.po", "format=auto", "a.po: this is a template"),
    ):
        error = translate(word_model, f"input={tmp_path / name}", option, code=2)
        assert error.count("\n") == 1
        assert problem in error


def test_a_document_is_compressed_as_its_name_says(word_model, tmp_path):
    (tmp_path / "page.html.gz").write_bytes(gzip.compress(PAGE.encode()))
    translate(
        word_model, f"input={tmp_path / 'page.html.gz'}", f"output={tmp_path / 'out.html.gz'}"
    )
    expected = translate(word_model, "format=html", content=PAGE)
    assert gzip.decompress((tmp_path / "out.html.gz").read_bytes()).decode() == expected
