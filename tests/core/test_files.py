"""Sentence pairs in files of any layout and compression."""

import bz2
import gzip
import json
import lzma
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from nmt.config import DataConfig, NMTError
from nmt.text import (
    LINE_BYTES,
    MalformedLine,
    Pair,
    decode,
    open_bytes,
    raw_lines,
    read_files,
    read_lines,
)

# Everything here but LF is inside a line, although str.splitlines would split there.
PAIRS = [
    ("Hello.", "Hallo."),
    ("", "links leer"),
    ("a\u2028b\u2029c\x85d\x0be\x0cf\x1cg", "x\ry"),
    ("right empty", ""),
    ("Grüße 😀", "日本語"),
]


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


COMPRESS: dict[str, Callable[[bytes], bytes]]
COMPRESS = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstd,
}


def column(side: int) -> str:
    return "".join(pair[side] + "\n" for pair in PAIRS)


TSV = "".join(f"{source}\t{target}\n" for source, target in PAIRS)
JSONL = ""
NESTED = ""
for source, target in PAIRS:
    record = {"id": 10**4000, "en": source, "de": target}
    JSONL += json.dumps(record) + "\n"
    nested = {"translation": {"de": target, "en": source}}
    NESTED += json.dumps(nested, ensure_ascii=False) + "\n"
LAYOUTS: dict[str, dict[str, str]] = {
    "corpus": {"corpus.en{z}": column(0), "corpus.de{z}": column(1)},
    "left.txt:right.txt": {"left.txt{z}": column(0), "right.txt{z}": column(1)},
    "left{z}:right{z}": {"left{z}": column(0), "right{z}": column(1)},
    "corpus.tsv": {"corpus.tsv{z}": TSV},
    "titled.tsv": {"titled.tsv{z}": f"EN\tde\n{TSV}"},
    "also.tsv": {"also.tsv{z}": f"source_text\tTarget\n{TSV}"},
    "regions.tsv": {"regions.tsv{z}": f'"en-US"\t de\n{TSV}'},
    "corpus.jsonl": {"corpus.jsonl{z}": JSONL},
    "corpus.jsonl{z}": {"corpus.jsonl{z}": NESTED},
}
"""Maps entries to the names and texts of files; {z} is the suffix of a compression."""


def read(entry: str, errors: str = "strict", counts: Counter[str] | None = None) -> list[Pair]:
    config = DataConfig(name="toy", kind="files", train=[entry], errors=errors)
    return list(read_files(config.train, config, Counter() if counts is None else counts))


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("entry", LAYOUTS)
def test_all_layouts_and_compressions_have_the_same_pairs(
    here: Path, entry: str, suffix: str
) -> None:
    compress = COMPRESS[suffix]
    for name, text in LAYOUTS[entry].items():
        (here / name.format(z=suffix)).write_bytes(compress(text.encode()))
    assert read(entry.format(z=suffix)) == PAIRS


def test_line_ends_and_byte_order_marks(tmp_path: Path) -> None:
    text = b"\xef\xbb\xbfa\r\n\n\xef\xbb\xbfb\rc\n\r\r\n\xe2\x80\xa8d\x0c"
    parts = [b"a", b"", b"\xef\xbb\xbfb\rc", b"\r", b"\xe2\x80\xa8d\x0c"]
    lines_of_contents = {b"": [], b"\n": [b""], text: parts}
    for content, lines in lines_of_contents.items():
        (tmp_path / "text").write_bytes(content)
        assert list(read_lines(tmp_path / "text")) == lines


@pytest.mark.parametrize(
    ("sources", "targets", "errors"),
    [
        (3, 5, "strict"),
        (5, 3, "skip"),
        (0, 1, "strict"),
    ],
)
def test_files_with_different_line_counts_are_refused(
    here: Path, sources: int, targets: int, errors: str
):
    (here / "corpus.en").write_text("a\n" * sources)
    (here / "corpus.de").write_text("b\n" * targets)
    with pytest.raises(
        NMTError, match=f"corpus.en has {sources} lines but corpus.de has {targets}"
    ):
        read("corpus", errors)


@pytest.mark.parametrize(
    ("name", "line", "reason"),
    [
        ("a.tsv", b"no tab", "malformed"),
        ("a.tsv", b"ok\tb\xe4d", "invalid UTF-8"),
        ("a.jsonl", b"no json", "malformed"),
        ("a.jsonl", b'{"en": "a", "de": null}', "malformed"),
        ("a.jsonl", b'{"translation": "a"}', "malformed"),
    ],
)
def test_a_malformed_line_is_an_error_or_counted(here, name, line, reason):
    good = b"Yes.\tJa." if name == "a.tsv" else b'{"en": "Yes.", "de": "Ja."}'
    (here / name).write_bytes(b"\n".join([good, line, good, line, good]) + b"\n")
    with pytest.raises(NMTError, match=rf"{name}, line 2\b"):
        read(name)
    counts: Counter[str] = Counter()
    assert read(name, "skip", counts) == [("Yes.", "Ja.")] * 3
    assert counts == {reason: 2}


@pytest.mark.parametrize(
    ("entry", "missing"),
    [
        ("nowhere", "nowhere.en"),
        ("there.en:nowhere.de", "nowhere.de"),
        ("a.jsonl.gz", "a.jsonl.gz"),
    ],
)
def test_a_missing_file_is_named(here: Path, entry: str, missing: str) -> None:
    (here / "there.en").write_text("a\n")
    with pytest.raises(NMTError, match=f"^{missing}: no such file"):
        read(entry)


@pytest.mark.parametrize(
    ("entry", "names"),
    [
        ("a:b", ["a:b.en", "a:b.de"]),
        ("a:b.tsv", ["a:b.tsv"]),
        ("a:b:c.x", ["a", "b:c.x"]),
        ("C:x.tsv:y.tsv.gz", ["C:x.tsv", "y.tsv.gz"]),
        ("a, b ", ["a, b .en", "a, b .de"]),
    ],
)
def test_existing_files_decide_what_a_name_means(here: Path, entry: str, names: list[str]) -> None:
    content = b"x\ty\n"
    for name in names:
        is_compressed = name.endswith(".gz")
        (here / name).write_bytes(gzip.compress(content) if is_compressed else content)
    sides = ("x\ty", "x\ty") if len(names) == 2 else ("x", "y")
    assert read(entry) == [sides]


@pytest.mark.parametrize("pattern", ["part-?.en", "part-*", "./*-[12].de.gz", "{here}/part-*.en"])
def test_patterns_match_each_pair_of_files_once(here: Path, pattern: str) -> None:
    for number, pair in enumerate(PAIRS[:2], 1):
        (here / f"part-{number}.en").write_text(pair[0] + "\n")
        (here / f"part-{number}.de.gz").write_bytes(gzip.compress(pair[1].encode()))
    assert read(pattern.format(here=here)) == PAIRS[:2]


def test_closed_standard_input(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "a").write_bytes(b"x")
    monkeypatch.setattr("sys.stdin", None)
    assert list(read_lines("a")) == [b"x"]
    with pytest.raises(NMTError, match="standard input is closed"):
        open_bytes("-")


def truncated(data: bytes) -> bytes:
    return data[: len(data) // 2]


def overwritten(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + b"\xff" * 64 + data[middle + 64 :]


def not_compressed(data: bytes) -> bytes:
    return b"Hello.\n"


@pytest.mark.parametrize("damage", [truncated, overwritten, not_compressed])
@pytest.mark.parametrize("suffix", [suffix for suffix in COMPRESS if suffix])
def test_damaged_compressed_files_are_refused(
    tmp_path: Path, suffix: str, damage: Callable[[bytes], bytes]
) -> None:
    text = "".join(f"{i * i * 7919}\n" for i in range(20_000))
    path = tmp_path / f"text{suffix}"
    path.write_bytes(damage(COMPRESS[suffix](text.encode())))
    with pytest.raises(NMTError, match=rf"text\{suffix}: .*(cannot be read|not compressed)"):
        list(read_lines(path))


@pytest.mark.parametrize("suffix", [suffix for suffix in COMPRESS if suffix])
@pytest.mark.parametrize("name", ["text", "text.gz", "text.zst"])
def test_the_content_decides_the_compression(tmp_path: Path, suffix: str, name: str) -> None:
    (tmp_path / name).write_bytes(COMPRESS[suffix](b"a\nb\r\nc"))
    assert list(read_lines(tmp_path / name)) == [b"a", b"b", b"c"]
    with open_bytes(str(tmp_path / name)) as file:
        assert list(raw_lines(file, name)) == [b"a\n", b"b\r\n", b"c"]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", COMPRESS)
def test_long_lines_are_refused_in_constant_memory(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "bomb"
    longest_line = b"x" * (LINE_BYTES - 1)
    too_long = b"x" * 30 * LINE_BYTES
    content = b"\n".join([b"a", longest_line, too_long, b"b", b""])
    path.write_bytes(COMPRESS[suffix](content))
    del content, too_long
    tracemalloc.start()
    try:
        with (
            open_bytes(str(path)) as file,
            pytest.raises(NMTError, match=r"bomb, line 3: longer than 1,048,576 bytes"),
        ):
            list(raw_lines(file, path))
        lengths = [len(line) for line in read_lines(path)]
        assert lengths[:2] == [1, LINE_BYTES - 1]
        assert lengths[2] > LINE_BYTES
        assert lengths[3:] == [1]
        assert tracemalloc.get_traced_memory()[1] < 20 * LINE_BYTES
    finally:
        tracemalloc.stop()


def test_decoding_has_the_same_limit() -> None:
    assert len(decode(b"x" * LINE_BYTES)) == LINE_BYTES
    with pytest.raises(MalformedLine, match="longer than"):
        decode(b"x" * (LINE_BYTES + 1))


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_read_in_constant_memory(tmp_path: Path, encoding: str) -> None:
    too_long = "é" * 3 * LINE_BYTES
    content = f"\ufeff日本\tJapan\r\n\u0a0a\u2028\tx\n{too_long}\nend"
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress(content.encode(encoding)))
    texts = [line[: LINE_BYTES + 1].decode(errors="ignore") for line in read_lines(path)]
    assert texts == ["日本\tJapan", "\u0a0a\u2028\tx", "é" * (LINE_BYTES // 2), "end"]
    with (
        open_bytes(str(path)) as file,
        pytest.raises(NMTError, match="line 3: longer than 1,048,576 bytes"),
    ):
        list(raw_lines(file, path))


@pytest.mark.parametrize(
    "content",
    [b"PK\3\4 word", b"%PDF-1.5", b"\xff\xfe\0\0a\0\0\0", b"a\0b\0c\0d\0", b"a\n\x7fELF\0\xff\n"],
)
def test_binary_files_are_refused(here: Path, content: bytes) -> None:
    (here / "a.tsv").write_bytes(content)
    with pytest.raises(NMTError, match=r"^a\.tsv, line \d: .*(not|no) (text|UTF-8)"):
        read("a.tsv", "skip")
