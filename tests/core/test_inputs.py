"""Which files are translated line by line, by their names and contents."""

import codecs
import gzip
import json
import subprocess
from pathlib import Path

import pytest

from nmt.config import NMTError
from nmt.translation import check_lines, format_of_file, kind_of_content
from tests.helpers.options import translate_config
from tests.helpers.preloaded import python

LINES = b"The house is old.\nA dog runs across the grass.\n"
XML = b'<?xml version="1.0" encoding="utf-8"?>\n<a>Hello</a>\n'
CODE = b"""import { x } from "./x";

export class House {
  // Opens the door.
  open(): void {
    this.door = true;
  }
}
"""


def check(folder: Path, name: str, content: bytes, run: str = "no such model", **keys) -> str:
    """The error for a file, or an empty string."""
    path = folder / name
    path.write_bytes(content)
    problem = ""
    try:
        check_lines(translate_config(run, input=str(path), **keys))
    except NMTError as error:
        problem = str(error).removeprefix(f"{path}: ")
    assert "\n" not in problem
    return problem


@pytest.mark.parametrize(
    "name",
    [
        "input",
        "input.txt",
        "INPUT.TXT",
        "input.en",
        "test.de",
        "newstest2014.zh_CN",
        "x.pt-BR",
        "x.eng_Latn",
        "x.kbp_Latn",
        "x.sr-Latn-RS",
        "x.es-419",
        "x.deu",
        "x.EN",
        "corpus.en-de",
        "x.english",
        "x.src",
        "x.ref",
        "x.hyp",
        "x.sys",
        "x.mt",
        "x.bpe",
        "x.tok",
        "x.raw",
        "x.out",
        "x.lines",
        "x.sent",
        "x.utf8",
        "x.100k",
        "part.003",
        "wmt.en.1",
        "x.ts",
        "x.pl",
        "x.cs",
        "x.sv",
        ".hidden",
        "Letter to Mr. Smith",
        "x.en.txt",
        "v1.2",
    ],
)
def test_lines_of_text_are_accepted(tmp_path, name):
    compressed = gzip.compress(LINES)
    assert check(tmp_path, name, LINES) == ""
    assert check(tmp_path, f"{name}.gz", compressed) == ""


KNOWN = (
    "toml php org svg doc xls docm tsv csv jsonl yaml yml ini tex rtf vue jsx tsx c java "
    "go rs rb py pdf odg ppt bin fodt jsonc json5 jsonld man pod sgm"
)
UNKNOWN = "dat foo log"


@pytest.mark.plugins
@pytest.mark.parametrize("suffix", [*KNOWN.split(), *UNKNOWN.split()])
def test_other_suffixes_are_refused_with_advice(checkpoint, tmp_path, suffix):
    for name in (f"file.{suffix}", f"file.en.{suffix.upper()}", f"file.{suffix}.gz"):
        content = gzip.compress(LINES) if name.endswith(".gz") else LINES
        error = check(tmp_path, name, content, run=str(checkpoint))
        assert error.startswith(
            f"nmt cannot read .{name.removesuffix('.gz').rsplit('.', 1)[1]} files; "
        )
        assert "lines of text" in error
        assert "markdown" in error
        assert "plugin" in error
        # Only where nothing is known about the format may its lines be sentences.
        assert ("format=text" in error) == (suffix in UNKNOWN.split())
    for format in ("text", "tsv", "jsonl"):
        assert check(tmp_path, f"file.{suffix}", LINES, format=format) == ""


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (XML, "XML"),
        (b"\xef\xbb\xbf\n" + XML, "XML"),
        (XML.decode().encode("utf-16"), "XML"),
        (
            b"<!DOCTYPE topic PUBLIC '-//OASIS//DTD DITA Topic//EN' 'topic.dtd'>\n<topic id='a'>",
            "DITA",
        ),
        (b'<usx version="3.0">\n<book code="GEN">', "USX"),
        (b"<?xml version='1.0'?>\n<book xmlns='http://docbook.org/ns/docbook'>", "DocBook"),
        (b'<!DOCTYPE book PUBLIC "-//OASIS//DTD DocBook XML V4.5//EN" "a">', "DocBook"),
        (b'<tmx version="1.4">\n<body>\n<tu>', "TMX"),
        (b"<!-- a -->\n<root>\n", "XML"),
        (b'<div class="a">\n<p>Hello</p>', "XML"),
        (b"en:\n  hello: Hello\n", "a locale of Rails"),
        (b"en:\r\n  hello: Hello\r\n", "a locale of Rails"),
        (b"---\r\ntitle: a\r\n---\r\n\r\nHello\r\n", "Markdown with front matter"),
        (b"---\ntitle: a\n---\n\nHello\n", "Markdown with front matter"),
        (b'{\n "cells": [\n  {\n   "cell_type": "code"}]}', "a Jupyter notebook"),
        (b'#: a.c:1\nmsgid "Hello"\nmsgstr ""\n', "a PO catalog"),
        (b"0\n00:00:01.000-->00:00:02.000\nHello\n", "subtitles"),
        (b"0:00:01.000,0:00:02.000\nHello\n", "subtitles"),
        (b"{10}{50}Hello\n", "subtitles"),
        (b'"a" = "Hello";\n', "a table of strings"),
        (b"\\section{One}\nHello\n", "LaTeX"),
        (b'["Hello", "you"]\n', "JSON"),
        (b"<resources>\n  <string name='a'>Hello</string>\n", "Android strings"),
        (b"<!-- a -->\n<resources><color name='a'>red</color><plurals", "Android strings"),
        (b"<resources><item type='string' name='a'>Hello</item>", "Android strings"),
        # Entities: the reader says what is wrong.
        (
            b"<!DOCTYPE resources [<!ENTITY a 'b'>]>\n<resources><string name='a'>",
            "Android strings",
        ),
        # Other resources, which have no text.
        (b"<resources><color name='a'>#fff</color></resources>", "XML"),
        (b"<resources>\n<attr name='fill' format='color'/>", "XML"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'><text>Hello</text></svg>", "XML"),
        (b"<!doctype HTML><p>Hello", "HTML"),
        (b"<?xml version='1.0'?>\n<!-- a -->\n<xliff version='1.2'>", "XLIFF"),
        (json.dumps({"a": "Hello"}).encode(), "JSON"),
        (json.dumps({"a": "Hello"}, indent=2).encode(), "JSON"),
        (json.dumps([{"a": "Hello"}]).encode(), "JSON"),
        (json.dumps(["Hello", "World"], indent=1).encode(), "JSON"),
        (b'{"a": "Hello"}\n{"a": "World"}\n', "JSON Lines"),
        (b'{"@@locale": "en",\n "b": ', "Flutter's messages"),
        (b'{\n  "sourceLanguage" : "en",\n  "strings" : {', "a String Catalog"),
        (b"<?xml version='1.0'?>\n<!DOCTYPE plist PUBLIC '' ''>\n<plist>", "a property list"),
        (b'# a\nmsgid ""\nmsgstr ""\n"Language: de\\n"\n', "a PO catalog"),
        (b"1\r\n00:00:01,000 --> 00:00:02,000\r\nHello\r\n", "subtitles"),
        (b"WEBVTT\n\n00:01.000 --> 00:02.000\nHello\n", "WebVTT"),
        (b"[Script Info]\nTitle: a\n", "subtitles"),
        (b"[section]\nname = Hello\n", "a configuration file"),
        (b"\\id GEN English\n\\c 1\n\\v 1 In the beginning\n", "USFM"),
        (b"% a\n\\documentclass{article}\n", "LaTeX"),
        (b'.\\" a\n.TH LS 1\n', "a manual page"),
        (b"---\ntitle: Hello\n---\n", "YAML"),
        (b"#!/bin/sh\necho Hello\n", "a program"),
        (b"<?php echo 'Hello'; ?>", "PHP"),
        (b"<?php\n$config['url'] = 'a';\n", "PHP"),
        (b"<?php\nclass A {\nfunction b() {\nreturn [\n'a'];}}\n", "PHP"),
        (b"<?php $string['a'] = 'Hello';", "an array of PHP"),
        (b"<?php declare(strict_types=1); return ['a' => 'Hello'];", "an array of PHP"),
        (
            b"<?php\n// a\n/** b */\ndefined('MOODLE_INTERNAL') || die();\n\n$string['a'] = 'b';",
            "an array of PHP",
        ),
        (b"<?php\nif (!defined('A')) { exit('b'); }\n$lang = array(\n", "an array of PHP"),
    ],
)
def test_other_formats_are_refused_by_their_content(tmp_path, content, kind):
    for name in ("input", "input.txt", "input.en", "input.ts"):
        error = check(tmp_path, name, content)
        assert error.startswith(
            f"its content is {kind}, which line-by-line translation would damage; "
        )
        assert "format=text" not in error
        assert check(tmp_path, name, content, format="text") == ""


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n",
        b"<2de> Hello\n",
        b"<b>Hello</b>\n",
        b"{name}, hello!\n",
        b"[1] A note.\n",
        b"# 1\n",
        b'"Hello", he said.\n',
        b"{}\n",
        b"---\n",
        b"- Hello\n",
        b"1\n2\n3\n",
        b"<s> a </s>\n",
        b"[Music]\n",
        b"{x: 1}\n",
        b"\\n is a line break\n",
        b"<url>http://a.org</url>\n",
        b"%s of %s\n",
    ],
)
def test_text_with_markup_and_symbols_is_accepted(tmp_path, content):
    assert check(tmp_path, "input.en", content + LINES) == ""


def test_unknown_suffixes_get_the_advice_for_the_content(tmp_path):
    assert "tikal" in check(tmp_path, "input.foo", XML)
    assert "source code" in check(tmp_path, "input.foo", CODE)
    for content in (XML, CODE):
        assert "format=text" not in check(tmp_path, "input.foo", content)


def test_suffixes_of_languages_and_of_code(tmp_path):
    for name in ("x.ts", "x.cs", "x.ts.gz"):
        content = gzip.compress(CODE) if name.endswith(".gz") else CODE
        assert "source code" in check(tmp_path, name, content)
    assert (
        check(tmp_path, "x.ts", b"Yindlu leyi i ya khale.\nMbyana yi tsutsuma ebyanyini.\n") == ""
    )
    assert check(tmp_path, "x.en", CODE) == ""  # a corpus of code


QT = b"<?xml version='1.0'?>\n<!DOCTYPE TS>\n<TS version='2.1'>\n"


@pytest.mark.plugins
def test_the_content_of_a_ts_file_decides_its_format(tmp_path):
    for name, content, format in (
        ("x.ts", QT, "qt"),
        ("x.ts", codecs.BOM_UTF8 + QT, "qt"),
        ("x.ts", b"Yindlu leyi i ya khale.\n", "text"),
        ("x.ts", CODE, "text"),
        ("x.txt", QT, "text"),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        assert (format_of_file(str(path)) or "text") == format
    assert format_of_file(str(tmp_path / "y.ts")) == ""
    for name in ("x", "x.txt", "x.de"):
        assert "a Qt catalog" in check(tmp_path, name, QT)


def test_advice_names_the_format(tmp_path):
    assert "pass format=json;" in check(tmp_path, "input", b'{"a": "Hello"}')
    assert "no such model" in check(tmp_path, "input.foo", LINES)
    assert "pass format=markdown;" in check(tmp_path, "input.mdwn", LINES)
    assert "pass format=qt;" in check(tmp_path, "input", b"<!DOCTYPE TS>\n<TS>\n")
    assert "soffice --convert-to docx" in check(tmp_path, "input.doc", LINES)
    assert "such as format=docx;" in check(tmp_path, "input", b"PK\3\4 and so on")
    assert "Office document" in check(tmp_path, "input", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")


def test_the_languages_of_the_model_are_accepted_as_suffixes(checkpoint, tmp_path):
    path = tmp_path / "lines.xx"
    path.write_bytes(LINES)
    with pytest.raises(NMTError, match=r"cannot read \.xx files"):
        check_lines(translate_config(str(checkpoint), input=str(path)))
    about = Path(checkpoint) / "config.json"
    if about.exists():
        changed = about.read_text().replace('"source": "en"', '"source": "xx"')
        copy = tmp_path / "model"
        subprocess.run(["cp", "-r", checkpoint, copy], check=True)
        (copy / "config.json").write_text(changed)
        check_lines(translate_config(str(copy), input=str(path)))


@pytest.mark.slow
def test_the_content_of_standard_input_is_checked(checkpoint, tmp_path):
    command = [
        python(),
        "-m",
        "nmt",
        "translate",
        f"run={checkpoint}",
        "device=cpu",
        "decode=greedy",
    ]
    (tmp_path / "in").write_bytes(XML)
    with (tmp_path / "in").open("rb") as file:
        redirected = subprocess.run(command, stdin=file, capture_output=True, timeout=300)
    piped = subprocess.run(command, input=XML, capture_output=True, timeout=300)
    for done in (redirected, piped):
        assert (done.returncode, done.stdout) == (2, b"")
        assert b"standard input: its content is XML" in done.stderr
    text = subprocess.run([*command, "format=text"], input=XML, capture_output=True, timeout=300)
    assert text.returncode == 0


def test_many_comments_take_little_time():
    # A line of comments must have only one reading, or their number would multiply.
    assert kind_of_content(b"<!-- a -->" * 6000 + b"\nb", may_be_code=False) is None
