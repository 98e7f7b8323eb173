"""The file of translations that clients of `nmt serve` suggest."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.plugins.serve.serving import serving


@pytest.mark.slow
def test_suggestions_of_two_servers_are_rows_of_one_file(word_model, tmp_path):
    path = tmp_path / "all.tsv"
    options = (word_model, f"suggestions={path}")
    fields = {"q": "ka\tlo\nmi", "s": "ol \u2028 ak\0", "source": "en", "target": "de"}
    # Each text has another number of words.
    texts = [f"{count} " * count for count in range(1, 41)]
    with serving(*options) as one, serving(*options) as two, ThreadPoolExecutor(8) as pool:

        def suggest(text: str) -> tuple[int, Any]:
            server = (one, two)[len(text) % 2]
            return server.ask("/suggest", fields | {"q": text})

        assert [*pool.map(suggest, texts)] == [(200, {"success": True})] * 40
        assert one.ask("/suggest", fields) == (200, {"success": True})
        # The owner of the server can find them.
        assert f"nmt: suggestions are appended to {path}" in one.log
    rows = [line.split("\t") for line in path.read_text().splitlines()]
    assert sorted(len(row[0].split()) for row in rows[:40]) == [*range(1, 41)]
    assert rows[40][:4] == ["ka lo mi", "ol ak", "en", "de"]


def test_a_file_that_cannot_be_written_is_refused(word_model, tmp_path, nmt):
    nmt("serve", str(word_model), f"suggestions={tmp_path}").refused("suggestions=", "directory")


KEPT = [
    "می\u200cخواهم",
    "क्\u200dष",
    "Zu\xadcker",
    "👩\u200d💻",
    "a\u00a0: b\u202f!",
    "=1+1",
    "\u200eabc\u200f",
    "(\u2068%s\u2069)",
    "\U0010e001x\ue000",
    "\u2003a  b",
]


@pytest.mark.parametrize(
    ("suggestion", "cell"),
    [
        *((text, text) for text in KEPT),
        (" a\r\n\r\nb\tc\x00d\x85e\u2029f\x1b[0m ", "a b c d e f [0m"),
        ("txt.\u202eexe", "txt.exe"),
        ("\u2069a\u2066", "a"),
    ],
)
def test_suggestions_keep_all_characters_that_do_not_break_a_row(
    server, suggestions, suggestion, cell
):
    fields = {
        "q": "This is a small house in the middle of the town.",
        "s": suggestion,
        "source": "auto",
        "target": "de",
    }
    assert server.ask("/suggest", fields) == (200, {"success": True})
    row = suggestions.read_bytes().decode().removesuffix("\n").split("\n")[-1]
    assert row.split("\t")[:4] == [fields["q"], cell, "en", "de"]


@pytest.mark.parametrize("field", ["q", "s"])
@pytest.mark.parametrize("blank", [" ", "\t\n", "\u00a0\u200d\u200b"])
def test_suggestions_without_text_are_refused(server, suggestions, blank, field):
    before = suggestions.read_bytes()
    fields = {"q": "ka", "s": "ka", "source": "en", "target": "de"}
    status, answer = server.ask("/suggest", fields | {field: blank})
    assert status == 400
    assert "contains no text" in answer["error"]
    assert suggestions.read_bytes() == before


@pytest.mark.parametrize(
    ("texts", "suggestions_sent", "pairs"),
    [
        ("so tu\n\nva we", "eins\n\nzwei", [["so tu", "eins"], ["va we", "zwei"]]),
        ("so tu\nva we", "eins zwei", [["so tu va we", "eins zwei"]]),
        (["so tu", "va we"], ["eins", "zwei"], [["so tu", "eins"], ["va we", "zwei"]]),
        ("so\n", "\neins", [["so", "eins"]]),
    ],
)
def test_each_line_is_a_row(server, suggestions, texts, suggestions_sent, pairs):
    before = len(suggestions.read_text().splitlines())
    fields = {"q": texts, "s": suggestions_sent, "source": "en", "target": "de"}
    assert server.ask("/suggest", fields) == (200, {"success": True})
    rows = suggestions.read_text().splitlines()[before:]
    assert [row.split("\t")[:2] for row in rows] == pairs


def test_lists_of_different_lengths_are_refused(server, suggestions):
    before = suggestions.read_bytes()
    fields = {"q": ["so", "tu"], "s": ["eins"], "source": "en", "target": "de"}
    status, answer = server.ask("/suggest", fields)
    assert (status, answer["error"]) == (400, "s: 1 texts, but q has 2")
    assert suggestions.read_bytes() == before
