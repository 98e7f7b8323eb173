"""Corpora: the hub's datasets from a local copy, and files, through the same function."""

from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nmt.config import DataConfig
from nmt.errors import NMTError
from nmt.preparation import corpus_for
from nmt.text import Pair

# As in the dataset card of wmt/wmt14.
CARD = """---
configs:
- config_name: de-en
  data_files:
  - split: test
    path: de-en/test-*
---
"""
SPLITS = {
    "train": [("Resumption of the session", "Wiederaufnahme der Sitzungsperiode"), ("", "leer"), ("\u2028 a", "b  c")],
    "validation": [("A Republican strategy", "Eine republikanische Strategie")],
    "test": [("Gutach: Increased safety", "Gutach: Noch mehr Sicherheit"), ("Yes.", "Ja.")],
}


def write(path: Path, languages: tuple[str, str], pairs: list[Pair]) -> None:
    rows = [dict(sorted(zip(languages, pair, strict=True))) for pair in pairs]
    pq.write_table(pa.table({"translation": rows}), path)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A local copy of a dataset like wmt/wmt14, its training set in two files."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "wmt14"
    for subset in ("cs-en", "de-en"):
        (folder / subset).mkdir(parents=True)
    (folder / "README.md").write_text(CARD)
    write(folder / "cs-en" / "train-00000-of-00001.parquet", ("en", "cs"), [("Yes.", "Ano.")])
    for split, pairs in SPLITS.items():
        for i, part in enumerate([pairs[:2], pairs[2:]] if pairs[2:] else [pairs]):
            write(folder / "de-en" / f"{split}-{i:05}-of-00002.parquet", ("en", "de"), part)
    return folder


def configuration(path: Path, **changes: Any) -> DataConfig:
    values = {"name": "toy", "kind": "hub", "hub": "wmt/wmt14", "subset": "de-en", "path": str(path)}
    return DataConfig(**{**values, **changes})


def read(config: DataConfig, split: str) -> list[Pair]:
    return list(corpus_for(config).read(split, Counter()) or ())


def test_a_local_copy_gives_the_pairs_of_each_split_in_order_and_its_readme_names_no_file(hub, tmp_path):
    write(tmp_path / "private.parquet", ("en", "de"), [("My password.", "Mein Passwort.")])
    (hub / "README.md").write_text(CARD.replace("path: de-en/test-*", f"path: {tmp_path}/private.parquet"))
    for split, name in (("train", "train"), ("valid", "validation"), ("test", "test")):
        assert read(configuration(hub), split) == SPLITS[name]
    assert len(corpus_for(configuration(hub)).digests()) == 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"target": "fr"}, "row 1: no object with texts en and fr; check data.source and data.target"),
        ({"subset": "cs-en"}, "row 1: no object with texts en and de; check data.source and data.target"),
        ({"subset": None}, r"no None/train-\*\.parquet there"),
    ],
)
def test_a_language_or_subset_that_is_not_there_is_named(hub, changes, words):
    with pytest.raises(NMTError, match=words):
        read(configuration(hub, **changes), "train")


def test_files_without_held_out_sets_leave_them_to_be_drawn(tmp_path):
    files = {tmp_path / "a.tsv": "Yes.\tJa.\n", tmp_path / "b.tsv": "No.\tNein.\n"}
    for file, text in files.items():
        file.write_text(text)
    config = DataConfig(name="toy", kind="files", train=[str(tmp_path / "a.tsv")], test=[str(tmp_path / "b.tsv")])
    assert (read(config, "train"), read(config, "test")) == ([("Yes.", "Ja.")], [("No.", "Nein.")])
    assert corpus_for(config).read("valid", Counter()) is None
    digests = {str(file): sha256(text.encode()).hexdigest() for file, text in files.items()}
    assert corpus_for(config).digests() == digests
    with pytest.raises(NMTError, match=r"data\.train="):
        corpus_for(DataConfig(name="toy", kind="files")).read("train", Counter())


@pytest.mark.parametrize(
    ("rows", "malformed"),
    [
        ([{"en": "Yes.", "de": "Ja."}, None], 1),
        ([{"en": "Yes.", "de": "Ja."}, {"en": None, "de": "Ja."}], 1),
        ([{"en": "Yes.", "de": 3}] * 2, 2),
        (["text"] * 2, 2),
    ],
)
def test_a_row_of_the_hub_that_is_no_pair_is_named_or_counted(hub, rows, malformed):
    for file in (hub / "de-en").glob("train-*"):
        file.unlink()
    pq.write_table(pa.table({"translation": rows}), hub / "de-en" / "train-00000-of-00001.parquet")
    with pytest.raises(NMTError, match=r"train, row [12]: no object with texts en and de; .*data\.errors=skip"):
        read(configuration(hub), "train")
    counts: Counter[str] = Counter()
    assert len(list(corpus_for(configuration(hub, errors="skip")).read("train", counts))) == 2 - malformed
    assert counts == {"malformed": malformed}
