"""`nmt translate` with documents, by the command line and a model that knows some words."""

import subprocess
from pathlib import Path

import pytest
from preloaded import python

PAGE = "<!DOCTYPE html>\n<p class='x'>va so <b>tu pe</b> mika.<br>\n<code>nu()</code> nu pe.</p>\n<pre> va  so </pre>\n"
SUBTITLES = "1\r\n00:00:01,000 --> 00:00:02,000\r\n<i>va so</i>\r\ntu pe.\r\n"
CATALOG = 'msgid "va so tu"\nmsgstr ""\n\nmsgid "mika"\nmsgstr "done"\n'


def translate(model: Path, *words: str, content: str = "", code: int = 0) -> str:
    command = [python(), "-m", "nmt", "translate", f"run={model}", "device=cpu", *words]
    done = subprocess.run(command, input=content.encode(), capture_output=True, timeout=300)
    assert done.returncode == code, done.stderr.decode()
    return (done.stderr if code else done.stdout).decode()


def test_a_page_comes_out_with_its_tags_by_either_engine_and_from_anywhere(word_model, tmp_path):
    page, output = tmp_path / "page.html", tmp_path / "out"
    page.write_bytes(PAGE.encode())
    found = translate(word_model, str(page))
    assert found.startswith("<!DOCTYPE html>\n<p class='x'>")
    assert found.endswith("</p>\n<pre> va  so </pre>\n")
    for part in ("<b>", "</b>", "<br>", "<code>nu()</code>"):
        assert found.count(part) == 1
    assert found.index("<b>") < found.index("</b>")
    assert "va so" not in found.removesuffix("<pre> va  so </pre>\n")
    assert translate(word_model, "format=html", content=PAGE) == found
    translate(word_model, f"input={page}", f"output={output}", "engine=ctranslate2")
    assert output.read_bytes().decode() == found
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["out", "page.html"]


def test_subtitles_and_catalogs(word_model, tmp_path):
    for name, content in (("a.srt", SUBTITLES), ("b.po", CATALOG)):
        (tmp_path / name).write_bytes(content.encode())
    found = translate(word_model, str(tmp_path / "a.srt"))  # the model turns everything round
    assert found == "1\r\n00:00:01,000 --> 00:00:02,000\r\nep ut\r\n<i>os av</i>.\r\n"
    found = translate(word_model, str(tmp_path / "b.po"))
    assert found.startswith('#, fuzzy\nmsgid "va so tu"\nmsgstr "')
    assert found.endswith('\n\nmsgid "mika"\nmsgstr "done"\n')


@pytest.mark.parametrize(
    ("name", "words", "told"),
    [
        ("a.html", ["format=jsonl"], "a.html is a document"),
        ("a.txt", ["format=docx"], "not a DOCX file, or damaged or encrypted (File is not a zip file)"),
        ("a.html", ["output=o.docx"], "output=o.docx: must have the suffix of the source"),
        ("a.po", [], "a.po: a template: first make a catalog with `msginit -l de`"),
    ],
)
def test_what_a_document_cannot_be_is_told_in_a_line(word_model, tmp_path, name, words, told):
    (tmp_path / "a.html").write_bytes(b"<p>va")
    (tmp_path / "a.txt").write_bytes(b"va")
    (tmp_path / "a.po").write_bytes(b'msgid ""\nmsgstr "Content-Type: text/plain; charset=CHARSET"\n')
    said = translate(word_model, f"input={tmp_path / name}", *words, code=2)
    assert said.removeprefix("nmt: engine=ctranslate2\n").count("\n") == 1
    assert told in said
