"""CSV files: separators of cells, quotation marks, and malformed rows."""

import csv
import logging
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from nmt.config import DataConfig, NMTError
from nmt.text import Pair, read_files, table_format

CELLS = [
    'He said "no".',
    "a, b",
    "a; b",
    "two\nlines",
    "a\ttab",
    '"Quoted," he said.',
    '5" disk',
    "plain",
    "",
]
PAIRS = [(cell, f"{cell} {number}") for number, cell in enumerate(CELLS)]
GOOD = [("Yes.", "Ja."), ("No, never.", "Nein; nie.")]


def read(path: Path, content: bytes, **keys: object) -> tuple[list[Pair], Counter[str]]:
    path.write_bytes(content)
    settings: dict[str, Any] = {"train": [str(path)], **keys}
    config = DataConfig(name="toy", kind="files", **settings)
    counts = Counter[str]()
    return list(read_files(config.train, config, counts)), counts


def on_one_line(cell: str) -> str:
    return " ".join(cell.split())


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_files_of_pythons_csv_writer(tmp_path: Path, separator, quoting, end) -> None:
    path = tmp_path / "a.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=separator, quoting=quoting, lineterminator=end)
        writer.writerow(("en", "de"))
        writer.writerows(PAIRS)
    expected = [(on_one_line(source), on_one_line(target)) for source, target in PAIRS]
    pairs, counts = read(path, path.read_bytes())
    assert [(source.strip(), target.strip()) for source, target in pairs] == expected
    assert counts == {"header row": 1}


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("Hello, you;Hallo, du\n", ("Hello, you", "Hallo, du")),
        ("Hello; you,Hallo; du\n", ("Hello; you", "Hallo; du")),
        ('"a;b;c";"d;e"\n', ("a;b;c", "d;e")),
        ('"a;b","c;d"\n', ("a;b", "c;d")),
        ('"a", "b, c"\n', ("a", "b, c")),
        ("Hello, you\tHallo, du\n", ("Hello, you", "Hallo, du")),
        ("\ufeffa,b", ("a", "b")),
        ("x\ry,z\n", ("x y", "z")),
    ],
)
def test_the_separator_of_a_single_row(tmp_path: Path, text: str, pair: Pair) -> None:
    assert read(tmp_path / "a.csv", text.encode()) == ([pair], {})


def test_the_columns_with_text_are_found(tmp_path: Path, caplog) -> None:
    rows = [f'{n},"One, {n} is here.",en,"Nummer ""{n}"" ist hier.",de' for n in range(30)]
    with caplog.at_level(logging.WARNING):
        pairs, _ = read(tmp_path / "a.csv", "\n".join(rows).encode())
    assert pairs == [(f"One, {n} is here.", f'Nummer "{n}" ist hier.') for n in range(30)]
    assert "columns 2 and 4 of 5 are the texts" in caplog.text
    pairs, _ = read(tmp_path / "a.csv", "\n".join(rows).encode(), columns=[4, 2])
    assert pairs[7] == ('Nummer "7" ist hier.', "One, 7 is here.")


@pytest.mark.parametrize(
    ("row", "problem", "counted"),
    [
        (
            b"Well, no.,Nun ja.",
            "line 3: 3 columns, but most rows have 2, so a sentence may contain a comma",
            "",
        ),
        (b"no pair", "line 3: no comma between source and target", "malformed"),
        (b"", "line 3: no comma between source and target", "malformed"),
        (b'"Never closed,offen', "line 3: not valid CSV", "malformed"),
        (b'"Hello," he said,sagte er', "line 3: not valid CSV", "malformed"),
        (b'"He said \\"no\\".",Nein', "line 3: not valid CSV", "malformed"),
        (b"a,b\xe4d", "line 3: invalid UTF-8 at byte 4", "invalid UTF-8"),
        (b'"two\nb\xe4d lines",b', "line 3: invalid UTF-8", "invalid UTF-8"),
        (b"a" * 200_000 + b",b", "line 3: not valid CSV", "malformed"),
        (b"a" * 2_000_000 + b",b", "line 3: ", "malformed"),
    ],
)
def test_a_malformed_row_is_an_error_or_counted(tmp_path: Path, row, problem, counted) -> None:
    good = b'Yes.,Ja.\n"No, never.",Nein; nie.\n'
    content = good + row + b"\n" + good * 20
    with pytest.raises(NMTError, match=rf"a\.csv, {problem}.*data\.errors=skip"):
        read(tmp_path / "a.csv", content)
    pairs, counts = read(tmp_path / "a.csv", content, errors="skip")
    assert pairs == GOOD * 21
    assert counts == {counted or "other number of columns": 1}


def test_unclosed_quotation_marks_hide_only_their_lines(tmp_path: Path) -> None:
    rows = [f"Row {n},Zeile {n}" for n in range(5000)]
    for number in (7, 8, 4000):
        rows[number] = f'"Row {number},Zeile {number}'
    pairs, counts = read(tmp_path / "a.csv", "\n".join(rows).encode(), errors="skip")
    assert pairs == [(f"Row {n}", f"Zeile {n}") for n in range(5000) if n not in (7, 8, 4000)]
    assert counts == {"malformed": 3}


def test_csv_files_are_files_of_pairs() -> None:
    assert table_format("corpus.csv") == table_format("corpus.csv.gz") == ".csv"
