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
dataset_info:
- config_name: cs-en
  features:
  - name: translation
    dtype:
      translation:
        languages: [cs, en]
- config_name: de-en
  features:
  - name: translation
    dtype:
      translation:
        languages: [de, en]
configs:
- config_name: cs-en
  data_files:
  - split: train
    path: cs-en/train-*
- config_name: de-en
  data_files:
  - split: train
    path: de-en/train-*
  - split: validation
    path: de-en/validation-*
  - split: test
    path: de-en/test-*
---
# Dataset Card for "wmt14"
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
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A local copy of a dataset like wmt/wmt14, its training set in two files."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "wmt14"
    for subset in ("cs-en", "de-en"):
        (folder / subset).mkdir(parents=True)
    (folder / "README.md").write_text(CARD)
    write(folder / "cs-en" / "train-00000-of-00001.parquet", ("en", "cs"), [("Yes.", "Ano.")])
    for split, pairs in SPLITS.items():
        parts = [pairs[:2], pairs[2:]] if split == "train" else [pairs]
        for i, part in enumerate(parts):
            write(folder / "de-en" / f"{split}-{i:05}-of-{len(parts):05}.parquet", ("en", "de"), part)
    return folder


def configuration(path: Path, **changes: Any) -> DataConfig:
    values = {"name": "toy", "kind": "hub", "hub": "wmt/wmt14", "subset": "de-en", "path": str(path)}
    return DataConfig(**{**values, **changes})


def read(config: DataConfig, split: str) -> list[Pair]:
    pairs = corpus_for(config).read(split, Counter())
    assert pairs is not None
    return list(pairs)


@pytest.mark.parametrize(("split", "hub_split"), [("train", "train"), ("valid", "validation"), ("test", "test")])
def test_a_local_copy_gives_the_pairs_of_each_split_in_order(copy: Path, split: str, hub_split: str) -> None:
    assert read(configuration(copy), split) == SPLITS[hub_split]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"target": "fr"}, "no language 'fr', only de, en: check data.source and data.target"),
        ({"subset": "cs-en"}, "no language 'de', only cs, en: check data.source and data.target"),
        ({"subset": None}, r"no None/train-\*\.parquet there"),
    ],
)
def test_a_language_that_is_not_there_is_an_error_naming_those_that_are(
    copy: Path, changes: dict[str, str], words: str
) -> None:
    with pytest.raises(NMTError, match=words):
        read(configuration(copy, **changes), "train")


def test_the_readme_of_a_local_copy_names_no_file_to_read(copy: Path, tmp_path: Path) -> None:
    write(tmp_path / "private.parquet", ("en", "de"), [("My password.", "Mein Passwort.")])
    (copy / "README.md").write_text(CARD.replace("path: de-en/test-*", f"path: {tmp_path}/private.parquet"))
    assert read(configuration(copy), "test") == SPLITS["test"]
    for file in (copy / "de-en").glob("test-*"):
        file.unlink()
    with pytest.raises(NMTError, match="test"):
        read(configuration(copy), "test")


def test_files_without_held_out_sets_leave_them_to_be_drawn(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("Yes.\tJa.\n")
    (tmp_path / "b.tsv").write_text("No.\tNein.\n")
    config = DataConfig(name="toy", kind="files", train=[str(tmp_path / "a.tsv")], test=[str(tmp_path / "b.tsv")])
    assert read(config, "train") == [("Yes.", "Ja.")]
    assert corpus_for(config).read("valid", Counter()) is None
    assert read(config, "test") == [("No.", "Nein.")]
    assert corpus_for(config).digests() == {
        str(tmp_path / "a.tsv"): sha256(b"Yes.\tJa.\n").hexdigest(),
        str(tmp_path / "b.tsv"): sha256(b"No.\tNein.\n").hexdigest(),
    }
    with pytest.raises(NMTError, match=r"data\.train="):
        corpus_for(DataConfig(name="toy", kind="files")).read("train", Counter())


@pytest.mark.parametrize(
    "row",
    [None, {"en": None, "de": "Ja."}, {"en": "Yes.", "de": 3}, "text"],
    ids=["null", "null text", "number", "string"],
)
def test_a_row_of_the_hub_that_is_no_pair_is_named_or_counted(copy: Path, row: object) -> None:
    fine = {"en": "Yes.", "de": 3 if isinstance(row, dict) and row["de"] == 3 else "Ja."}
    rows = [fine, row] if row is None or isinstance(row, dict) else [row, row]
    for file in (copy / "de-en").glob("train-*"):
        file.unlink()
    pq.write_table(pa.table({"translation": rows}), copy / "de-en" / "train-00000-of-00001.parquet")
    with pytest.raises(NMTError, match=r"train, row [12]: no object with texts en and de; .*data\.errors=skip"):
        read(configuration(copy), "train")
    counts: Counter[str] = Counter()
    kept = list(corpus_for(configuration(copy, errors="skip")).read("train", counts) or ())
    assert len(kept) + counts["malformed"] == 2
    assert counts["malformed"] >= 1
