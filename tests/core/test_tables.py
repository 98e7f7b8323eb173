"""Tables: columns with text, rows of other widths, and quotation marks of spreadsheets."""

import csv
import logging
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from nmt.config import DataConfig, NMTError
from nmt.text import Pair, read_files

SENTENCES = [(f"Number {n} is here.", f"Nummer {n} ist hier.") for n in range(30)]
CELLS = ['He said "no".', "a, b", "two\nlines", "a\ttab", '"Quoted," he said.', "plain"]


def read(path: Path, text: str, counts: Counter[str] | None = None, **keys: object) -> list[Pair]:
    path.write_text(text, newline="")
    settings: dict[str, Any] = {"train": [str(path)], **keys}
    config = DataConfig(name="toy", kind="files", **settings)
    return list(read_files(config.train, config, Counter() if counts is None else counts))


def table(*columns: list[str]) -> str:
    return "".join("\t".join(row) + "\n" for row in zip(*columns, strict=True))


SOURCES = [source for source, _ in SENTENCES]
TARGETS = [target for _, target in SENTENCES]
NUMBERS = [str(number) for number in range(30)]


@pytest.mark.parametrize(
    ("columns", "keys"),
    [
        ((SOURCES, TARGETS), {}),
        ((NUMBERS, SOURCES, TARGETS), {}),
        ((NUMBERS, SOURCES, NUMBERS, TARGETS), {}),
        ((["en"] * 30, SOURCES, ["de"] * 30, TARGETS), {}),
        ((SOURCES, TARGETS, [f"by Ann, no. {n}" for n in range(30)]), {}),
        ((["German", *TARGETS], ["id", *NUMBERS], ["English", *SOURCES]), {}),
        ((["de", *TARGETS], ["en-US", *SOURCES]), {}),
        ((["Deutsch", *TARGETS], ["English", *SOURCES]), {}),
        ((["x", *TARGETS], ["y", *SOURCES]), {"columns": [2, 1]}),
        ((SOURCES, TARGETS, [""] * 30), {}),
    ],
)
def test_the_columns_with_text_are_found(tmp_path: Path, columns, keys) -> None:
    pairs = read(tmp_path / "a.tsv", table(*columns), **keys)
    assert [pair for pair in pairs if pair != ("y", "x")] == SENTENCES


@pytest.mark.parametrize(
    "columns",
    [
        (NUMBERS, SOURCES, TARGETS, TARGETS),
        (NUMBERS, SOURCES, NUMBERS),
        (NUMBERS, NUMBERS, SOURCES),
    ],
)
def test_unclear_columns_are_refused_with_an_option(tmp_path: Path, columns) -> None:
    with pytest.raises(NMTError, match=r"first row is .*data\.columns=\[2,3\]"):
        read(tmp_path / "a.tsv", table(*columns))


@pytest.mark.parametrize("columns", [[1], [1, 1], [0, 1], [1, 2, 3], [1, 9]])
def test_impossible_columns_are_refused(tmp_path: Path, columns: list[int]) -> None:
    with pytest.raises(NMTError, match=r"^data\.columns="):
        read(tmp_path / "a.tsv", table(SOURCES, TARGETS), columns=columns)


@pytest.mark.parametrize("row", ["a\tb\tc", "a\t\tc", "\tb\tc"])
def test_a_row_with_other_columns_is_an_error_or_counted(tmp_path: Path, row: str) -> None:
    text = f"{table(SOURCES, TARGETS)}{row}\nlast\tletzte\n"
    with pytest.raises(NMTError, match=r"a.tsv, line 31: 3 columns, but most rows have 2"):
        read(tmp_path / "a.tsv", text)
    counts = Counter[str]()
    pairs = read(tmp_path / "a.tsv", text, counts, errors="skip")
    assert pairs == [*SENTENCES, ("last", "letzte")]
    assert counts == {"other number of columns": 1}


@pytest.mark.parametrize(
    ("columns", "row", "keys"),
    [
        # An optional third column is missing.
        ((SOURCES, TARGETS, [f"by Ann, no. {n}" for n in range(30)]), "last\tletzte", {}),
        # The user has chosen the columns, so more of them are no tabs in sentences.
        ((SOURCES, TARGETS), "last\tletzte\ta comment", {"columns": [1, 2]}),
        ((TARGETS, SOURCES), "letzte\tlast\ta comment", {"columns": [2, 1]}),
    ],
)
def test_rows_of_other_widths_are_read_with_a_notice(
    tmp_path: Path, columns, row, keys, caplog: pytest.LogCaptureFixture
) -> None:
    counts = Counter[str]()
    with caplog.at_level(logging.WARNING):
        pairs = read(tmp_path / "a.tsv", f"{table(*columns)}{row}\n", counts, **keys)
    assert pairs == [*SENTENCES, ("last", "letzte")]
    assert not counts
    assert "1 rows do not have" in caplog.text
    assert "first line 31" in caplog.text


@pytest.mark.parametrize("keys", [{}, {"columns": [2, 3]}])
def test_a_row_without_one_of_the_texts_is_refused(tmp_path: Path, keys) -> None:
    text = f"{table(NUMBERS, SOURCES, TARGETS)}30\tlast\n"
    with pytest.raises(NMTError, match=r"line 31: 2 columns, but most rows have 3"):
        read(tmp_path / "a.tsv", text, **keys)


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_quotation_marks_of_spreadsheets_are_removed(
    tmp_path: Path, quoting, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.tsv"
    pairs = [(cell, f"{cell} {number}") for number, cell in enumerate(CELLS)]
    with path.open("w", newline="") as file:
        csv.writer(file, "excel-tab", quoting=quoting).writerows(pairs)
    with caplog.at_level(logging.WARNING):
        read_pairs = read(path, path.read_text())
    for pair, original in zip(read_pairs, pairs, strict=True):
        assert [*pair] == [" ".join(cell.split()) for cell in original]
    assert "removed the quotation marks" in caplog.text


@pytest.mark.parametrize(
    "rows",
    [
        ['"Hello," he said.\tx', 'y\t"z"'],
        ['"Hello."\t"Hallo."', "Bye.\tTschüss."],
        ['"Hello\tHallo', 'world"\tWelt'],
        ['"Hello ""you""."\tx', '"Stop" it\ty'],
        ['5" pipe\t5" Rohr', "a\tb"],
        ['"Well, no."\t"Nun, nein."', '"Well, yes."\t"Nun, ja."', "a, b\tc, d"],
    ],
)
def test_quotation_marks_of_sentences_are_kept(tmp_path: Path, rows: list[str]) -> None:
    text = "".join(row + "\n" for row in rows)
    assert read(tmp_path / "a.tsv", text) == [tuple(row.split("\t")) for row in rows]
