"""Deduplication and drawing in bounded memory give the same results as lists in memory."""

import os
import random
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from nmt.config import DataConfig, ExperimentConfig, TokenizerConfig
from nmt.preparation import deduplication, preprocess, reading, selection
from nmt.preparation.deduplication import hash_file, repeated_rows
from nmt.preparation.selection import nth_flagged, shuffled_range


@pytest.mark.parametrize(
    ("pairs", "distinct", "run_pairs", "task_pairs"),
    [
        (0, 1, 10, 10),
        (1, 1, 10, 10),
        (1000, 1, 64, 100),  # one value: all in one bucket
        (1000, 300, 64, 100),
        (1000, 10**6, 64, 1),  # as many tasks as buckets
        (1000, 300, 10**6, 10**6),  # one run and one task
    ],
)
def test_repeated_rows_are_those_that_a_set_has_seen(
    tmp_path, monkeypatch, pairs, distinct, run_pairs, task_pairs
):
    monkeypatch.setattr(deduplication, "RUN_PAIRS", run_pairs)
    monkeypatch.setattr(deduplication, "TASK_PAIRS", task_pairs)
    generator = np.random.default_rng(pairs)
    values = generator.integers(0, 2**64, distinct, dtype=np.uint64)
    hashes = values[generator.integers(0, distinct, pairs)]
    seen = set()
    expected = []
    for row, value in enumerate(hashes.tolist()):
        if value in seen:
            expected.append(row)
        seen.add(value)
    with hash_file(tmp_path / "hashes") as file:
        for block in np.array_split(hashes, 37):
            file.add(block)
        tasks = list(file.tasks())
        repeated = map(partial(repeated_rows, path=tmp_path / "hashes"), tasks)
        rows = np.concatenate([np.empty(0, np.int64), *repeated])
        assert sorted(rows.tolist()) == expected
        assert (len(file.run_rows) > 10) == (pairs > 10 * run_pairs)
    assert len(tasks) == min(deduplication.BUCKETS, pairs // task_pairs + 1)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("count", [0, 1, 2, 255, 256, 257, 65_537, 200_000])
def test_the_order_of_candidates_is_numpys_permutation(monkeypatch, count):
    monkeypatch.setattr(selection, "FIRST_WINDOW", 1 << 12)
    monkeypatch.setattr(selection, "LARGEST_WINDOW", 1 << 17)
    parts = list(shuffled_range(count, seed=7))
    expected = np.random.default_rng(7).permutation(count)
    assert np.array_equal(np.concatenate([np.empty(0, np.int64), *parts]), expected)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 1.0])
def test_nth_flagged_gives_the_rows_of_a_list_of_all(monkeypatch, share):
    monkeypatch.setattr(selection, "BLOCK", 100)
    generator = np.random.default_rng(1)
    flags = generator.random(10_050) < share
    flagged = np.flatnonzero(flags)
    numbers = generator.permutation(len(flagged))[:2000]
    assert np.array_equal(nth_flagged(flags, numbers), flagged[numbers])


def write_corpus(folder: Path, pairs: int) -> None:
    """Pairs of which a third are copies of earlier ones."""
    generator = random.Random(1)
    words = ["".join(generator.choices("abcdefgimnorstu", k=4)) for _ in range(200)]
    lines = []
    for _ in range(pairs):
        if lines and generator.random() < 1 / 3:
            lines.append(generator.choice(lines))
        else:
            lines.append(" ".join(generator.choices(words, k=generator.randrange(3, 7))))
    (folder / "train.en").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (folder / "train.de").write_text("".join(f"{line[::-1]}\n" for line in lines), encoding="utf-8")


def configuration(folder: Path, out: str) -> ExperimentConfig:
    data = DataConfig(
        name="toy", kind="files", train=[str(folder / "train")], valid_size=40, test_size=60
    )
    data.filters.deduplicate = True
    config = ExperimentConfig(
        data=data, tokenizer=TokenizerConfig("bpe", 300, sample=500), workers=2
    )
    config.prepared = str(folder / out)
    return config


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.slow
def test_small_buffers_prepare_the_same_corpus_and_leave_no_temporary_files(tmp_path, monkeypatch):
    write_corpus(tmp_path, 3000)
    preprocess(configuration(tmp_path, "large"), lambda words: None)
    monkeypatch.setattr(deduplication, "RUN_PAIRS", 100)
    monkeypatch.setattr(deduplication, "TASK_PAIRS", 200)
    monkeypatch.setattr(selection, "BLOCK", 128)
    monkeypatch.setattr(selection, "FIRST_WINDOW", 64)
    monkeypatch.setattr(reading, "CANDIDATES", 50)
    manifest, _ = preprocess(configuration(tmp_path, "small"), lambda words: None)
    small = contents(tmp_path / "small")
    assert small == contents(tmp_path / "large")
    assert [path for path in small if path.startswith("train/")] == ["train/pairs.arrow"]
    lines = (tmp_path / "train.en").read_text().splitlines()  # targets follow from sources
    duplicates = len(lines) - len(set(lines))
    assert manifest.counts["train"]["dropped"]["duplicates"] == duplicates > 500


LIMITED = """
import resource, sys
from nmt.cli import main
limit = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
sys.exit(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1000, 60_000])  # fails while reading, and while encoding
def test_a_full_disk_is_one_line_and_the_old_corpus_stays(tmp_path, limit):
    write_corpus(tmp_path, 3000)
    preprocess(configuration(tmp_path, "out"), lambda words: None)
    before = contents(tmp_path / "out")
    words = [
        f"data.train={tmp_path}/train",
        f"prepared={tmp_path}/out",
        "data.valid_size=40",
        "data.test_size=60",
    ]
    words += ["data=files", "tokenizer.vocabulary_size=300", "overwrite=true", "workers=2"]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(limit), "preprocess", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 2, done.stderr
    assert "cannot write" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert contents(tmp_path / "out") == before
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != ".out.lock") == [
        "out",
        "train.de",
        "train.en",
    ]
