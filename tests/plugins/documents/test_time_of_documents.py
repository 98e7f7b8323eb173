"""The time for a document grows with its size, also if its author tries to prevent that."""

import json
import time
from collections.abc import Callable
from html import escape

import pytest

from nmt.config import NMTError
from nmt.translation import Translated, read_document

HOSTILE = """[ |*a |<a |$|`a |_a |![|](|<|&a|{|{a}|{a,plural,|((|\\|\\a |- |> |'|"|%s |a.b |1 |\t
|\ue000|<!--|<p>|<b>|<b>a</b> |</b>|a@b |http://a |--|[^a]|{{|$$|&amp;|<ruby><rt>|{\\i1}|\\N|-->
|+|xref:a[|  |<x a="|10 km |\u4e00|\u00e9 |::a::|~~""".replace("\n", "").split("|")
MALFORMED = "{a,plural,"
LINES = ["a=b c", "- a", "| a |", ":::", "a:", "===", "~~~", ".. note::", "[a]: b", ""]
"""Lines of hostile files; in `HOSTILE` are pieces of lines."""


def in_json(text: str) -> str:
    return json.dumps([text, *text.split()])


def in_android(text: str) -> str:
    return f'<resources><string name="a">{escape(text)}</string></resources>'


def in_docbook(text: str) -> str:
    return f'<article xmlns="http://docbook.org/ns/docbook"><para>{escape(text)}</para></article>'


FILES: dict[str, Callable[[str], str]] = {
    "json": in_json,
    "android": in_android,
    "properties": lambda text: f"a={text}\n",
    "strings": lambda text: f'"a" = {json.dumps(text)};\n',
    "srt": lambda text: f"1\n00:00:00,000 --> 00:00:01,000\n{text}\n",
    "vtt": lambda text: f"WEBVTT\n\n00:00:00.000 --> 00:00:01.000\n{text}\n",
    "markdown": str,
    "mdx": str,
    "rst": str,
    "asciidoc": str,
    "html": str,
    "docbook": in_docbook,
    "usfm": lambda text: f"\\id GEN\n\\p\n{text}\n",
}


def hostile(size: int, pieces: list[str]) -> str:
    """Many repetitions of each piece and line, of about `size` characters in all."""
    each = size // (len(pieces) + len(LINES))
    parts = [piece * (each // len(piece)) for piece in pieces]
    parts += [f"{line}\n" * (each // (len(line) + 1)) for line in LINES]
    return "\n\n".join(parts)


def seconds(format: str, text: str) -> float:
    """The processor time to read a file and to write it with its words in reverse order."""
    content = FILES[format](text).encode()
    start = time.process_time()
    try:
        document = read_document(format, content)
    except NMTError:
        return time.process_time() - start
    turned = [" ".join(reversed(line.split())) for line in document.lines]
    document.join([Translated(text) for text in turned])
    return time.process_time() - start


def is_linear(format: str, size: int, pieces: list[str]) -> bool:
    """Whether the time grows by less than a factor of 3 if the size of a file doubles."""
    half = hostile(size // 2, pieces)
    whole = hostile(size, pieces)
    # Other programs may disturb a measurement, but quadratic time fails all of them.
    return any(seconds(format, whole) < 3 * seconds(format, half) for _ in range(4))


@pytest.mark.slow
@pytest.mark.parametrize("format", FILES)
def test_hostile_files_take_linear_time(format):
    # The first document of a format also takes the time of imports.
    seconds(format, "a")
    # A string with a malformed plural is not read any further, so it has a file of its own.
    pieces = [piece for piece in HOSTILE if piece != MALFORMED]
    assert is_linear(format, 20_000, pieces)
    assert is_linear(format, 20_000, [MALFORMED])


def test_blanks_that_end_no_line_take_linear_time():
    seconds("markdown", "a")
    assert seconds("markdown", f"a]({' ' * 100_000}b\n") < 5


@pytest.mark.slow
@pytest.mark.parametrize("format", FILES)
def test_a_long_hostile_file_takes_linear_time(format):
    seconds(format, "a")
    pieces = [piece for piece in HOSTILE if piece != MALFORMED]
    assert is_linear(format, 200_000, pieces)
