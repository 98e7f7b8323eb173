"""Sentence pairs in Parquet files."""

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nmt.config import DataConfig, NMTError
from nmt.text import read_files

PAIRS = [("Hello.", "Hallo."), ("A dog\nruns.", "Ein Hund\nläuft."), ("", "leer")]
SOURCES = [source for source, _ in PAIRS]
TARGETS = [target for _, target in PAIRS]
STRUCTS = [{"de": target, "en": source} for source, target in PAIRS]
IDS = range(len(PAIRS))
LARGE = pa.array(TARGETS, pa.large_string())
LABELS = pa.array(SOURCES).dictionary_encode()


def read(name: str, counts: Counter[str] | None = None, **values) -> list[tuple[str, str]]:
    data = DataConfig(name="x", kind="files", train=[name], **values)
    return list(read_files([name], data, Counter() if counts is None else counts))


@pytest.mark.parametrize(
    ("columns", "values"),
    [
        ({"de": TARGETS, "id": IDS, "en": SOURCES}, {}),
        ({"id": IDS, "translation": STRUCTS}, {}),
        ({"translation": STRUCTS, "en": IDS, "de": IDS}, {}),
        ({"translation": ["x"] * len(PAIRS), "en": SOURCES, "de": LARGE}, {}),
        ({"source": LABELS, "target": TARGETS}, {}),
        ({"id": IDS, "a": TARGETS, "b": SOURCES}, {"columns": [3, 2]}),
        ({"text.en": SOURCES, "text.de": TARGETS}, {"columns": [1, 2]}),
    ],
)
@pytest.mark.parametrize("suffix", ["parquet", "pq"])
def test_the_pairs_of_a_table(here, columns, values, suffix):
    pq.write_table(pa.table(columns), f"pairs.{suffix}", row_group_size=2)
    assert read(f"pairs.{suffix}", **values) == PAIRS


def invalid_utf8(texts: list[bytes]) -> pa.Array:
    offsets = pa.array([0, len(texts[0]), len(texts[0]) + len(texts[1])], pa.int32())
    content = pa.py_buffer(b"".join(texts))
    return pa.StringArray.from_buffers(len(texts), offsets.buffers()[1], content)


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"en": ["a", None], "de": ["b", "c"]}, "p.parquet, row 2: a text is null"),
        ({"translation": [{"en": "a", "de": "b"}, None]}, "p.parquet, row 2: a text is null"),
        ({"en": ["a", "b" * (2**20 + 1)], "de": ["b", "c"]}, "p.parquet, row 2: "),
        ({"en": ["a", "b"], "de": invalid_utf8([b"a", b"\xff"])}, "p.parquet, row 2: "),
    ],
)
def test_malformed_rows_are_errors_or_counted(here, columns, problem):
    pq.write_table(pa.table(columns), "p.parquet")
    with pytest.raises(NMTError, match=problem) as info:
        read("p.parquet")
    assert "data.errors=skip" in str(info.value)
    counts = Counter[str]()
    assert len(read("p.parquet", counts, errors="skip")) == 1
    assert counts.total() == 1


@pytest.mark.parametrize(
    ("columns", "values", "problem"),
    [
        ({"a": ["x"], "b": ["y"]}, {}, "no columns en and de, only a, b; pass data.columns="),
        ({"a": ["x"]}, {"columns": [1, 2]}, "p.parquet has 1 columns"),
        ({"en": ["x"], "de": [1]}, {}, "the column de has type int64, not text"),
        ({"translation": [{"en": "x", "de": 1}]}, {}, "the column translation.de has type int64"),
    ],
)
def test_tables_without_pairs_are_refused(here, columns, values, problem):
    pq.write_table(pa.table(columns), "p.parquet")
    with pytest.raises(NMTError, match=r"p\.parquet") as info:
        read("p.parquet", **values)
    assert problem in str(info.value)


def test_damaged_and_compressed_files_are_refused(here):
    Path("p.parquet").write_bytes(b"PAR1 and more")
    with pytest.raises(NMTError, match="cannot be read as Parquet"):
        read("p.parquet")
    Path("q.parquet.gz").write_bytes(b"")
    with pytest.raises(NMTError, match="decompress it first"):
        read("q.parquet.gz")


@pytest.mark.slow
def test_a_corpus_has_the_same_content_as_from_jsonl(nmt, here):
    words = ["ka", "lo", "mi", "nu", "pe", "ra", "so", "ti"]
    rows = []
    for number in range(200):
        first = words[number % 8]
        second = words[number // 8 % 8]
        rows.append({"en": f"{first} {second} {number}", "de": f"{second} {first} {number}"})
    pq.write_table(pa.table({"translation": rows}), "pairs.parquet")
    lines = [json.dumps({"translation": row}) for row in rows]
    Path("pairs.jsonl").write_text("\n".join(lines) + "\n")
    options = ["data.source=en", "data.target=de", "data.valid_size=9", "data.test_size=9"]
    options += ["tokenizer.vocabulary_size=300"]
    for suffix in ("parquet", "jsonl"):
        outcome = nmt("preprocess", f"pairs.{suffix}", f"data.name={suffix}", *options)
        assert outcome.code == 0, outcome.err
    files = [path for path in Path("data/parquet").rglob("*") if path.is_file()]
    assert len(files) > 4
    for path in files:
        if path.name != "manifest.json":
            other = Path("data/jsonl", path.relative_to("data/parquet"))
            assert path.read_bytes() == other.read_bytes(), path
