"""Parallel files: however the same pairs are written, the same pairs are read."""

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

from nmt.config import DataConfig
from nmt.errors import NMTError
from nmt.text import LINE_BYTES, Pair, open_text, raw_lines, read_files, read_lines

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


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstd,
}


def column(pairs: list[Pair], side: int) -> str:
    return "".join(pair[side] + "\n" for pair in pairs)


def tsv(pairs: list[Pair]) -> str:
    return "".join(f"{source}\t{target}\n" for source, target in pairs)


def jsonl(pairs: list[Pair]) -> str:
    return "".join(json.dumps({"id": 7, "en": source, "de": target}) + "\n" for source, target in pairs)


def jsonl_translation(pairs: list[Pair]) -> str:
    return "".join(json.dumps({"translation": {"de": t, "en": s}}, ensure_ascii=False) + "\n" for s, t in pairs)


# Entry -> file names and texts; {z} is the suffix of a compression.
LAYOUTS: dict[str, dict[str, Callable[[list[Pair]], str]]] = {
    "corpus": {"corpus.en{z}": lambda p: column(p, 0), "corpus.de{z}": lambda p: column(p, 1)},
    "left.txt:right.txt": {"left.txt{z}": lambda p: column(p, 0), "right.txt{z}": lambda p: column(p, 1)},
    "left{z}:right{z}": {"left{z}": lambda p: column(p, 0), "right{z}": lambda p: column(p, 1)},
    "corpus.tsv": {"corpus.tsv{z}": tsv},
    "corpus.tsv{z}": {"corpus.tsv{z}": tsv},
    "corpus.jsonl": {"corpus.jsonl{z}": jsonl},
    "corpus.jsonl{z}": {"corpus.jsonl{z}": jsonl_translation},
}


def read(entries: str | list[str], errors: str = "strict", counts: Counter[str] | None = None) -> list[Pair]:
    config = DataConfig(name="toy", kind="files", train=entries, errors=errors)
    return list(read_files(config.train, config, Counter() if counts is None else counts))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("entry", LAYOUTS)
def test_every_layout_and_compression_gives_the_same_pairs(folder: Path, entry: str, suffix: str) -> None:
    for name, text in LAYOUTS[entry].items():
        (folder / name.format(z=suffix)).write_bytes(COMPRESS[suffix](text(PAIRS).encode()))
    assert read(entry.format(z=suffix)) == PAIRS


def test_entries_are_read_one_after_another(folder: Path) -> None:
    for name, (source, target) in zip("ab", PAIRS, strict=False):
        (folder / f"{name}.en").write_text(source + "\n")
        (folder / f"{name}.de").write_text(target + "\n")
    (folder / "c.tsv").write_text("x\ty\n")
    assert read(["c.tsv", "b", "a.en:a.de"]) == [("x", "y"), PAIRS[1], PAIRS[0]]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_either_file_of_a_pair_names_it(folder: Path, suffix: str) -> None:
    for language, lines in zip(("en", "de"), zip(*PAIRS, strict=True), strict=True):
        (folder / f"valid.{language}{suffix}").write_bytes(COMPRESS[suffix]("\n".join(lines).encode()))
    assert read(f"valid.en{suffix}") == read(f"valid.de{suffix}") == PAIRS
    (folder / f"valid.de{suffix}").unlink()
    with pytest.raises(NMTError, match=r"^valid\.de: no such file \(from 'valid\.en"):
        read(f"valid.en{suffix}")


def test_a_prefix_takes_the_languages_of_the_corpus(folder: Path) -> None:
    (folder / "corpus.cs").write_text("ahoj\n")
    (folder / "corpus.pt-br").write_text("olá\n")
    config = DataConfig(name="toy", kind="files", source="pt-br", target="cs")
    assert list(read_files(["corpus"], config, Counter())) == [("olá", "ahoj")]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [b""]),
        (b"a", [b"a"]),
        (b"a\n\nb\n", [b"a", b"", b"b"]),
        (b"a\r\nb\r\n", [b"a", b"b"]),
        (b"a\rb\n\r\r\n", [b"a\rb", b"\r"]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", [b"a", b"\xef\xbb\xbfb"]),
        ("a\u2028b\x85c\x0c\n".encode(), ["a\u2028b\x85c\x0c".encode()]),
    ],
)
def test_only_lf_and_crlf_end_a_line_and_only_a_file_starts_with_a_mark(
    tmp_path: Path, content: bytes, lines: list[bytes]
) -> None:
    path = tmp_path / "text"
    path.write_bytes(content)
    assert list(read_lines(path)) == lines


def test_members_of_a_compressed_file_are_read_on(tmp_path: Path) -> None:
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(b"a\n") + gzip.compress(b"b\n"))
    assert list(read_lines(path)) == [b"a", b"b"]


def test_byte_order_mark_and_crlf_do_not_reach_the_pairs(folder: Path) -> None:
    (folder / "a.tsv").write_bytes(b"\xef\xbb\xbfHello.\tHallo.\r\nYes.\tJa.\r\n")
    (folder / "b.jsonl").write_bytes(b'\xef\xbb\xbf{"en": "No.", "de": "Nein."}\r\n')
    assert read(["a.tsv", "b.jsonl"]) == [("Hello.", "Hallo."), ("Yes.", "Ja."), ("No.", "Nein.")]


def test_columns_after_the_second_are_left_out(folder: Path) -> None:
    (folder / "a.tsv").write_text("Yes.\tJa.\t0.93\tweb\n")
    assert read("a.tsv") == [("Yes.", "Ja.")]


@pytest.mark.parametrize("errors", ["strict", "skip"])
@pytest.mark.parametrize(("sources", "targets"), [(3, 5), (5, 3), (0, 1), (2, 0)])
def test_differing_line_counts_are_an_error_with_both_counts_and_names(
    folder: Path, sources: int, targets: int, errors: str
) -> None:
    (folder / "corpus.en").write_text("a\n" * sources)
    (folder / "corpus.de").write_text("b\n" * targets)
    with pytest.raises(NMTError) as error:
        read("corpus", errors)
    assert f"corpus.en has {sources} lines" in str(error.value)
    assert f"corpus.de has {targets}" in str(error.value)


BAD_LINES = [
    ("a.tsv", b"no tab", "malformed"),
    ("a.tsv", b"", "malformed"),
    ("a.tsv", b"ok\tb\xe4d", "invalid UTF-8"),
    ("a.jsonl", b"no json", "malformed"),
    ("a.jsonl", b"", "malformed"),
    ("a.jsonl", b"null", "malformed"),
    ("a.jsonl", b'["a", "b"]', "malformed"),
    ("a.jsonl", b'{"en": "a", "fr": "b"}', "malformed"),
    ("a.jsonl", b'{"en": "a", "de": null}', "malformed"),
    ("a.jsonl", b'{"translation": "a"}', "malformed"),
    ("a.jsonl", b'{"en": "\xff", "de": "b"}', "invalid UTF-8"),
]


@pytest.mark.parametrize(("name", "line", "reason"), BAD_LINES)
def test_a_bad_line_is_an_error_naming_file_and_line_or_is_counted(
    folder: Path, name: str, line: bytes, reason: str
) -> None:
    good = b"Yes.\tJa." if name == "a.tsv" else b'{"en": "Yes.", "de": "Ja."}'
    (folder / name).write_bytes(b"\n".join([good, line, good, line, good]) + b"\n")
    with pytest.raises(NMTError, match=rf"{name}, line 2\b"):
        read(name)
    counts: Counter[str] = Counter()
    assert read(name, "skip", counts) == [("Yes.", "Ja.")] * 3
    assert counts == {reason: 2}


def test_half_a_surrogate_pair_is_a_bad_line(folder: Path) -> None:
    (folder / "a.jsonl").write_text('{"en": "Yes.", "de": "Ja."}\n{"en": "\\ud83d", "de": "b"}\n')
    with pytest.raises(NMTError, match=r"a\.jsonl, line 2\b"):
        read("a.jsonl")
    assert read("a.jsonl", "skip") == [("Yes.", "Ja.")]


@pytest.mark.parametrize(("side", "name"), [(0, "corpus.en"), (1, "corpus.de.xz")])
def test_invalid_utf8_names_the_file_of_its_side(folder: Path, side: int, name: str) -> None:
    lines = [b"a\nb\nc\n", b"x\ny\nz\n"]
    lines[side] = lines[side][:4] + b"\xc3\n"
    (folder / "corpus.en").write_bytes(lines[0])
    (folder / "corpus.de.xz").write_bytes(lzma.compress(lines[1]))
    with pytest.raises(NMTError, match=rf"{name}, line 3\b"):
        read("corpus")
    counts: Counter[str] = Counter()
    assert read("corpus", "skip", counts) == [("a", "x"), ("b", "y")]
    assert counts == {"invalid UTF-8": 1}


@pytest.mark.parametrize(
    ("entry", "missing"),
    [
        ("nowhere", "nowhere.en"),
        ("there", "there.de"),
        ("there.en:nowhere.de", "nowhere.de"),
        ("a.tsv", "a.tsv"),
        ("a.jsonl.gz", "a.jsonl.gz"),
    ],
)
def test_a_missing_file_is_named(folder: Path, entry: str, missing: str) -> None:
    (folder / "there.en").write_text("a\n")
    with pytest.raises(NMTError, match=f"^{missing}: no such file"):
        read(entry)


@pytest.mark.parametrize(
    ("entry", "names"),
    [
        ("a:b", ["a:b.en", "a:b.de"]),
        ("a:b.tsv", ["a:b.tsv"]),
        ("a:b:c.x", ["a:b", "c.x"]),
        ("a:b:c.x", ["a", "b:c.x"]),
        ("C:x.tsv:y.tsv.gz", ["C:x.tsv", "y.tsv.gz"]),
        ("日本", ["日本.en.gz", "日本.de"]),
        ("1e3", ["1e3.en", "1e3.de"]),
        ("a, b ", ["a, b .en", "a, b .de"]),
    ],
)
def test_a_name_is_that_of_the_files_that_are_there(folder: Path, entry: str, names: list[str]) -> None:
    for name in names:
        (folder / name).write_bytes(gzip.compress(b"x\ty\n") if name.endswith(".gz") else b"x\ty\n")
    sides = ("x\ty", "x\ty") if len(names) == 2 else ("x", "y")
    assert read(entry) == [sides]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda data: data[: len(data) // 2],
    "overwritten": lambda data: data[: len(data) // 2] + b"\xff" * 64 + data[len(data) // 2 + 64 :],
    "not compressed": lambda data: b"Hello.\n",
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("suffix", [suffix for suffix in COMPRESS if suffix])
def test_a_damaged_compressed_file_is_an_error_naming_it(tmp_path: Path, suffix: str, damage: str) -> None:
    text = "".join(f"{i * i * 7919}\n" for i in range(20_000))
    path = tmp_path / f"text{suffix}"
    path.write_bytes(DAMAGE[damage](COMPRESS[suffix](text.encode())))
    with pytest.raises(NMTError, match=rf"text\{suffix}: .*(cannot be read|not compressed)"):
        list(read_lines(path))


@pytest.mark.parametrize("suffix", [suffix for suffix in COMPRESS if suffix])
@pytest.mark.parametrize("name", ["text", "text.txt", "text.gz", "text.zst"])
def test_the_first_bytes_tell_a_compression_whatever_the_name_says(tmp_path: Path, suffix: str, name: str) -> None:
    (tmp_path / name).write_bytes(COMPRESS[suffix](b"a\nb\r\nc"))
    assert list(read_lines(tmp_path / name)) == [b"a", b"b", b"c"]
    with open_text(str(tmp_path / name)) as file:
        assert list(raw_lines(file, name)) == [b"a\n", b"b\r\n", b"c"]


@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_line_has_a_limit_and_is_never_held_whole(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(COMPRESS[suffix](b"a\n" + b"x" * (LINE_BYTES - 1) + b"\n" + b"x" * 30 * LINE_BYTES + b"\nb\n"))
    tracemalloc.start()
    try:
        with open_text(str(path)) as file, pytest.raises(NMTError, match=r"bomb, line 3: longer than 1,048,576 bytes"):
            list(raw_lines(file, path))
        assert [min(len(line), LINE_BYTES + 1) for line in read_lines(path)] == [1, LINE_BYTES - 1, LINE_BYTES + 1, 1]
        assert tracemalloc.get_traced_memory()[1] < 20 * LINE_BYTES
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("mark", "encoding"), [(b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")])
def test_utf_16_with_a_byte_order_mark_is_read(folder: Path, mark: bytes, encoding: str) -> None:
    (folder / "a.tsv").write_bytes(mark + "日本\tJapan\r\n\u0a0a\tx".encode(encoding))
    assert read("a.tsv") == [("日本", "Japan"), ("\u0a0a", "x")]


@pytest.mark.parametrize("content", [b"PK\3\4 word", b"%PDF-1.5", b"\xd0\xcf\x11\xe0", b"a\n\x7fELF\0\xff\n"])
def test_what_is_no_text_is_refused(folder: Path, content: bytes) -> None:
    (folder / "a.tsv").write_bytes(content)
    with pytest.raises(NMTError, match=r"^a\.tsv, line \d: .*(not|no) text"):
        read("a.tsv", "skip")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("Hallo\nWelt\n".encode("utf-16-le"), 1),
        ("Hallo Welt\n\n".encode("utf-16-be"), 1),
        ("日本\n".encode("utf-32"), 1),
    ],
)
@pytest.mark.parametrize("errors", ["strict", "skip"])
def test_utf_16_is_named_with_what_to_do(folder: Path, content: bytes, line: int, errors: str) -> None:
    (folder / "a.tsv").write_bytes(content)
    with pytest.raises(NMTError, match=rf"^a\.tsv, line {line}: UTF-16 .*iconv"):
        read("a.tsv", errors)


@pytest.mark.parametrize(
    ("name", "words"), [("nowhere", "No such file"), (".", "Is a directory"), ("a.gz", "not compressed")]
)
def test_what_cannot_be_opened_is_one_line(folder: Path, name: str, words: str) -> None:
    (folder / "a.gz").write_text("plain")
    with pytest.raises(NMTError, match=rf"^{name}: .*{words}"):
        open_text(name)


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000,
        '{"en":' * 100_000,
        '{"en": "a", "de": "b", "n": ' + "9" * 5000,
        '{"en": 3, "de": "b"}',
        '{"en": NaN, "de": "b"}',
        '{"en": null, "de": "b"}',
        '{"translation": 1}',
        '{"translation": ["en", "de"]}',
        "7",
        "null",
        '"en de"',
        '{"en": "\\ud83d", "de": "b"}',
        "\ufeff{",
    ],
    ids=lambda line: line[:12],
)
def test_json_that_is_no_pair_is_malformed_whatever_it_is(folder: Path, line: str) -> None:
    (folder / "a.jsonl").write_text('{"en": "a", "de": "b"}\n' + line + "\n", encoding="utf-8")
    with pytest.raises(NMTError, match=r"^a\.jsonl, line 2: no object with texts en and de"):
        read("a.jsonl")
    counts: Counter[str] = Counter()
    assert read("a.jsonl", "skip", counts) == [("a", "b")]
    assert counts == {"malformed": 1}


@pytest.mark.parametrize("number", ["9" * 5000, "1e999", "NaN", str(2**64 - 1), "-0.5"])
def test_numbers_beside_a_pair_do_not_matter(folder: Path, number: str) -> None:
    (folder / "a.jsonl").write_text(f'{{"id": {number}, "en": "a", "de": "b"}}\n')
    assert read("a.jsonl") == [("a", "b")]
