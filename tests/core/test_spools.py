"""The main process only passes on places of text, and the corpus is the same as if it read it."""

import bz2
import codecs
import errno
import gzip
import hashlib
import json
import lzma
import os
import random
from collections import Counter
from collections.abc import Callable
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from nmt.config import DataConfig, ExperimentConfig, NMTError, TokenizerConfig
from nmt.data import Manifest
from nmt.files import facts
from nmt.preparation import file_digests, filters, preprocess, split_writer
from nmt.text import blocks, line_ends
from nmt.text.files import LINE_BYTES

WORDS = [f"{first}{vowel}{last}" for first in "bdfk" for vowel in "aeiou" for last in "lmnrs"]


def write_corpus(folder: Path, pairs: int) -> None:
    """Distinct pairs of a few words, every seventh of them twice."""
    generator = random.Random(3)
    lines = [" ".join(generator.choices(WORDS, k=generator.randrange(3, 9))) for _ in range(pairs)]
    lines[::7] = lines[1::7][: len(lines[::7])] + lines[::7][len(lines[1::7]) :]
    for code, side in (("en", lines), ("de", [line[::-1] for line in lines])):
        (folder / f"train.{code}").write_text("".join(f"{line}\n" for line in side))


def configuration(folder: Path, out: str = "out", workers: int = 2) -> ExperimentConfig:
    data = DataConfig(
        name="toy", kind="files", train=[str(folder / "train")], valid_size=10, test_size=10
    )
    data.filters.deduplicate = True
    config = ExperimentConfig(
        data=data, tokenizer=TokenizerConfig("bpe", 300, sample=500), workers=workers
    )
    config.prepared = str(folder / out)
    return config


def prepared(config: ExperimentConfig) -> tuple[Manifest, dict[str, bytes]]:
    manifest, _ = preprocess(config, lambda words: None)
    folder = Path(config.prepared)
    contents = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != "manifest.json":
            contents[str(path.relative_to(folder))] = path.read_bytes()
    return manifest, contents


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_PAIRS", 100)
    monkeypatch.setattr(blocks, "LINES_AT_ONCE", 20)


@pytest.mark.slow
def test_any_number_of_workers_writes_the_same_bytes(tmp_path, small_blocks):
    write_corpus(tmp_path, 730)
    one, *others = [
        prepared(configuration(tmp_path, f"out-{workers}", workers)) for workers in (1, 2, 5)
    ]
    for manifest, contents in others:
        assert contents == one[1]
        assert manifest.counts == one[0].counts
        assert manifest.fingerprint == one[0].fingerprint
    assert one[0].counts["train"]["dropped"]["duplicates"] > 100


CONVERSIONS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
    "zst": lambda content: pa.compress(content, "zstd", asbytes=True),
    "UTF-16": lambda content: content.decode().encode("utf-16"),
    "CRLF": lambda content: content.replace(b"\n", b"\r\n"),
    "BOM": lambda content: codecs.BOM_UTF8 + content,
    "no last line end": lambda content: content.removesuffix(b"\n"),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", CONVERSIONS)
def test_the_form_of_the_files_does_not_change_the_corpus(tmp_path, small_blocks, form):
    write_corpus(tmp_path, 450)
    _, plain = prepared(configuration(tmp_path, "plain"))
    # The other side stays as it is: both are read together.
    path = tmp_path / "train.de"
    content = CONVERSIONS[form](path.read_bytes())
    path.unlink()
    suffix = f".{form}" if form in ("gz", "xz", "bz2", "zst") else ""
    path.with_name(path.name + suffix).write_bytes(content)
    _, converted = prepared(configuration(tmp_path, "converted"))
    assert converted == plain


def rows_of(content: bytes) -> list[dict[str, Any]]:
    return pa.ipc.open_stream(content).read_all().to_pylist()


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 150, 200])
def test_a_large_split_is_divided_at_borders_of_blocks(tmp_path, monkeypatch, small_blocks, most):
    write_corpus(tmp_path, 1000)
    config = configuration(tmp_path, "whole")
    manifest, whole = prepared(config)
    assert "files" not in manifest.counts["train"]
    monkeypatch.setattr(split_writer, "FILE_PAIRS", most)
    config.prepared = str(tmp_path / "divided")
    manifest, divided = prepared(config)
    names = [name for name in divided if name.startswith("train/")]
    assert names == [f"train/pairs-{number + 1:05}.arrow" for number in range(len(names))]
    files = [rows_of(divided[name]) for name in names]
    sizes = [len(rows) for rows in files]
    assert manifest.counts["train"]["files"] == sizes
    assert list(chain(*files)) == rows_of(whole["train/pairs.arrow"])
    # A file ends with the block that fills it.
    for rows, after in pairwise(files):
        last_block = (rows[-1]["line"] - 1) // 100
        assert (after[0]["line"] - 1) // 100 > last_block
        before_last = sum((row["line"] - 1) // 100 < last_block for row in rows)
        assert before_last < most <= len(rows)
    # Held-out sets are never divided.
    assert divided["valid/pairs.arrow"] == whole["valid/pairs.arrow"]
    stored = json.loads((tmp_path / "divided" / "manifest.json").read_bytes())
    assert stored["counts"]["train"]["files"] == manifest.counts["train"]["files"]


@pytest.mark.slow
def test_a_split_that_just_fits_is_one_file(tmp_path, monkeypatch, small_blocks):
    write_corpus(tmp_path, 500)
    manifest, _ = prepared(configuration(tmp_path, "one"))
    monkeypatch.setattr(split_writer, "FILE_PAIRS", manifest.counts["train"]["kept"])
    manifest, contents = prepared(configuration(tmp_path, "two"))
    assert "train/pairs.arrow" in contents
    assert "files" not in manifest.counts["train"]


@pytest.mark.slow
@pytest.mark.parametrize("error", [errno.ENOSYS, errno.EXDEV, errno.EPERM])
def test_blocks_are_copied_where_the_kernel_cannot(tmp_path, monkeypatch, error):
    write_corpus(tmp_path, 200)
    _, expected = prepared(configuration(tmp_path, "kernel"))

    def refuse(*arguments: int) -> int:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "copy_file_range", refuse)
    _, contents = prepared(configuration(tmp_path, "copied"))
    assert contents == expected


def test_a_full_disk_is_not_mistaken_for_a_missing_call(tmp_path):
    source = tmp_path / "source"
    source.write_bytes(b"x" * 10_000)
    with (
        source.open("rb") as file,
        Path("/dev/full").open("wb", buffering=0) as full,
        pytest.raises(OSError, match="No space left"),
    ):
        split_writer.copy_content(file.fileno(), full.fileno(), 10_000)


def test_a_worker_that_dies_is_one_line_and_leaves_nothing(tmp_path, monkeypatch):
    write_corpus(tmp_path, 200)
    # The workers are forks, so they have this function, too.
    monkeypatch.setattr(filters, "pair_hashes", lambda pairs: os._exit(1))
    with pytest.raises(NMTError, match="a worker process died, perhaps out of memory"):
        prepared(configuration(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == [".out.lock", "train.de", "train.en"]


@pytest.mark.slow
@pytest.mark.parametrize("line", [1, 99, 100, 101, 200, 450])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_malformed_line_has_its_number_at_any_border(tmp_path, small_blocks, line, suffix):
    write_corpus(tmp_path, 450)
    path = tmp_path / "train.de"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[line - 1] = b"\xff" + lines[line - 1]
    content = b"".join(lines)
    path.unlink()
    path = path.with_name(path.name + suffix)
    path.write_bytes(gzip.compress(content) if suffix else content)
    with pytest.raises(NMTError, match=rf"train\.de{suffix}, line {line}: invalid UTF-8 at byte 1"):
        prepared(configuration(tmp_path))


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_lines_that_exceed_a_block_are_too_long_but_the_next_ones_are_read(tmp_path, suffix):
    """Without filling the memory: little of such a line is passed on."""
    lines = [b"a b", b"x" * 40_000_000, b"c d", b"y" * (LINE_BYTES + 1), b"z" * LINE_BYTES]
    content = b"".join(line + b"\r\n" for line in lines)
    path = tmp_path / f"train.jsonl{suffix}"
    path.write_bytes(gzip.compress(content, 1) if suffix else content)
    counts = Counter[str]()
    data = DataConfig(name="toy", kind="files", train=[str(path)], errors="skip")
    for block in blocks.line_blocks((path, path)):
        assert sum(len(side) for side in block.sides if isinstance(side, bytes)) < 16 * LINE_BYTES
        pairs = list(block.pairs(data, counts))
    assert [len(source) for source, _ in pairs] == [3, 3, LINE_BYTES]
    assert counts == {"too long (bytes)": 2}


@pytest.mark.parametrize("chunk", [3, 7, 64, 2**22])
@pytest.mark.parametrize("seed", range(6))
def test_blocks_have_the_lines_that_python_reads(tmp_path, monkeypatch, chunk, seed):
    monkeypatch.setattr(line_ends, "CHUNK_BYTES", chunk)
    monkeypatch.setattr(blocks, "BLOCK_PAIRS", 30)
    monkeypatch.setattr(blocks, "LINES_AT_ONCE", 10)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 700)
    generator = random.Random(seed)
    texts = ["", " ", "\u2028", "漢字\x85", "a\rb", "word " * 20]
    lines = generator.choices(texts, k=generator.choice([0, 1, 29, 30, 31, 95]))
    content = "\n".join(lines).encode()
    paths = (tmp_path / "a", tmp_path / "b.gz")
    paths[0].write_bytes(content)
    paths[1].write_bytes(gzip.compress(content))
    data = DataConfig(name="toy", kind="files", train=["unused"])
    pairs = []
    for block in blocks.line_blocks(paths):
        assert block.first == len(pairs) + 1
        pairs += block.pairs(data, Counter())
    # An empty last line has no end, so it is none.
    if lines and not lines[-1]:
        lines.pop()
    assert pairs == [(line, line) for line in lines]


def test_a_file_that_changes_while_it_is_read_is_an_error(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"one line\n" * 50)
    data = DataConfig(name="toy", kind="files", train=["unused"])
    (block,) = blocks.line_blocks((path, path))
    path.write_bytes(b"one line\n" * 49)
    with pytest.raises(NMTError, match="a: changed while it was read; run the command again"):
        list(block.pairs(data, Counter()))
    path.write_bytes(b"one\nline\n" * 50)
    with pytest.raises(NMTError, match="a: changed while it was read; run the command again"):
        list(block.pairs(data, Counter()))


def test_a_file_that_is_replaced_after_its_hash_is_an_error(tmp_path):
    write_corpus(tmp_path, 300)
    source = tmp_path / "train.en"

    def replace_once(words: str) -> None:
        # The first message comes after the hash, and before the vocabulary.
        if not (tmp_path / "replaced").exists():
            (tmp_path / "replaced").write_text(source.read_text().upper())
            (tmp_path / "replaced").replace(source)
            (tmp_path / "replaced").touch()

    with pytest.raises(NMTError, match=r"train.en: changed while it was read"):
        preprocess(configuration(tmp_path), replace_once)
    assert not (tmp_path / "out").exists()


def test_damaged_compressed_data_is_an_error_after_the_lines_before_it(tmp_path, small_blocks):
    write_corpus(tmp_path, 450)
    for code in ("en", "de"):
        path = tmp_path / f"train.{code}"
        content = gzip.compress(path.read_bytes())
        path.unlink()
        path.with_name(f"train.{code}.gz").write_bytes(content[:-20])
    with pytest.raises(NMTError, match=r"train\.en\.gz: cannot be read"):
        prepared(configuration(tmp_path))
    assert not [path for path in tmp_path.iterdir() if "nmt-tmp" in path.name]


def test_digests_are_those_of_the_contents(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(facts, "LARGE_BYTES", 100)
    monkeypatch.setattr(facts, "SETTLED_NS", 0)
    paths = []
    for number in range(5):
        path = tmp_path / f"{number}.txt"
        path.write_bytes(bytes([number]) * 300)
        paths.append(path)
    expected = {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    digests = file_digests([*paths, paths[0]])
    assert list(digests.items()) == list(expected.items())
    paths[2].write_bytes(b"changed" * 50)
    assert file_digests(paths)[str(paths[2])] == hashlib.sha256(b"changed" * 50).hexdigest()
