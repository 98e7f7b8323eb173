"""Notebooks: only the text of Markdown cells changes."""

import json

import pytest

from nmt.errors import NMTError
from nmt.items import readable
from nmt.translation import read_document
from tests.helpers.pseudo import capitals, pseudo

LINES = ["# A *title*\n", "\n", "One line,\n", "two `x_y`.\n", "![a b](attachment:c.png)"]
CODE = {
    "cell_type": "code",
    "execution_count": 1,
    "metadata": {"source": "# a b"},
    "outputs": [{"output_type": "stream", "name": "stdout", "text": ["a b\n"]}],
    "source": ["# A comment\n", "print('a b')"],
}


def notebook(*cells: dict) -> dict:
    return {"cells": list(cells), "metadata": {"title": "a b"}, "nbformat": 4, "nbformat_minor": 5}


def cell(source, kind="markdown") -> dict:
    attachments = {"c.png": {"image/png": "aaaa"}}
    return {
        "cell_type": kind,
        "id": "a",
        "metadata": {},
        "attachments": attachments,
        "source": source,
    }


@pytest.mark.parametrize("indent", [None, 1, 2])
def test_only_the_sources_of_markdown_cells_change(indent):
    before = notebook(cell(LINES), CODE, cell("raw text", "raw"), cell("- one\n- two"), cell([]))
    text = json.dumps(before, indent=indent) + "\n"
    lines, result, notice = pseudo("ipynb", text)
    after = json.loads(result)
    shown = [readable(line) for line in lines]
    assert shown == ["A title", "One line, two x_y.", "a b", "one", "two"]
    # A paragraph becomes one line, and each line is one string.
    assert after["cells"][0].pop("source") == [
        "# A *TITLE*\n",
        "\n",
        "ONE LINE, TWO `x_y`.\n",
        "![A B](attachment:c.png)",
    ]
    assert after["cells"][3].pop("source") == "- ONE\n- TWO"
    del before["cells"][0]["source"]
    del before["cells"][3]["source"]
    assert after == before
    if indent:
        style = json.dumps(json.loads(result), indent=indent) + "\n"
        assert result == style
    assert notice == ""


def test_notebooks_of_version_3_are_translated():
    cells = [
        {"source": ["a\n", "b"], "cell_type": "markdown"},
        {"cell_type": "heading", "source": "c"},
    ]
    text = json.dumps({"worksheets": [{"cells": cells, "metadata": {}}], "nbformat": 3})
    _, result, _ = pseudo("ipynb", text)
    written = json.loads(result)["worksheets"][0]["cells"]
    assert [cell["source"] for cell in written] == [["A B"], "C"]


def test_escapes_and_other_bytes_stay():
    text = json.dumps(notebook(cell(["caf\u00e9\n", "\n", "# b"]))).replace("  ", "")
    assert "\\u00e9" in text
    _, result, _ = pseudo("ipynb", text.replace('": ', '":\t'))
    assert result == text.replace('": ', '":\t').replace("caf\\u00e9", "CAF\\u00c9").replace(
        "# b", "# B"
    )


def test_notices_count_texts_of_all_cells():
    link = "[a](b 'c d')"
    _, _, notice = pseudo("ipynb", json.dumps(notebook(cell(link), cell(link))))
    assert notice == "titles of links and images left untranslated: 2"


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"a": 1}', b"\x00\xff", b"[" * 100_000])
def test_other_files_are_refused(content):
    with pytest.raises(NMTError) as error:
        read_document("ipynb", content)
    assert "\n" not in str(error.value)


def test_cells_with_broken_characters_stay():
    text = json.dumps(notebook(cell("a \ud800"), cell("b")))
    document = read_document("ipynb", text.encode())
    assert document.join(capitals(document.lines)).decode() == text.replace('"b"', '"B"')
    assert document.notice == "cells left untranslated because they have broken characters: 1"
