"""Worker processes decode blocks of lines; results do not depend on blocks or workers."""

import json
from collections import Counter
from pathlib import Path

import datasets
import numpy as np
import pytest

from nmt.config import DataConfig, ExperimentConfig, NMTError, TokenizerConfig
from nmt.preparation import corpus_for, preprocess
from nmt.preparation.filters import Cleaning
from nmt.preparation.selection import random_rows
from nmt.preparation.suspicions import NO_SAMPLE
from nmt.text import NORMALIZATIONS, Pair, blocks, pairs_of_block, read_blocks, read_files

PAIRS = [(f"source {number} of many", f"Ziel {number} von vielen") for number in range(1050)]
BROKEN = (7, 230, 231, 999)
"""Indices of lines that are not UTF-8."""


def lines_of(pairs: list[Pair], side: int, broken: tuple[int, ...] = ()) -> bytes:
    lines = [f"{pair[side]}\n".encode() for pair in pairs]
    for number in broken:
        lines[number] = b"\xff" + lines[number]
    return b"".join(lines)


def write_files(folder: Path, sources: bytes, targets: bytes) -> str:
    (folder / "train.en").write_bytes(sources)
    (folder / "train.de").write_bytes(targets)
    return str(folder / "train")


def write_records(folder: Path, pairs: list[Pair], broken: tuple[int, ...] = ()) -> str:
    records = [json.dumps({"en": source, "de": target}) for source, target in pairs]
    for number in broken:
        records[number] = "not JSON"
    (folder / "train.jsonl").write_text("\n".join(records))
    return str(folder / "train.jsonl")


def configuration(folder: Path, train: str, workers: int) -> ExperimentConfig:
    held_out = folder / "valid.tsv"
    held_out.write_text("another source\tein anderes Ziel\n")
    given = [str(held_out)]
    data = DataConfig(name="toy", kind="files", train=[train], valid=given, test=given)
    data.errors = "skip"
    data.filters.deduplicate = True
    config = ExperimentConfig(data=data, tokenizer=TokenizerConfig("bpe", 300), workers=workers)
    config.prepared = str(folder / "out" / "toy")
    config.overwrite = True
    return config


@pytest.mark.slow
@pytest.mark.parametrize("form", ["files", "records", "table"])
@pytest.mark.parametrize("workers", [1, 3])
def test_line_numbers_skip_what_is_malformed_in_any_block(tmp_path, monkeypatch, form, workers):
    monkeypatch.setattr(blocks, "BLOCK_PAIRS", 100)
    monkeypatch.setattr(blocks, "LINES_AT_ONCE", 10)
    pairs = [*PAIRS, *PAIRS[:300]]  # repeated in other blocks
    if form == "files":
        train = write_files(tmp_path, lines_of(pairs, 0), lines_of(pairs, 1, BROKEN))
    elif form == "records":
        train = write_records(tmp_path, pairs, BROKEN)
    else:
        rows = [f"{source}\t{target}" for source, target in pairs]
        for number in BROKEN:
            rows[number] = "no tab"
        train = str(tmp_path / "train.tsv")
        Path(train).write_text("\n".join(rows))
    manifest, _ = preprocess(configuration(tmp_path, train, workers), lambda words: None)
    train_counts = manifest.counts["train"]
    assert train_counts["read"] == len(pairs)
    reason = "invalid UTF-8" if form == "files" else "malformed"
    # The copies of two broken lines are intact, so they are no duplicates.
    repeated = 300 - sum(number < 300 for number in BROKEN)
    assert train_counts["dropped"][reason] == len(BROKEN)
    assert train_counts["dropped"]["duplicates"] == repeated
    readable = [pair for number, pair in enumerate(pairs) if number not in BROKEN]
    firsts = dict(reversed([(pair, line) for line, pair in enumerate(readable, start=1)]))
    arrow = tmp_path / "out" / "toy" / "train" / "pairs.arrow"
    assert datasets.Dataset.from_file(str(arrow))["line"][:] == sorted(firsts.values())


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("broken", [0, 1049])
def test_the_first_problem_is_reported_although_workers_read_ahead(
    tmp_path, monkeypatch, broken, workers
):
    """The second problem is that one file is longer."""
    monkeypatch.setattr(blocks, "BLOCK_PAIRS", 300)
    targets = lines_of(PAIRS, 1, (broken,)) + b"one more\n"
    train = write_files(tmp_path, lines_of(PAIRS, 0), targets)
    config = configuration(tmp_path, train, workers)
    config.data.errors = "strict"
    with pytest.raises(NMTError, match=rf"train\.de, line {broken + 1}: invalid UTF-8"):
        preprocess(config, lambda words: None)
    config.data.errors = "skip"
    with pytest.raises(NMTError, match=r"train\.en has 1,050 lines but .*train\.de has 1,051: "):
        preprocess(config, lambda words: None)


def sizes_of_blocks(entry: str) -> list[int]:
    config = DataConfig(name="toy", kind="files", train=[entry])
    sizes = []
    pairs: list[Pair] = []
    for block in read_blocks([entry], config, Counter()):
        of_block = list(pairs_of_block(block, config, Counter()))
        sizes.append(len(of_block))
        pairs += of_block
    assert pairs == list(read_files([entry], config, Counter()))
    return sizes


@pytest.mark.parametrize("form", ["files", "table"])
def test_long_lines_end_a_block_early(tmp_path, monkeypatch, form):
    monkeypatch.setattr(blocks, "LINES_AT_ONCE", 2)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 6000)
    pairs = [("x" * 1000, "y" * 1000)] * 7
    if form == "files":
        entry = write_files(tmp_path, lines_of(pairs, 0), lines_of(pairs, 1))
    else:
        entry = str(tmp_path / "train.tsv")
        Path(entry).write_text("".join("\t".join(pair) + "\n" for pair in pairs))
    assert sizes_of_blocks(entry) == ([4, 3] if form == "files" else [3, 3, 1])


def test_a_pair_that_fills_a_block_is_passed_on_once(tmp_path):
    data = DataConfig(name="toy", kind="files", train=["unused"])
    clean = Cleaning(
        corpus_for(data),
        NORMALIZATIONS["canonical"],
        is_unique=True,
        given=None,
        spool=tmp_path / "text",
    )
    block = clean(([PAIRS[1], *PAIRS[:1] * 4000, *PAIRS[:2]], NO_SAMPLE))
    assert block.place.block().to_pydict() == {
        "source": [PAIRS[1][0], PAIRS[0][0]],
        "target": [PAIRS[1][1], PAIRS[0][1]],
        "line": [0, 1],
    }
    assert (len(block.hashes), block.pairs, dict(block.dropped)) == (2, 4003, {})


@pytest.mark.parametrize(("count", "sizes"), [(0, []), (10, [10]), (25, [10, 10, 5])])
def test_blocks_have_all_lines(tmp_path, monkeypatch, count, sizes):
    monkeypatch.setattr(blocks, "BLOCK_PAIRS", 10)
    monkeypatch.setattr(blocks, "LINES_AT_ONCE", 5)
    entry = write_files(tmp_path, lines_of(PAIRS[:count], 0), lines_of(PAIRS[:count], 1))
    assert sizes_of_blocks(entry) == sizes


@pytest.mark.parametrize(
    ("count", "size"),
    [(0, 0), (1, 1), (1000, 0), (1000, 10), (1000, 499), (1000, 999), (1000, 1000)],
)
def test_drawn_rows_are_distinct_and_each_is_equally_likely(count, size):
    times = np.zeros(count)
    for seed in range(50):
        rows = random_rows(count, size, seed)
        assert len(set(rows.tolist())) == len(rows) == size
        assert rows.tolist() == sorted(rows.tolist())
        times[rows] += 1
    # Each row is drawn with probability size / count: the halves of the range get half of the rows.
    expected = 50 * size / 2
    assert abs(times[: count // 2].sum() - expected) <= 6 * np.sqrt(expected) or count == 1
